//! Reads kernel attributes into [`Observed`] values.

use std::{fmt::Display, str::FromStr};

use serde::Serialize;
use zenkai_host::{DirEntry, Host, Query, Reply};

use crate::{CpuSet, Observed, Reason};

/// An attribute that shows all its choices with the one in force in brackets: `none [mq-deadline] kyber`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Choice {
    /// The one in force.
    pub current: String,
    /// All of them, in the kernel's order.
    pub available: Vec<String>,
}

/// A host with the few ways kernel attributes are written.
#[derive(Clone, Copy)]
pub struct Reader<'h> {
    host: &'h dyn Host,
}

impl<'h> Reader<'h> {
    /// Reads from this host.
    pub fn new(host: &'h dyn Host) -> Self {
        Self { host }
    }

    /// Raw content.
    pub fn bytes(&self, path: &str) -> Observed<Vec<u8>> {
        match self.host.read(path) {
            Ok(content) => Observed::known(path, content),
            Err(error) => Observed::unavailable(path, Reason::of(&error)),
        }
    }

    /// Content as text, without surrounding white space and NUL bytes.
    pub fn text(&self, path: &str) -> Observed<String> {
        self.bytes(path).parse(|content| {
            let text = String::from_utf8(content).map_err(|_| "not UTF-8".to_owned())?;
            Ok(text.trim_matches(|letter: char| letter.is_whitespace() || letter == '\0').to_owned())
        })
    }

    /// A number, as the kernel prints it in decimal.
    pub fn number<T: FromStr>(&self, path: &str) -> Observed<T> {
        self.parse(path)
    }

    /// Anything with a text form.
    pub fn parse<T: FromStr>(&self, path: &str) -> Observed<T> {
        self.text(path).parse(|text| text.parse().map_err(|_| format!("`{}`", shorten(&text))))
    }

    /// Text whose parser also knows values that mean "there is none" (`-1`, `Unknown`) and says which reason
    /// that is.
    pub fn understood<T>(&self, path: &str, parse: impl FnOnce(&str) -> Result<T, Reason>) -> Observed<T> {
        match self.text(path).outcome().map_err(Clone::clone).and_then(|text| parse(text)) {
            Ok(value) => Observed::known(path, value),
            Err(reason) => Observed::unavailable(path, reason),
        }
    }

    /// A switch: `1`, `Y`, `on`, `enabled` or `0`, `N`, `off`, `disabled`.
    pub fn flag(&self, path: &str) -> Observed<bool> {
        self.text(path).parse(|text| match text.as_str() {
            "1" | "Y" | "y" | "on" | "enabled" => Ok(true),
            "0" | "N" | "n" | "off" | "disabled" => Ok(false),
            _ => Err(format!("`{}` is neither on nor off", shorten(&text))),
        })
    }

    /// A choice in brackets; a bare word counts as the only choice.
    pub fn choice(&self, path: &str) -> Observed<Choice> {
        self.text(path).parse(|text| {
            let bare = |word: &str| word.trim_matches(['[', ']']).to_owned();
            let words: Vec<&str> = text.split_whitespace().collect();
            let marked = words.iter().find(|word| word.starts_with('[') && word.ends_with(']'));
            let current = match (marked, words.as_slice()) {
                (Some(word), _) => bare(word),
                (None, [only]) => (*only).to_owned(),
                _ => return Err(format!("`{}` marks no choice", shorten(&text))),
            };
            Ok(Choice { current, available: words.into_iter().map(bare).collect() })
        })
    }

    /// Words separated by white space.
    pub fn words(&self, path: &str) -> Observed<Vec<String>> {
        self.text(path).map(|text| text.split_whitespace().map(str::to_owned).collect())
    }

    /// A CPU list.
    pub fn cpu_set(&self, path: &str) -> Observed<CpuSet> {
        self.text(path).parse(|text| text.parse())
    }

