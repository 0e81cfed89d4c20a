//! A text of the kernel taken apart into numbers and the rest.
//!
//! From one sample to the next only the numbers change. The rest, the *template*, is kept once; of the numbers only
//! the differences are kept. So a megabyte of text becomes a few hundred bytes, and reading them back needs no parsing.

/// Stands for a whole number in a template.
const WHOLE: u8 = 1;
/// `FRACTION + n` stands for a number with `n` digits after the point.
const FRACTION: u8 = 1;
/// More digits after the point than this are not a number to us.
const MOST_DIGITS: u8 = 6;
/// The last of the bytes that stand for numbers; others below the space, but for the end of a line, never occur.
const LAST: u8 = FRACTION + MOST_DIGITS;

/// How numbers are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Digits {
    /// `123`, and `1.23` as 123 hundredths.
    Decimal,
    /// `0001f3`, without a mark in front.
    Hexadecimal,
}

/// Takes `text` apart. Runs of blanks become one; what is neither a number nor printable becomes `?`.
pub(super) fn take_apart(text: &[u8], digits: Digits, template: &mut Vec<u8>, numbers: &mut Vec<u64>) {
    template.clear();
    numbers.clear();
    let mut at = 0;
    // Whether a number may begin here: at the start and after a blank or `=`.
    let mut fresh = true;
    while let Some(&byte) = text.get(at) {
        if fresh && let Some((number, mark, length)) = number(text.get(at..).unwrap_or_default(), digits) {
            numbers.push(number);
            template.push(mark);
            at += length;
            fresh = false;
            continue;
        }
        match byte {
            b' ' | b'\t' => {
                if !matches!(template.last(), Some(b' ' | b'\n') | None) {
                    template.push(b' ');
                }
                fresh = true;
            }
            b'\n' => {
                template.push(byte);
                fresh = true;
            }
            _ => {
                template.push(if (b' '..0x7f).contains(&byte) { byte } else { b'?' });
                fresh = byte == b'=';
            }
        }
        at += 1;
    }
}

/// Does what [`take_apart`] does with a text that likely has this template, at less cost: the template is compared
/// and not made again. Says whether it has; where not, what `numbers` holds is of no use.
///
/// Only where the template has a number is one looked for. What stands there as a word is no number: a word ends where a
/// number ends, so that the same bytes would have been taken for a number when the template was made.
pub(super) fn follow(text: &[u8], digits: Digits, template: &[u8], numbers: &mut Vec<u64>) -> bool {
    numbers.clear();
    let (mut at, mut place) = (0, 0);
    loop {
        // Most of a text is words.
        let words = text.get(at..).unwrap_or_default().iter().zip(template.get(place..).unwrap_or_default());
        let same = words.take_while(|(byte, wanted)| byte == wanted && **byte > b' ').count();
        (at, place) = (at + same, place + same);
        let Some(&byte) = text.get(at) else { break };
        // Nothing in a template is 0.
        let wanted = template.get(place).copied().unwrap_or(0);
        let before = if place == 0 { b'\n' } else { template.get(place - 1).copied().unwrap_or(0) };
        if byte == wanted && (byte == b'\n' || byte >= b' ') {
            place += 1;
        } else if byte == b' ' || byte == b'\t' {
            match (wanted, before) {
                (b' ', _) => place += 1,
                (_, b' ' | b'\n') => {}
                _ => return false,
            }
        } else if (WHOLE..=LAST).contains(&wanted) {
            let Some((number, length)) = expected(text.get(at..).unwrap_or_default(), digits, wanted) else {
                return false;
            };
            numbers.push(number);
            at += length;
            place += 1;
            continue;
        } else if wanted != b'?' || byte == b'\n' || (b' '..0x7f).contains(&byte) {
            return false;
        } else {
            place += 1;
        }
        at += 1;
    }
    place == template.len()
}

/// The number at the start of `text` if `mark` stands for it, and its length.
fn expected(text: &[u8], digits: Digits, mark: u8) -> Option<(u64, usize)> {
    /// As many digits as always fit.
    const SAFE: usize = 19;
    if mark == WHOLE && digits == Digits::Decimal {
        let mut value = 0_u64;
        let mut length = 0;
        while let Some(digit) =
            text.get(length).map(|byte| byte.wrapping_sub(b'0')).filter(|digit| *digit < 10)
            && length < SAFE
        {
            value = value * 10 + u64::from(digit);
            length += 1;
        }
        if length > 0 && matches!(text.get(length), Some(b' ' | b'\t' | b'\n' | b',') | None) {
            return Some((value, length));
        }
    }
    number(text, digits).filter(|(_, found, _)| *found == mark).map(|(value, _, length)| (value, length))
}

