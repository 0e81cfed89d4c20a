//! The kernel command line, split the way the kernel splits it (`lib/cmdline.c`, `next_arg`).

use serde::{Serialize, Serializer};

/// One argument.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Argument {
    /// What stands before the first `=`.
    pub key: String,
    /// What stands behind it, without quotes; nothing for a bare word.
    pub value: Option<String>,
}

/// The arguments of the kernel, in order. What follows `--` is for init and is not in here.
///
/// Serialises as a list of `key` and `key=value` texts.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CommandLine {
    arguments: Vec<Argument>,
}

impl CommandLine {
    /// Splits a command line. Double quotes keep blanks together; the first `=` ends the key.
    pub fn parse(text: &str) -> Self {
        let arguments = words(text).into_iter().take_while(|word| word != "--").map(|word| argument(&word));
        Self { arguments: arguments.collect() }
    }

    /// All arguments, in order.
    pub fn arguments(&self) -> &[Argument] {
        &self.arguments
    }

    /// The last argument with this key, which is the one that counts for almost all of them: `None` when it is
    /// not there, `Some(None)` for a bare word. As in the kernel, `-` and `_` are the same letter.
    pub fn argument(&self, key: &str) -> Option<Option<&str>> {
        self.all(key).last()
    }

    /// The value of the last argument with this key.
    pub fn value(&self, key: &str) -> Option<&str> {
        self.argument(key).flatten()
    }

    /// Whether there is an argument with this key, bare or not.
    pub fn has(&self, key: &str) -> bool {
        self.argument(key).is_some()
    }

    /// The values of every argument with this key, in order (`console=` and `hugepages=` may be repeated).
    pub fn all<'s, 'k>(&'s self, key: &'k str) -> impl Iterator<Item = Option<&'s str>> + use<'s, 'k> {
        self.arguments
            .iter()
            .filter(move |argument| same_key(&argument.key, key))
            .map(|argument| argument.value.as_deref())
    }
}

impl std::fmt::Display for Argument {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match &self.value {
            None => out.write_str(&self.key),
            Some(value) if value.contains(char::is_whitespace) => write!(out, "{}=\"{value}\"", self.key),
            Some(value) => write!(out, "{}={value}", self.key),
        }
    }
}

impl Serialize for CommandLine {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.arguments.iter().map(ToString::to_string))
    }
}

/// Whether the kernel takes two keys for the same (`kernel/params.c`, `parameq`).
pub(crate) fn same_key(left: &str, right: &str) -> bool {
    let letters = |text: &str| -> Vec<u8> {
        text.bytes().map(|letter| if letter == b'-' { b'_' } else { letter }).collect()
    };
    left.len() == right.len() && letters(left) == letters(right)
}

fn words(text: &str) -> Vec<String> {
    let mut words = Vec::new();
    let mut word = String::new();
    let mut quoted = false;
    for letter in text.chars() {
        if letter == '"' {
            quoted = !quoted;
        }
        if letter.is_whitespace() && !quoted {
            words.push(std::mem::take(&mut word));
        } else {
            word.push(letter);
        }
    }
    words.push(word);
    words.retain(|word| !word.is_empty());
    words
}

fn argument(word: &str) -> Argument {
    let word = unquote(word);
    match word.split_once('=') {
        Some((key, value)) => Argument { key: key.to_owned(), value: Some(unquote(value).to_owned()) },
        None => Argument { key: word.to_owned(), value: None },
    }
}

/// Takes away the quotes around a text; an opening quote alone goes too, as in the kernel.
fn unquote(text: &str) -> &str {
    match text.strip_prefix('"') {
        Some(inner) => inner.strip_suffix('"').unwrap_or(inner),
        None => text,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn quotes_repeats_and_the_end() {
        let line = CommandLine::parse(
            "quiet isolcpus=2-3 dyndbg=\"file a.c +p\" \"b c=d e\" console=tty0 console=ttyS0,9600 intel_idle.max_cstate=0 -- init_arg",
        );
        assert_eq!(line.argument("quiet"), Some(None));
        assert_eq!(line.argument("isolcpus"), Some(Some("2-3")));
        assert_eq!(line.value("dyndbg"), Some("file a.c +p"));
        assert_eq!(line.value("b c"), Some("d e"));
        assert_eq!(line.value("console"), Some("ttyS0,9600"));
        assert_eq!(line.all("console").count(), 2);
        assert_eq!(line.value("intel-idle.max_cstate"), Some("0"));
        assert_eq!(line.argument("init_arg"), None);
        assert_eq!(CommandLine::parse(" \n").arguments(), []);
        assert_eq!(
            serde_json::to_string(&CommandLine::parse("a b=c d=\"e f\"")).unwrap(),
            r#"["a","b=c","d=\"e f\""]"#
        );
    }

    proptest! {
        #[test]
        fn never_panics(text in "[a-z=\"\\- \n\u{e9}]{0,60}") {
            let line = CommandLine::parse(&text);
            let _ = line.has("a");
        }
    }
}