    /// The entries of a directory, sorted by name.
    pub fn entries(&self, dir: &str) -> Observed<Vec<DirEntry>> {
        match self.host.list(dir) {
            Ok(entries) => Observed::known(dir, entries),
            Err(error) => Observed::unavailable(dir, Reason::of(&error)),
        }
    }

    /// The names in a directory, sorted so that `cpu10` follows `cpu9`.
    pub fn names(&self, dir: &str) -> Observed<Vec<String>> {
        self.entries(dir).map(|entries| {
            let mut names: Vec<String> = entries.into_iter().map(|entry| entry.name).collect();
            names.sort_by_key(|name| natural_key(name));
            names
        })
    }

    /// The numbers `N` of the entries `<prefix>N` in a directory, ascending.
    pub fn numbered(&self, dir: &str, prefix: &str) -> Observed<Vec<u32>> {
        self.entries(dir).map(|entries| {
            let number = |entry: &DirEntry| entry.name.strip_prefix(prefix)?.parse::<u32>().ok();
            let mut numbers: Vec<u32> = entries.iter().filter_map(number).collect();
            numbers.sort_unstable();
            numbers
        })
    }

    /// Where a link leads, as a canonical path.
    pub fn resolve(&self, path: &str) -> Observed<String> {
        match self.host.resolve(path) {
            Ok(target) => Observed::known(path, target),
            Err(error) => Observed::unavailable(path, Reason::of(&error)),
        }
    }

    /// The answer to a query, understood by `read`; `None` from it means the answer has another shape.
    pub fn query<T>(&self, query: &Query, read: impl FnOnce(&Reply) -> Option<T>) -> Observed<T> {
        let source = query.to_string();
        match self.host.query(query) {
            Ok(reply) => match read(&reply) {
                Some(value) => Observed::known(source, value),
                None => Observed::unavailable(source, Reason::Malformed("an answer of another shape".into())),
            },
            Err(error) => Observed::unavailable(source, Reason::of(&error)),
        }
    }
}

/// What is quoted of a value that was not understood.
fn shorten(text: &str) -> String {
    text.chars().take(40).collect()
}

/// Splits a name so that its trailing number sorts as a number.
fn natural_key(name: &str) -> (String, u64, String) {
    let stem = name.trim_end_matches(|letter: char| letter.is_ascii_digit());
    (stem.to_owned(), name[stem.len()..].parse().unwrap_or(0), name.to_owned())
}

/// Joins a directory and a name.
pub(crate) fn join(dir: &str, name: impl Display) -> String {
    format!("{}/{name}", dir.trim_end_matches('/'))
}

#[cfg(test)]
mod tests {
    use zenkai_host::FakeHost;

    use super::*;

    #[test]
    fn the_ways_attributes_are_written() {
        let host = FakeHost::new(&[
            ("/thp", "always [madvise] never\n"),
            ("/scheduler", "none\n"),
            ("/flag", "Y\n"),
            ("/odd", "banana\n"),
            ("/sys/cpu2/x", "1\n"),
            ("/sys/cpu10/x", "1\n"),
            ("/sys/cpufreq/x", "1\n"),
        ])
        .unreadable("/speed", 22);
        let reader = Reader::new(&host);
        assert_eq!(reader.choice("/thp").get().unwrap().current, "madvise");
        assert_eq!(reader.choice("/scheduler").get().unwrap().available, ["none"]);
        assert_eq!(reader.flag("/flag").value(), Some(true));
        assert!(matches!(reader.number::<u64>("/odd").reason(), Some(Reason::Malformed(_))));
        assert_eq!(reader.number::<u64>("/speed").reason(), Some(&Reason::Failed("EINVAL".into())));
        assert!(reader.text("/missing").is_absent());
        assert_eq!(reader.numbered("/sys", "cpu").get().unwrap(), &[2, 10]);
        assert_eq!(reader.names("/sys").get().unwrap(), &["cpu2", "cpu10", "cpufreq"]);
    }
}