/// The number at the start of `text`, what stands for it, and its length. It must end where a word ends.
fn number(text: &[u8], digits: Digits) -> Option<(u64, u8, usize)> {
    let mut value = 0_u64;
    let mut length = 0;
    let mut point = None;
    for &byte in text {
        let digit = match (byte, digits) {
            (b'0'..=b'9', _) => byte - b'0',
            (b'a'..=b'f', Digits::Hexadecimal) => byte - b'a' + 10,
            (b'.', Digits::Decimal) if point.is_none() && length > 0 => {
                point = Some(length);
                length += 1;
                continue;
            }
            (b' ' | b'\t' | b'\n' | b',', _) => break,
            _ => return None,
        };
        let base = if digits == Digits::Hexadecimal { 16 } else { 10 };
        value = value.checked_mul(base)?.checked_add(u64::from(digit))?;
        length += 1;
    }
    if length == 0 {
        return None;
    }
    let places = point.map_or(0, |point| length - point - 1);
    let places = u8::try_from(places).ok().filter(|&places| places <= MOST_DIGITS)?;
    // "12." is no number.
    (point.is_none() || places > 0).then_some((value, FRACTION + places, length))
}

/// Numbers in a template.
pub(super) fn numbers_in(template: &[u8]) -> usize {
    template.iter().filter(|&&byte| (WHOLE..=LAST).contains(&byte)).count()
}

/// A word of a line.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Word<'template> {
    /// As it stands.
    Text(&'template str),
    /// A number.
    Number(Column),
}

impl<'template> Word<'template> {
    pub(super) fn text(self) -> Option<&'template str> {
        match self {
            Self::Text(text) => Some(text),
            Self::Number(_) => None,
        }
    }

    pub(super) fn column(self) -> Option<Column> {
        match self {
            Self::Number(column) => Some(column),
            Self::Text(_) => None,
        }
    }
}

/// Where a number stands.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Column {
    /// Its place among the template's numbers.
    pub(super) at: usize,
    /// What one is worth: 0.01 where two digits follow the point.
    pub(super) scale: f64,
}

/// A line of a template.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Line<'template> {
    /// What the section is called; empty where the source is a single file.
    pub(super) section: &'template str,
    pub(super) words: Vec<Word<'template>>,
}

impl<'template> Line<'template> {
    /// The first word, where it is text; without a colon at its end.
    pub(super) fn label(&self) -> Option<&'template str> {
        self.words.first()?.text().map(|label| label.trim_end_matches(':'))
    }

    /// The numbers.
    pub(super) fn columns(&self) -> Vec<Column> {
        self.words.iter().filter_map(|word| word.column()).collect()
    }

    /// The number behind a word such as `total=`, or behind a label.
    pub(super) fn named(&self, name: &str) -> Option<Column> {
        let at = self.words.iter().position(|word| word.text() == Some(name))?;
        self.words.get(at + 1)?.column()
    }

    /// The only number of a section of one line.
    pub(super) fn only(&self) -> Option<Column> {
        match self.words.as_slice() {
            [Word::Number(column)] => Some(*column),
            _ => None,
        }
    }
}

/// Begins a section in a source that consists of several files: the line is the section's name.
pub(super) const SECTION: u8 = b'@';
/// Begins the reason why a section could not be read.
pub(super) const FAILURE: u8 = b'!';

/// A template, ready to be looked at.
#[derive(Debug, Default)]
#[expect(clippy::struct_field_names, reason = "the lines are what it is looked at for")]
pub(super) struct Lines<'template> {
    pub(super) lines: Vec<Line<'template>>,
    /// Sections that were read, with lines or without.
    pub(super) sections: Vec<&'template str>,
    /// Sections that could not be read, and why.
    pub(super) failed: Vec<(&'template str, &'template str)>,
}

/// The lines of a template. One that is not UTF-8 was not made by [`take_apart`] and gives no lines.
pub(super) fn lines(template: &[u8]) -> Lines<'_> {
    let mut found = Lines::default();
    let Ok(text) = std::str::from_utf8(template) else { return found };
    let mut section = "";
    let mut at = 0;
    for line in text.split('\n') {
        if let Some(name) = line.strip_prefix(char::from(SECTION)) {
            section = name;
            found.sections.push(name);
            at += numbers_in(name.as_bytes());
            continue;
        }
        if let Some(reason) = line.strip_prefix(char::from(FAILURE)) {
            found.failed.push((section, reason));
            found.sections.retain(|name| *name != section);
            at += numbers_in(reason.as_bytes());
            continue;
        }
        let words = words(line, &mut at);
        if !words.is_empty() {
            found.lines.push(Line { section, words });
        }
    }
    found
}

