//! The words that were found to identify this machine, and where they occur in a text.

use std::collections::HashMap;

/// What a word is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Word {
    Host,
    Serial,
}

#[derive(Debug, Clone)]
struct Literal {
    text: String,
    word: Word,
    /// Only where no letter or digit touches it: short words would be found inside others.
    alone: bool,
    /// Only in texts where names that people give are expected.
    named: bool,
}

/// The words, found by their first two bytes.
#[derive(Debug, Default)]
pub(super) struct Literals {
    by_start: HashMap<[u8; 2], Vec<Literal>>,
}

/// Values that firmware and drivers write instead of a serial number, in lower case.
const FILLERS: [&str; 14] = [
    "not specified",
    "none",
    "unknown",
    "to be filled by o.e.m.",
    "default string",
    "no dimm",
    "no asset tag",
    "not provided",
    "system serial number",
    "chassis serial number",
    "empty",
    "n/a",
    "localhost",
    "(none)",
];

pub(super) fn is_filler(text: &str) -> bool {
    let lower = text.trim().to_ascii_lowercase();
    FILLERS.contains(&lower.as_str())
        || lower.bytes().all(|byte| matches!(byte, b'0' | b'x' | b'.' | b' ' | b'-' | b'f'))
}

impl Literals {
    /// The host's name, whole and its first part. `collides`: it is also one of the kernel's words.
    pub(super) fn add_host(&mut self, name: &str, collides: bool) {
        let short = name.split('.').next().unwrap_or(name);
        for text in [name, short] {
            if text.len() < 2 || is_filler(text) || text.starts_with("localhost") || text.starts_with("host-")
            {
                continue;
            }
            // Device mapper doubles dashes; systemd writes them as \x2d.
            for text in [text.to_owned(), text.replace('-', "--"), text.replace('-', "\\x2d")] {
                self.add(Literal { text, word: Word::Host, alone: true, named: collides || name.len() < 4 });
            }
        }
    }

    /// A serial number and the parts of it that stand alone elsewhere (`eui.…`, `0x…`).
    pub(super) fn add_serial(&mut self, value: &str) {
        let tail = value.rsplit_once('.').map_or(value, |(_, tail)| tail);
        let bare = value.strip_prefix("0x").unwrap_or(value);
        for text in [value, tail, bare] {
            let distinctive = text.len() >= 6 && text.bytes().any(|byte| byte.is_ascii_digit());
            let multiline = text.contains('\n');
            if !distinctive || multiline || is_filler(text) || text.starts_with("ID0") {
                continue;
            }
            let alone = text.len() < 8 || text.bytes().all(|byte| byte.is_ascii_digit());
            self.add(Literal { text: text.to_owned(), word: Word::Serial, alone, named: false });
            // udev writes blanks as underscores.
            if text.contains(' ') {
                let text = text.split_whitespace().collect::<Vec<_>>().join("_");
                self.add(Literal { text, word: Word::Serial, alone, named: false });
            }
        }
    }

    fn add(&mut self, literal: Literal) {
        let Some(start) = start(literal.text.as_bytes()) else { return };
        let known = self.by_start.entry(start).or_default();
        if !known.iter().any(|other| other.text == literal.text) {
            known.push(literal);
        }
    }

    /// Longest first, so that a name is not torn apart by a shorter one.
    pub(super) fn finish(&mut self) {
        for known in self.by_start.values_mut() {
            known.sort_by_key(|literal| std::cmp::Reverse(literal.text.len()));
        }
    }

    /// The word that stands at a place in a text, if any. `named`: the text holds names that people give.
    pub(super) fn at(&self, text: &str, place: usize, named: bool) -> Option<(&str, Word)> {
        let rest = text.as_bytes().get(place..)?;
        let known = self.by_start.get(&start(rest)?)?;
        let touches = |byte: Option<&u8>| byte.is_some_and(u8::is_ascii_alphanumeric);
        let before = place.checked_sub(1).and_then(|before| text.as_bytes().get(before));
        known
            .iter()
            .find(|literal| {
                let fits = rest.starts_with(literal.text.as_bytes()) && (named || !literal.named);
                fits && !(literal.alone && (touches(before) || touches(rest.get(literal.text.len()))))
            })
            .map(|literal| (literal.text.as_str(), literal.word))
    }
}

fn start(bytes: &[u8]) -> Option<[u8; 2]> {
    Some([*bytes.first()?, *bytes.get(1)?])
}
