//! Regular expressions as Python's `re` has them, `search` and `match` kept apart.
//!
//! Profiles use look-around and back-references, so the engine backtracks; it gives up after a fixed number of steps.
//! Differences in spelling are translated: `$` (also before a last newline) and `\Z`, a brace that is no repetition,
//! `{,n}`, what has a meaning in Rust's character classes only, and a backslash before punctuation. Not supported are
//! named characters (`\N{…}`), octal escapes, conditionals on names, and flags that are switched within a pattern
//! other than at its start or for a group.

use fancy_regex::{Regex, RegexBuilder};

/// Steps after which a match is given up.
const BACKTRACK_LIMIT: usize = 200_000;
/// A longer pattern is refused.
const PATTERN_LIMIT: usize = 8 << 10;
/// Bytes that the compiled form of a pattern may take.
const SIZE_LIMIT: usize = 2 << 20;

/// The flags that profiles' expressions are used with.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Flags {
    /// `re.MULTILINE`: `^` and `$` match at every line.
    pub multiline: bool,
    /// `re.DOTALL`: `.` matches a newline too.
    pub dotall: bool,
    /// `re.IGNORECASE`.
    pub ignore_case: bool,
}

/// A pattern that is looked for in many texts.
pub(crate) struct Pattern(Regex);

impl Pattern {
    /// Without flags but those at its start; otherwise why it is no expression.
    pub(crate) fn new(pattern: &str) -> Result<Self, String> {
        compile(pattern, Flags::default(), "").map(Self)
    }

    /// Whether it is found anywhere in the text; not if that takes too long to tell.
    pub(crate) fn is_in(&self, text: &str) -> bool {
        self.0.is_match(text).unwrap_or(false)
    }
}

/// Whether the pattern is found anywhere in the text (`re.search`); otherwise why that cannot be told.
pub fn search(pattern: &str, text: &str, flags: Flags) -> Result<bool, String> {
    run(pattern, text, flags, "")
}

/// Whether the pattern matches at the very start of the text (`re.match`); otherwise why that cannot be told.
pub fn matches(pattern: &str, text: &str, flags: Flags) -> Result<bool, String> {
    run(pattern, text, flags, r"\A")
}

fn run(pattern: &str, text: &str, flags: Flags, anchor: &str) -> Result<bool, String> {
    let regex = compile(pattern, flags, anchor)?;
    regex
        .is_match(text)
        .map_err(|error| format!("the expression `{}` takes too long: {error}", shorten(pattern)))
}

fn compile(pattern: &str, flags: Flags, anchor: &str) -> Result<Regex, String> {
    if pattern.len() > PATTERN_LIMIT {
        return Err(format!("an expression of {} bytes; at most {PATTERN_LIMIT} are taken", pattern.len()));
    }
    let (pattern, flags, verbose) = inline_flags(pattern, flags);
    let mut letters = String::new();
    for (on, letter) in
        [(flags.multiline, 'm'), (flags.dotall, 's'), (flags.ignore_case, 'i'), (verbose, 'x')]
    {
        if on {
            letters.push(letter);
        }
    }
    let head = if letters.is_empty() { String::new() } else { format!("(?{letters})") };
    let body = translate(pattern, flags.multiline);
    // A verbose pattern may end in a comment, which must not swallow the bracket.
    let end = if verbose { "\n)" } else { ")" };
    RegexBuilder::new(&format!("{head}{anchor}(?:{body}{end}"))
        .backtrack_limit(BACKTRACK_LIMIT)
        .delegate_size_limit(SIZE_LIMIT)
        .delegate_dfa_size_limit(SIZE_LIMIT)
        .build()
        .map_err(|error| format!("`{}` is no regular expression: {error}", shorten(pattern)))
}

/// Flags for the whole pattern, which Python takes at its start only.
fn inline_flags(pattern: &str, mut flags: Flags) -> (&str, Flags, bool) {
    let mut verbose = false;
    let Some((letters, rest)) = pattern.strip_prefix("(?").and_then(|rest| rest.split_once(')')) else {
        return (pattern, flags, verbose);
    };
    if letters.is_empty() || !letters.chars().all(|letter| "aiLmsux".contains(letter)) {
        return (pattern, flags, verbose);
    }
    flags.multiline |= letters.contains('m');
    flags.dotall |= letters.contains('s');
    flags.ignore_case |= letters.contains('i');
    verbose |= letters.contains('x');
    (rest, flags, verbose)
}

fn translate(pattern: &str, multiline: bool) -> String {
    let letters: Vec<char> = pattern.chars().collect();
    let mut out = String::with_capacity(pattern.len() + 16);
    let mut at = 0;
    while let Some(&letter) = letters.get(at) {
        let rest = &letters[at + 1..];
        at += 1;
        match letter {
            '\\' => at += escape(rest.first().copied(), &mut out),
            '[' => at += class(rest, &mut out),
            '$' if !multiline => out.push_str(r"(?=\n?\z)"),
            '{' => match repetition(rest) {
                Some((text, width)) => {
                    out.push_str(&text);
                    at += width;
                }
                None => out.push_str(r"\{"),
            },
            '}' => out.push_str(r"\}"),
            other => out.push(other),
        }
    }
    out
}

