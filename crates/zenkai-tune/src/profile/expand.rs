//! Variables and functions in a value: `${name}` and `${f:function:argument}`.
//!
//! In this order, each once and not over its own result: variables that are defined; `\${name}` loses its backslash;
//! functions, the innermost first; `\${f:…}` loses its backslash. What is unknown or fails stays as it is written.

use std::collections::HashMap;

use super::{
    Profile,
    functions::{Functions, Refusal},
};

/// A longer result is refused.
const OUTPUT_LIMIT: usize = 256 << 10;
/// More function calls in one value are refused: each may cost a search through `/proc/cpuinfo`.
const CALL_LIMIT: usize = 500;

/// Values that nest deeper are left as they are.
const DEPTH_LIMIT: usize = 100;

/// A value with its variables and functions replaced.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Expanded {
    /// The text.
    pub text: String,
    /// What could not be replaced, and why; what a profile's `log` says.
    pub notes: Vec<String>,
    /// An assertion of the profile does not hold; its text. The profile must then not be used.
    pub failed_assertion: Option<String>,
}

/// Replaces variables and functions, with the variables of one profile.
#[derive(Clone)]
pub struct Expander<'h> {
    functions: Functions<'h>,
    variables: HashMap<String, String>,
}

impl<'h> Expander<'h> {
    /// Without any variable.
    pub fn new(functions: Functions<'h>) -> Self {
        Self { functions, variables: HashMap::new() }
    }

    /// With a profile's variables.
    pub fn of(profile: &Profile, functions: Functions<'h>) -> Self {
        let variables =
            profile.variables.iter().map(|(name, value)| (name.clone(), value.raw.clone())).collect();
        Self { functions, variables }
    }

    /// Defines a variable, or gives it another value. The value is taken as it is.
    pub(crate) fn define(&mut self, name: &str, value: String) {
        self.variables.insert(name.to_owned(), value);
    }

    /// Replaces what can be replaced. Functions are called now, on the machine as it is now.
    pub fn expand(&self, raw: &str) -> Expanded {
        let mut expanded = Expanded::default();
        let Some(text) = self.replace_variables(raw) else {
            expanded
                .notes
                .push(format!("the value would be longer than {OUTPUT_LIMIT} bytes; left as it is"));
            raw.clone_into(&mut expanded.text);
            return expanded;
        };
        let text = unescape_variables(&text);
        let text = self.call_functions(&text, &mut expanded);
        expanded.text = unescape_functions(&text);
        expanded
    }

    /// Every defined `${name}` that has no backslash before it; nothing when the result is too long.
    fn replace_variables(&self, raw: &str) -> Option<String> {
        let mut out = String::with_capacity(raw.len());
        let mut rest = raw;
        let mut escaped = false;
        while let Some(start) = rest.find("${") {
            let before = &rest[..start];
            escaped = if before.is_empty() { escaped } else { before.ends_with('\\') };
            out.push_str(before);
            let inside = &rest[start + 2..];
            let length = inside.find(|letter: char| !is_word(letter)).unwrap_or(inside.len());
            let (name, after) = inside.split_at(length);
            let found = after.strip_prefix('}').and_then(|after| Some((self.variables.get(name)?, after)));
            match found {
                Some((value, after)) if !escaped => {
                    out.push_str(value);
                    rest = after;
                }
                _ => {
                    out.push_str("${");
                    rest = inside;
                }
            }
            escaped = false;
            if out.len() > OUTPUT_LIMIT {
                return None;
            }
        }
        out.push_str(rest);
        (out.len() <= OUTPUT_LIMIT).then_some(out)
    }

