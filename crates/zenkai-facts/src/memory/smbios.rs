//! Walks an SMBIOS table (DMTF DSP0134). The bytes are the firmware's: nothing in them is trusted.

/// More structures than any machine has; a hostile table must not keep us busy.
const STRUCTURE_LIMIT: usize = 16_384;

/// The structure that ends a table.
const END_OF_TABLE: u8 = 127;

/// One structure: a formatted area, fields at fixed offsets, and the strings that fields refer to by number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Structure<'t> {
    /// What it describes.
    pub(crate) kind: u8,
    formatted: &'t [u8],
    strings: &'t [u8],
}

impl Structure<'_> {
    /// The byte at an offset from the structure's start.
    pub(crate) fn byte(&self, offset: usize) -> Option<u8> {
        self.formatted.get(offset).copied()
    }

    /// The little-endian word at an offset.
    pub(crate) fn word(&self, offset: usize) -> Option<u16> {
        let bytes = self.formatted.get(offset..offset.checked_add(2)?)?;
        Some(u16::from_le_bytes(bytes.try_into().ok()?))
    }

    /// The little-endian double word at an offset.
    pub(crate) fn double(&self, offset: usize) -> Option<u32> {
        let bytes = self.formatted.get(offset..offset.checked_add(4)?)?;
        Some(u32::from_le_bytes(bytes.try_into().ok()?))
    }

    /// The number by which others refer to this structure.
    pub(crate) fn handle(&self) -> Option<u16> {
        self.word(2)
    }

    /// The string whose number stands at an offset, trimmed. Number 0 means that there is none, and so do the
    /// fillers that firmware writes.
    pub(crate) fn string(&self, offset: usize) -> Option<String> {
        let index = usize::from(self.byte(offset)?).checked_sub(1)?;
        let bytes = self.strings.split(|byte| *byte == 0).nth(index)?;
        let text = String::from_utf8_lossy(bytes);
        let text = text.trim();
        let filler = ["not specified", "unknown", "none", "no dimm", "to be filled by o.e.m."];
        let empty = text.is_empty() || filler.contains(&text.to_ascii_lowercase().as_str());
        (!empty).then(|| text.to_owned())
    }
}

/// The structures of a table, up to the end mark, the end of the bytes or the first that is broken.
pub(crate) fn structures(table: &[u8]) -> Vec<Structure<'_>> {
    let mut found = Vec::new();
    let mut rest = table;
    while let Some((structure, after)) = next(rest) {
        found.push(structure);
        if structure.kind == END_OF_TABLE || found.len() >= STRUCTURE_LIMIT {
            break;
        }
        rest = after;
    }
    found
}

/// A structure: four bytes of header, the rest of the formatted area, strings each ended by NUL, and a NUL more.
fn next(bytes: &[u8]) -> Option<(Structure<'_>, &[u8])> {
    let (&kind, length) = (bytes.first()?, usize::from(*bytes.get(1)?));
    if length < 4 {
        return None;
    }
    let (formatted, tail) = bytes.split_at_checked(length)?;
    let end = tail.windows(2).position(|pair| pair == [0, 0])?;
    let (strings, after) = tail.split_at_checked(end.checked_add(2)?)?;
    Some((Structure { kind, formatted, strings }, after))
}

/// Builds a table for tests: kind, formatted area after the header, strings.
#[cfg(test)]
pub(crate) fn table(structures: &[(u8, &[u8], &[&str])]) -> Vec<u8> {
    let mut bytes = Vec::new();
    for (handle, (kind, fields, strings)) in structures.iter().enumerate() {
        let length = u8::try_from(fields.len() + 4).unwrap();
        bytes.extend_from_slice(&[*kind, length]);
        bytes.extend_from_slice(&u16::try_from(handle).unwrap().to_le_bytes());
        bytes.extend_from_slice(fields);
        for text in *strings {
            bytes.extend_from_slice(text.as_bytes());
            bytes.push(0);
        }
        bytes.extend_from_slice(if strings.is_empty() { &[0, 0] } else { &[0] });
    }
    bytes
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn walks_and_stops() {
        let bytes =
            table(&[(1, &[1, 2, 0], &["Dell", " x "]), (4, &[0], &[]), (127, &[], &[]), (9, &[], &[])]);
        let found = structures(&bytes);
        assert_eq!(found.iter().map(|structure| structure.kind).collect::<Vec<_>>(), [1, 4, 127]);
        assert_eq!(found[0].string(4).as_deref(), Some("Dell"));
        assert_eq!(found[0].string(5).as_deref(), Some("x"));
        assert_eq!((found[0].string(6), found[0].byte(9), found[1].handle()), (None, None, Some(1)));
        assert_eq!(structures(&bytes[..bytes.len() - 9]).len(), 2, "a cut table gives what came before");
        assert!(structures(&[1, 3, 0, 0, 0, 0]).is_empty());
    }

    proptest! {
        #[test]
        fn never_panics(bytes in proptest::collection::vec(any::<u8>(), 0..400), offset in 0..300_usize) {
            for structure in structures(&bytes) {
                let _ = (structure.string(offset), structure.word(offset), structure.double(offset));
            }
        }
    }
}