/// What stands for `\` and the letter after it; gives how many letters were taken.
fn escape(next: Option<char>, out: &mut String) -> usize {
    match next {
        Some('Z') => out.push_str(r"\z"),
        // `\<` and `\>` are plain letters in Python and the ends of a word elsewhere.
        Some(letter @ ('<' | '>')) => out.push(letter),
        Some(letter) if letter.is_ascii_alphanumeric() || is_special(letter) => {
            out.push('\\');
            out.push(letter);
        }
        Some(letter) => out.push(letter),
        None => {
            out.push('\\');
            return 0;
        }
    }
    1
}

fn is_special(letter: char) -> bool {
    r"\.+*?()|[]{}^$#&-~ ".contains(letter)
}

/// `{n}`, `{n,}`, `{n,m}` or `{,m}`, without the first brace.
fn repetition(rest: &[char]) -> Option<(String, usize)> {
    let end = rest.iter().take(16).position(|letter| *letter == '}')?;
    let inside: String = rest[..end].iter().collect();
    let (from, to) = inside.split_once(',').unwrap_or((&inside, "0"));
    let is_number = |text: &str| text.chars().all(|letter| letter.is_ascii_digit());
    if !is_number(from) || !is_number(to) || inside.is_empty() || inside == "," {
        return None;
    }
    let zero = if from.is_empty() { "0" } else { "" };
    Some((format!("{{{zero}{inside}}}"), end + 1))
}

/// A character class without its first bracket; gives how many letters were taken.
fn class(rest: &[char], out: &mut String) -> usize {
    let start = usize::from(rest.first() == Some(&'^'));
    let mut at = start;
    let mut inside = String::new();
    loop {
        match rest.get(at) {
            // Not closed: the engine says so.
            None => break,
            Some(']') if at > start => break,
            Some('\\') => {
                inside.push('\\');
                at += 1;
                if let Some(letter) = rest.get(at) {
                    inside.push(*letter);
                }
            }
            Some(letter @ ('[' | ']' | '&' | '~')) => inside.extend(['\\', *letter]),
            Some('-') if rest.get(at + 1) == Some(&'-') || inside.ends_with('-') => inside.push_str(r"\-"),
            Some(letter) => inside.push(*letter),
        }
        at += 1;
    }
    out.push('[');
    out.push_str(if start == 1 { "^" } else { "" });
    out.push_str(&inside);
    if at < rest.len() {
        out.push(']');
    }
    (at + 1).min(rest.len())
}

fn shorten(text: &str) -> String {
    text.chars().take(60).collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn found(pattern: &str, text: &str) -> bool {
        search(pattern, text, Flags::default()).unwrap()
    }

    #[test]
    fn spelled_as_in_python() {
        for (pattern, text, wanted) in [
            ("b", "abc", true),
            ("^b", "abc", false),
            ("c$", "abc\n", true),
            ("c$", "abc\n\n", false),
            (r"c\Z", "abc\n", false),
            (r"(?<!a)b", "ab", false),
            (r"(a)\1", "aa", true),
            (r"\bfoo\b", "a foo b", true),
            ("a{b", "a{b", true),
            ("a{,2}c", "aac", true),
            ("[[]", "[", true),
            ("[]x]", "]", true),
            ("[^]x]", "]", false),
            ("[a&&b]", "&", true),
            (r"\<a\>", "<a>", true),
            (r"a\/b", "a/b", true),
            (r"\d+(?= MHz)", "1 MHz", true),
            ("(?i)ABC", "abc", true),
            ("(?P<n>a)(?P=n)", "aa", true),
            ("", "", true),
            (r"^\w+$", "größe", true),
            (r"\bé", "l é", true),
            (r"\bé", "lé", false),
            (r"\W", "é", false),
            (r"^\d\s$", "٣\u{a0}", true),
            ("(?i)GRÖSSE", "größe", false),
            ("(?i)ÉTÉ", "été", true),
            ("^.$", "é", true),
            ("^[^a]$", "é", true),
            ("[à-ý]", "é", true),
        ] {
            assert_eq!(found(pattern, text), wanted, "{pattern:?} in {text:?}");
        }
    }

    #[test]
    fn search_and_match_differ() {
        let flags = Flags { multiline: true, ..Flags::default() };
        assert_eq!(search("^b$", "a\nb\nc", flags), Ok(true));
        assert_eq!(matches("^b$", "a\nb\nc", flags), Ok(false));
        assert_eq!(matches("b|a", "a", Flags::default()), Ok(true));
        assert_eq!(matches("a.c", "a\nc", Flags { dotall: true, ..Flags::default() }), Ok(true));
        assert_eq!(matches("ab", "AB", Flags { ignore_case: true, ..Flags::default() }), Ok(true));
        assert_eq!(matches("(?x) a b # c", "ab", Flags::default()), Ok(true));
    }

    #[test]
    fn hostile_patterns_are_refused() {
        assert!(search(r"(a+)+(?=\1b)$", &"a".repeat(60), Flags::default()).is_err());
        assert!(search("(a{1000}){1000}", "a", Flags::default()).is_err());
        assert!(search("(", "a", Flags::default()).is_err());
        assert!(search("[a", "a", Flags::default()).is_err());
        assert!(search(&"(".repeat(8_000), "a", Flags::default()).is_err());
        assert!(search(&"a".repeat(10_000), "a", Flags::default()).is_err());
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(128))]
        #[test]
        fn any_pattern_is_taken_or_refused(pattern in r"[\[\]\(\){}^$|\\.*+?:=!<>a-cPZ0-9,-]{0,24}") {
            let _ = search(&pattern, "abc\nabc", Flags::default());
            let _ = matches(&pattern, "abc\nabc", Flags { multiline: true, ..Flags::default() });
        }
    }
}