    /// Calls functions from the inside out. A closing brace without an opening one ends it.
    fn call_functions(&self, text: &str, expanded: &mut Expanded) -> String {
        // The text read so far, cut at every `${` that is still open, each piece with whether it is escaped.
        let mut open: Vec<(String, bool)> = Vec::new();
        let mut current = (String::new(), false);
        let (mut calls, mut size) = (0, 0);
        let mut letters = text.char_indices();
        while let Some((at, letter)) = letters.next() {
            match letter {
                '$' if open.len() >= DEPTH_LIMIT => {
                    current.0.push_str(&text[at..]);
                    break;
                }
                '$' if text[at + 1..].starts_with('{') => {
                    letters.next();
                    let escaped = current.0.ends_with('\\');
                    open.push(std::mem::replace(&mut current, ("${".to_owned(), escaped)));
                }
                '}' => {
                    let Some(outer) = open.pop() else {
                        expanded.notes.push("a `}` has no `${`; what follows is left as it is".to_owned());
                        current.0.push_str(&text[at..]);
                        return current.0;
                    };
                    let (piece, escaped) = std::mem::replace(&mut current, outer);
                    calls += 1;
                    let called = if escaped || calls > CALL_LIMIT || size > OUTPUT_LIMIT {
                        None
                    } else {
                        self.call(&piece, expanded)
                    };
                    size += called.as_ref().map_or(0, String::len);
                    match called {
                        Some(result) => current.0.push_str(&result),
                        None => current.0.extend([piece.as_str(), "}"]),
                    }
                }
                other => current.0.push(other),
            }
        }
        if open.len() >= DEPTH_LIMIT {
            expanded.notes.push(format!("more than {DEPTH_LIMIT} `${{` within each other"));
        } else if !open.is_empty() {
            expanded.notes.push("a `${` has no `}`".to_owned());
        }
        if calls > CALL_LIMIT || size > OUTPUT_LIMIT {
            expanded.notes.push("too many functions in one value; the rest is left as it is".to_owned());
        }
        open.push(current);
        open.into_iter().map(|(piece, _)| piece).collect()
    }

    /// Calls the function in `${f:name:arguments`, if it is one.
    fn call(&self, piece: &str, expanded: &mut Expanded) -> Option<String> {
        let mut parts = split_arguments(piece).into_iter();
        if parts.next()? != "${f" {
            return None;
        }
        let name = parts.next().unwrap_or_default();
        let arguments: Vec<String> = parts.collect();
        match self.functions.call(&name, &arguments, &mut expanded.notes) {
            Ok(text) => Some(text),
            Err(Refusal::Holds) => None,
            Err(Refusal::Unexpanded(why)) => {
                expanded.notes.push(why);
                None
            }
            Err(Refusal::Assertion(text)) => {
                expanded.failed_assertion.get_or_insert(text);
                None
            }
        }
    }
}

/// Splits at colons; `\:` is a colon of the text.
fn split_arguments(piece: &str) -> Vec<String> {
    let mut parts = vec![String::new()];
    for letter in piece.chars() {
        let Some(last) = parts.last_mut() else { break };
        match letter {
            ':' if last.ends_with('\\') => {
                last.pop();
                last.push(':');
            }
            ':' => parts.push(String::new()),
            other => last.push(other),
        }
    }
    parts
}

/// `\${name}` becomes `${name}`.
fn unescape_variables(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(start) = rest.find("\\${") {
        let name = &rest[start + 3..];
        let length = name.find(|letter: char| !is_word(letter)).unwrap_or(name.len());
        let is_variable = length > 0 && name[length..].starts_with('}');
        out.push_str(&rest[..start]);
        out.push_str(if is_variable { "${" } else { "\\${" });
        rest = name;
    }
    out.push_str(rest);
    out
}

/// `\${f:…}` becomes `${f:…}`: once a line, and only if a brace closes behind it.
fn unescape_functions(text: &str) -> String {
    let line = |line: &str| match line.find("\\${f:") {
        Some(start) if line[start..].contains('}') => [&line[..start], &line[start + 1..]].concat(),
        _ => line.to_owned(),
    };
    text.split('\n').map(line).collect::<Vec<_>>().join("\n")
}

