//! Bytes of a recording: numbers of varying length, rows of differences, records with a checksum.
//!
//! ```text
//! file    := "zenkairec" version:u16le record*
//! record  := length:varint kind:u8 payload[length] crc32(kind payload):u32le
//! row     := (unchanged:varint difference:zigzag-varint)* unchanged:varint     until the template has no more numbers
//! ```

/// More than any record holds; a longer one is damage.
const LONGEST: usize = 80 << 20;

/// LEB128: seven bits a byte, the lowest first.
pub(super) fn put(mut number: u64, out: &mut Vec<u8>) {
    while number > 0x7f {
        out.push(number.to_le_bytes()[0] | 0x80);
        number >>= 7;
    }
    out.push(number.to_le_bytes()[0]);
}

/// Takes a number from the front of `bytes`.
pub(super) fn take(bytes: &mut &[u8]) -> Option<u64> {
    let mut number = 0_u64;
    for (place, &byte) in bytes.iter().enumerate().take(10) {
        let bits = u64::from(byte & 0x7f);
        let shift = u32::try_from(place).ok()? * 7;
        if shift == 63 && bits > 1 {
            return None;
        }
        number |= bits << shift;
        if byte & 0x80 == 0 {
            *bytes = bytes.get(place + 1..)?;
            return Some(number);
        }
    }
    None
}

/// As [`take`], as a size.
pub(super) fn take_size(bytes: &mut &[u8]) -> Option<usize> {
    usize::try_from(take(bytes)?).ok()
}

/// Takes `length` bytes from the front.
pub(super) fn take_bytes<'bytes>(bytes: &mut &'bytes [u8], length: usize) -> Option<&'bytes [u8]> {
    let (taken, rest) = bytes.split_at_checked(length)?;
    *bytes = rest;
    Some(taken)
}

/// Small for small differences of either sign.
fn zigzag(difference: u64) -> u64 {
    let sign = if difference >> 63 == 1 { u64::MAX } else { 0 };
    (difference << 1) ^ sign
}

fn unzigzag(number: u64) -> u64 {
    (number >> 1) ^ (number & 1).wrapping_neg()
}

/// How `now` differs from `before`, which are equally long.
pub(super) fn put_row(before: &[u64], now: &[u64], out: &mut Vec<u8>) {
    let mut unchanged = 0;
    for (before, now) in before.iter().zip(now) {
        if before == now {
            unchanged += 1;
        } else {
            put(unchanged, out);
            put(zigzag(now.wrapping_sub(*before)), out);
            unchanged = 0;
        }
    }
    put(unchanged, out);
}

/// Makes of `row`, as it was, the row as it is.
pub(super) fn take_row(bytes: &mut &[u8], row: &mut [u64]) -> Option<()> {
    let mut at = 0_usize;
    loop {
        at = at.checked_add(take_size(bytes)?)?;
        // What is unchanged at the end is always told, so that an unfinished row is noticed.
        if at == row.len() {
            return Some(());
        }
        let number = row.get_mut(at)?;
        *number = number.wrapping_add(unzigzag(take(bytes)?));
        at += 1;
    }
}

/// Appends a record.
pub(super) fn put_record(kind: u8, payload: &[u8], out: &mut Vec<u8>) {
    put(u64::try_from(payload.len()).unwrap_or(0), out);
    out.push(kind);
    out.extend_from_slice(payload);
    out.extend_from_slice(&crc32(kind, payload).to_le_bytes());
}

/// Takes the next record; `None` at the end, at a cut and at damage.
pub(super) fn take_record<'bytes>(bytes: &mut &'bytes [u8]) -> Option<(u8, &'bytes [u8])> {
    let mut rest = *bytes;
    let length = take_size(&mut rest).filter(|&length| length <= LONGEST)?;
    let kind = *take_bytes(&mut rest, 1)?.first()?;
    let payload = take_bytes(&mut rest, length)?;
    let sum = u32::from_le_bytes(*take_bytes(&mut rest, 4)?.first_chunk()?);
    if sum != crc32(kind, payload) {
        return None;
    }
    *bytes = rest;
    Some((kind, payload))
}

/// CRC-32 of IEEE 802.3, as gzip and zlib have it.
fn crc32(kind: u8, payload: &[u8]) -> u32 {
    let mut sum = u32::MAX;
    for &byte in std::iter::once(&kind).chain(payload) {
        let place = usize::from(sum.to_le_bytes()[0] ^ byte);
        sum = TABLE[place] ^ (sum >> 8);
    }
    !sum
}

const TABLE: [u32; 256] = table();

const fn table() -> [u32; 256] {
    let mut table = [0; 256];
    let mut at = 0_usize;
    let mut number = 0_u32;
    while at < 256 {
        let mut sum = number;
        let mut bit = 0;
        while bit < 8 {
            sum = if sum & 1 == 1 { 0xedb8_8320 ^ (sum >> 1) } else { sum >> 1 };
            bit += 1;
        }
        table[at] = sum;
        at += 1;
        number += 1;
    }
    table
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_checksum_is_the_well_known_one() {
        assert_eq!(crc32(b'1', b"23456789"), 0xcbf4_3926);
    }

    proptest! {
        #[test]
        fn numbers_come_back(number: u64) {
            let mut bytes = Vec::new();
            put(number, &mut bytes);
            let mut rest = bytes.as_slice();
            prop_assert_eq!(take(&mut rest), Some(number));
            prop_assert!(rest.is_empty());
            prop_assert_eq!(unzigzag(zigzag(number)), number);
        }

        #[test]
        fn rows_come_back(rows in proptest::collection::vec((any::<u64>(), any::<u64>(), any::<bool>()), 0..50)) {
            let before: Vec<u64> = rows.iter().map(|row| row.0).collect();
            let now: Vec<u64> = rows.iter().map(|row| if row.2 { row.0 } else { row.1 }).collect();
            let mut bytes = Vec::new();
            put_row(&before, &now, &mut bytes);
            let mut row = before.clone();
            prop_assert_eq!(take_row(&mut bytes.as_slice(), &mut row), Some(()));
            prop_assert_eq!(row, now);
        }

        #[test]
        fn anything_is_read_without_harm(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            let mut rest = bytes.as_slice();
            while take_record(&mut rest).is_some() {}
            let mut row = [0; 20];
            let _ = take_row(&mut bytes.as_slice(), &mut row);
            let _ = take(&mut bytes.as_slice());
        }

        #[test]
        fn a_changed_byte_is_noticed(payload in proptest::collection::vec(any::<u8>(), 1..60), at: prop::sample::Index) {
            let mut bytes = Vec::new();
            put_record(b'S', &payload, &mut bytes);
            let at = at.index(bytes.len());
            bytes[at] ^= 0x10;
            if let Some((kind, read)) = take_record(&mut bytes.as_slice()) {
                prop_assert!(false, "{kind} {read:?}");
            }
        }
    }
}
