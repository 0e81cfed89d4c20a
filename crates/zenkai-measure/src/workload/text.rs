//! Finding numbers in what programs write for people.

/// The last line that says something, cut to a length that fits into a sentence.
pub fn last_line(output: &[u8]) -> Option<String> {
    let line = output
        .rsplit(|byte| matches!(byte, b'\n' | b'\r'))
        .map(<[u8]>::trim_ascii)
        .find(|line| !line.is_empty())?;
    let text = String::from_utf8_lossy(line.get(..line.len().min(400)).unwrap_or_default());
    Some(text.chars().filter(|c| !c.is_control()).take(200).collect())
}

/// What follows `label` in its first line that begins with it; blanks before both do not count.
pub(super) fn after<'a>(text: &'a str, label: &str) -> Option<&'a str> {
    text.lines().find_map(|line| line.trim_start().strip_prefix(label)).map(str::trim)
}

/// The number with which `text` begins.
pub(super) fn leading(text: &str) -> Option<f64> {
    split(text)?.0.parse().ok()
}

/// The number with which `text` begins, and the letters that follow it: `1.25ms`, `4.45 MB`.
pub(super) fn with_suffix(text: &str) -> Option<(f64, &str)> {
    let (number, rest) = split(text)?;
    let rest = rest.trim_start();
    let end = rest.find(|c: char| !c.is_ascii_alphabetic()).unwrap_or(rest.len());
    Some((number.parse().ok()?, rest.get(..end)?))
}

fn split(text: &str) -> Option<(&str, &str)> {
    let text = text.trim_start();
    let end = text.find(|c: char| !c.is_ascii_digit() && !matches!(c, '.' | '-' | '+')).unwrap_or(text.len());
    text.split_at_checked(end)
}