fn words<'template>(line: &'template str, at: &mut usize) -> Vec<Word<'template>> {
    let mut words = Vec::new();
    for word in line.split([' ', '=']) {
        let mut rest = word;
        while let Some(place) =
            rest.find(|sign: char| sign.is_ascii() && (WHOLE..=LAST).contains(&(sign as u8)))
        {
            let (before, after) = rest.split_at(place);
            if !before.is_empty() {
                words.push(Word::Text(before));
            }
            let places = after.as_bytes().first().map_or(0, |mark| mark - FRACTION);
            words.push(Word::Number(Column { at: *at, scale: 0.1_f64.powi(i32::from(places)) }));
            *at += 1;
            rest = after.get(1..).unwrap_or_default();
        }
        if !rest.is_empty() {
            words.push(Word::Text(rest));
        }
    }
    words
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn apart(text: &[u8], digits: Digits) -> (Vec<u8>, Vec<u64>) {
        let (mut template, mut numbers) = (Vec::new(), Vec::new());
        take_apart(text, digits, &mut template, &mut numbers);
        (template, numbers)
    }

    #[test]
    fn numbers_leave_and_names_stay() {
        let (template, numbers) =
            apart(b"cpu0  12 7\n 24:   3  IR-PCI 2-edge nvme0q1\nsome avg10=0.05 total=9\n", Digits::Decimal);
        assert_eq!(numbers, [12, 7, 3, 5, 9]);
        let found = lines(&template).lines;
        assert_eq!(found[0].label(), Some("cpu0"));
        assert_eq!(found[1].label(), Some("24"));
        assert_eq!(found[1].words.last(), Some(&Word::Text("nvme0q1")));
        let average = found[2].named("avg10").unwrap();
        assert_eq!((average.at, average.scale), (3, 0.1_f64.powi(2)));
        assert_eq!(found[2].named("total").unwrap().at, 4);
    }

    #[test]
    fn width_does_not_matter() {
        assert_eq!(apart(b"x:   9\n", Digits::Decimal).0, apart(b"x:  10\n", Digits::Decimal).0);
    }

    #[test]
    fn hexadecimal() {
        assert_eq!(apart(b"0000011f 00ff xyz 1g\n", Digits::Hexadecimal).1, [0x11f, 0xff]);
    }

    #[test]
    fn what_is_too_large_is_no_number() {
        let (template, numbers) = apart(b"a 99999999999999999999999 12. 1.2.3 5\n", Digits::Decimal);
        assert_eq!(numbers, [5]);
        assert!(template.starts_with(b"a 99999999999999999999999 12. 1.2.3 "));
    }

    #[test]
    fn sections_and_failures() {
        let (template, _) = apart(b"@io\nsome total=5\n@cpu\n!No such file (os error 2)\n", Digits::Decimal);
        let found = lines(&template);
        assert_eq!((found.lines.len(), found.lines[0].section), (1, "io"));
        assert_eq!(found.failed, [("cpu", "No such file (os error 2)")]);
    }

    proptest! {
        #[test]
        fn whatever_is_read(text in proptest::collection::vec(any::<u8>(), 0..400), hex: bool) {
            let digits = if hex { Digits::Hexadecimal } else { Digits::Decimal };
            let (template, numbers) = apart(&text, digits);
            prop_assert_eq!(numbers_in(&template), numbers.len());
            let mut again = Vec::new();
            prop_assert!(follow(&text, digits, &template, &mut again));
            prop_assert_eq!(&again, &numbers);
            let found = lines(&template);
            for column in found.lines.iter().flat_map(Line::columns) {
                prop_assert!(column.at < numbers.len());
            }
            if !text.contains(&SECTION) && !text.contains(&FAILURE) {
                let columns = found.lines.iter().map(|line| line.columns().len()).sum::<usize>();
                prop_assert_eq!(columns, numbers.len());
            }
        }

        /// Whatever is followed has the template and the numbers that taking it apart gives.
        #[test]
        fn following_is_taking_apart(
            words in proptest::collection::vec((word(), word(), 0..5_u8), 0..12),
            hex: bool,
        ) {
            let digits = if hex { Digits::Hexadecimal } else { Digits::Decimal };
            let first: String = words.iter().map(|(word, ..)| word.as_str()).collect();
            let second: String =
                words.iter().map(|(word, other, change)| if *change == 0 { other } else { word }.as_str()).collect();
            let (template, _) = apart(first.as_bytes(), digits);
            let (wanted, expected) = apart(second.as_bytes(), digits);
            let mut numbers = Vec::new();
            let followed = follow(second.as_bytes(), digits, &template, &mut numbers);
            prop_assert_eq!(followed, wanted == template, "{:?} {:?}", first, second);
            if followed {
                prop_assert_eq!(numbers, expected);
            }
        }
    }

    /// Pieces of texts that are easily taken for each other.
    fn word() -> impl Strategy<Value = String> {
        let pieces = [
            " ",
            "  ",
            "\t",
            "\n",
            "=",
            ",",
            ".",
            "a",
            "f",
            "x",
            "?",
            "\u{7}",
            "\u{1}",
            "0",
            "7",
            "12",
            "1.5",
            "2.50",
            "12.",
            "9999999999999999999",
            "99999999999999999999",
            "total=",
        ];
        prop::sample::select(pieces.to_vec()).prop_map(str::to_owned)
    }
}