/// Python's `\w`.
pub(crate) fn is_word(letter: char) -> bool {
    letter.is_alphanumeric() || letter == '_'
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use zenkai_host::FakeHost;

    use super::*;

    fn expander(host: &FakeHost) -> Expander<'_> {
        let mut expander = Expander::new(Functions { host, commands: None });
        for (name, value) in [("a", "1"), ("b", "${c}"), ("c", "x1"), ("d", "$1")] {
            expander.define(name, value.to_owned());
        }
        expander
    }

    /// Seen in tuned 2.20.
    #[test]
    fn as_tuned_does_it() {
        let host = FakeHost::new(&[]);
        for (raw, wanted) in [
            ("${a}", "1"),
            ("\\${a}", "${a}"),
            ("$${a}", "$1"),
            ("${b}${c}", "${c}x1"),
            ("${d}", "$1"),
            ("${zz}", "${zz}"),
            ("\\${zz}", "${zz}"),
            ("\\\\${a}", "\\${a}"),
            ("${f:strip: a : b }", "a  b"),
            ("${f:strip:a\\:b}", "a:b"),
            ("\\${f:strip:a}", "${f:strip:a}"),
            ("\\${f:strip:a\\:b}", "${f:strip:a\\:b}"),
            ("${f:nope:1}", "${f:nope:1}"),
            ("${f:strip:${f:kb2s:4}}", "8"),
            ("${f:kb2s}", "${f:kb2s}"),
            ("${f:strip:${a}", "${f:strip:1"),
            ("x${f:strip:{}}y", "x{}y"),
            ("${f:kb2s:4}}", "8}"),
            ("${f:strip:\\}a}", "\\a}"),
            ("${f:strip:$\\{a}", "$\\{a"),
            ("${f::x}", "${f::x}"),
            ("${f:strip:a\\\\:b}", "a\\:b"),
            ("${f:strip:${f:nope:1}:b}", "${fnope1}b"),
            ("${f:strip:a${b", "${f:strip:a${b"),
            ("}${f:strip:q}", "}${f:strip:q}"),
            ("${f:strip:\\${a}}", "${a}"),
            ("${f:strip:${f:strip:\\:x}:y}", "xy"),
            ("a\\tb", "a\\tb"),
            ("a\\:b", "a\\:b"),
            ("${f}", "${f}"),
        ] {
            assert_eq!(expander(&host).expand(raw).text, wanted, "{raw}");
        }
    }

    #[test]
    fn what_stays_is_told() {
        let host = FakeHost::new(&[]);
        let expanded = expander(&host).expand("${f:exec:date} ${f:assertion:must be 2:${a}:2}");
        assert_eq!(expanded.text, "${f:exec:date} ${f:assertion:must be 2:1:2}");
        assert_eq!(expanded.notes, ["function `exec`: `date` would have to be run, which is not done here"]);
        assert_eq!(expanded.failed_assertion.as_deref(), Some("must be 2"));
    }

    #[test]
    fn growth_is_bounded() {
        let host = FakeHost::new(&[]);
        let mut with = expander(&host);
        with.define("big", "x".repeat(OUTPUT_LIMIT / 2));
        let expanded = with.expand("${big}${big}${big}");
        assert_eq!((expanded.text.as_str(), expanded.notes.len()), ("${big}${big}${big}", 1));
        let expanded = with.expand(&"${f:cpulist_unpack:0-65535}".repeat(1_000));
        assert!(expanded.text.len() < OUTPUT_LIMIT * 4, "{}", expanded.text.len());
        assert_eq!(with.expand(&"${".repeat(30_000)).text.len(), 60_000);
    }

    proptest! {
        #[test]
        fn anything_expands(raw in r"([$\{\}\\:a-d \n]|\$\{f:|strip|cpulist_pack){0,60}") {
            let host = FakeHost::new(&[]);
            let _ = expander(&host).expand(&raw);
        }

        #[test]
        fn plain_text_stays(raw in r"[a-z0-9 ,=/.]{0,60}") {
            let host = FakeHost::new(&[]);
            let expanded = expander(&host).expand(&raw);
            prop_assert_eq!((expanded.text, expanded.notes.len()), (raw, 0));
        }
    }
}
