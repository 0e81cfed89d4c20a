//! A value with the place it came from, or the reason there is none.

use std::io;

use rustix_free_errno::{EACCES, EPERM};
use serde::{
    Serialize, Serializer,
    ser::{SerializeMap, SerializeStruct},
};
use zenkai_host::{NotRecorded, errno_name};

use crate::tree::{MISSING, READ};

/// The two error numbers that mean "not allowed"; the same on every Linux architecture.
mod rustix_free_errno {
    pub(super) const EPERM: i32 = 1;
    pub(super) const EACCES: i32 = 13;
}

/// Why a value is unavailable.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Reason {
    /// The kernel or the hardware does not have it (`ENOENT`).
    Absent,
    /// We may not read it; root could.
    Denied,
    /// The capture or directory does not hold it; the machine may.
    NotRecorded,
    /// It makes no sense on this machine, for the stated reason.
    NotApplicable(String),
    /// It was read but could not be understood; what was wrong.
    Malformed(String),
    /// Reading failed with this errno.
    Failed(String),
    /// It is only read when asked for; how to ask.
    NotAsked(String),
}

impl Reason {
    /// The reason behind an error from a host.
    pub fn of(error: &io::Error) -> Self {
        if NotRecorded::is(error) {
            return Self::NotRecorded;
        }
        match error.kind() {
            io::ErrorKind::NotFound => Self::Absent,
            _ if matches!(error.raw_os_error(), Some(EPERM | EACCES)) => Self::Denied,
            _ => Self::Failed(errno_name(error)),
        }
    }

    /// A short machine-readable word.
    pub fn word(&self) -> &'static str {
        match self {
            Self::Absent => "absent",
            Self::Denied => "denied",
            Self::NotRecorded => "not-recorded",
            Self::NotApplicable(_) => "not-applicable",
            Self::Malformed(_) => "malformed",
            Self::Failed(_) => "failed",
            Self::NotAsked(_) => "not-asked",
        }
    }

    /// The reason behind its word; a word that nobody knows is an error of that name.
    pub(crate) fn from_word(word: &str, detail: String) -> Self {
        match word {
            "absent" => Self::Absent,
            "denied" => Self::Denied,
            "not-recorded" => Self::NotRecorded,
            "not-applicable" => Self::NotApplicable(detail),
            "malformed" => Self::Malformed(detail),
            "not-asked" => Self::NotAsked(detail),
            _ => Self::Failed(detail),
        }
    }

    /// What there is to add to the word, if anything.
    pub fn detail(&self) -> Option<&str> {
        match self {
            Self::Absent | Self::Denied | Self::NotRecorded => None,
            Self::NotApplicable(text) | Self::Malformed(text) | Self::Failed(text) | Self::NotAsked(text) => {
                Some(text)
            }
        }
    }
}

impl std::fmt::Display for Reason {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Absent => out.write_str("this kernel or machine does not have it"),
            Self::Denied => out.write_str("needs root"),
            Self::NotRecorded => out.write_str("not in this capture"),
            Self::NotApplicable(why) => write!(out, "does not apply: {why}"),
            Self::Malformed(what) => write!(out, "not understood: {what}"),
            Self::Failed(errno) => write!(out, "reading failed with {errno}"),
            Self::NotAsked(how) => out.write_str(how),
        }
    }
}

/// A value and where it was read, or where it was looked for and why there is none.
///
/// Serialises as the plain value, or as `{"unavailable": word, "source": where, "detail": text}`; for
/// [`Node`](crate::Node) with its source in either case.
#[derive(Debug, Clone, PartialEq)]
pub struct Observed<T> {
    source: String,
    outcome: Result<T, Reason>,
}

impl<T> Observed<T> {
    /// A value that was read at `source` (a path, or a query's text form).
    pub fn known(source: impl Into<String>, value: T) -> Self {
        Self { source: source.into(), outcome: Ok(value) }
    }

    /// No value at `source`.
    pub fn unavailable(source: impl Into<String>, reason: Reason) -> Self {
        Self { source: source.into(), outcome: Err(reason) }
    }

    /// The value, when known.
    pub fn get(&self) -> Option<&T> {
        self.outcome.as_ref().ok()
    }

    /// The path or query it was looked for at.
    pub fn source(&self) -> &str {
        &self.source
    }

    /// The value, or why there is none.
    pub fn outcome(&self) -> Result<&T, &Reason> {
        self.outcome.as_ref()
    }

    /// Why there is no value, when there is none.
    pub fn reason(&self) -> Option<&Reason> {
        self.outcome.as_ref().err()
    }

    /// Whether the kernel or machine simply does not have it.
    pub fn is_absent(&self) -> bool {
        self.reason() == Some(&Reason::Absent)
    }

    /// The same reading, seen otherwise.
    pub fn map<U>(self, change: impl FnOnce(T) -> U) -> Observed<U> {
        Observed { source: self.source, outcome: self.outcome.map(change) }
    }

    /// The same reading, understood further; the error says what is wrong with it.
    pub fn parse<U>(self, change: impl FnOnce(T) -> Result<U, String>) -> Observed<U> {
        let outcome = self.outcome.and_then(|value| change(value).map_err(Reason::Malformed));
        Observed { source: self.source, outcome }
    }

    /// This reading, unless its value is one that stands for "there is none": then it does not apply, for this reason.
    #[must_use]
    pub fn unless(self, is_none: impl FnOnce(&T) -> bool, why: &str) -> Self {
        let outcome = match self.outcome {
            Ok(value) if is_none(&value) => Err(Reason::NotApplicable(why.to_owned())),
            other => other,
        };
        Self { source: self.source, outcome }
    }

    /// This reading, except that one way of failing is an answer: then it does not apply, for this reason.
    #[must_use]
    pub fn not_applicable_when(self, answers: impl FnOnce(&Reason) -> bool, why: &str) -> Self {
        let outcome = self
            .outcome
            .map_err(|reason| if answers(&reason) { Reason::NotApplicable(why.to_owned()) } else { reason });
        Self { source: self.source, outcome }
    }

    /// This reading, or the other one when this has no value.
    #[must_use]
    pub fn or_else(self, other: impl FnOnce() -> Self) -> Self {
        if self.outcome.is_ok() { self } else { other() }
    }
}

impl<T: Copy> Observed<T> {
    /// A copy of the value, when known.
    pub fn value(&self) -> Option<T> {
        self.get().copied()
    }
}

impl Observed<String> {
    /// The text, when known.
    pub fn text(&self) -> Option<&str> {
        self.get().map(String::as_str)
    }
}

/// A reading without a value, for [`Node`](crate::Node): the same code for every type of value.
struct Missing<'o> {
    source: &'o str,
    reason: &'o Reason,
}

impl Serialize for Missing<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut missing = serializer.serialize_struct(MISSING, 3)?;
        missing.serialize_field("source", self.source)?;
        missing.serialize_field("word", self.reason.word())?;
        missing.serialize_field("detail", self.reason.detail().unwrap_or_default())?;
        missing.end()
    }
}

impl<T: Serialize> Observed<T> {
    fn with_source<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match &self.outcome {
            Ok(value) => {
                let mut read = serializer.serialize_struct(READ, 2)?;
                read.serialize_field("source", &self.source)?;
                read.serialize_field("value", value)?;
                read.end()
            }
            Err(reason) => Missing { source: &self.source, reason }.serialize(serializer),
        }
    }
}

impl<T: Serialize> Serialize for Observed<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        if !serializer.is_human_readable() {
            return self.with_source(serializer);
        }
        match &self.outcome {
            Ok(value) => value.serialize(serializer),
            Err(reason) => {
                let mut map = serializer.serialize_map(None)?;
                map.serialize_entry("unavailable", reason.word())?;
                map.serialize_entry("source", &self.source)?;
                if let Some(detail) = reason.detail() {
                    map.serialize_entry("detail", detail)?;
                }
                map.end()
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn some_answers_mean_that_there_is_none() {
        let why = Some(&Reason::NotApplicable("none".into())).cloned();
        assert_eq!(Observed::known("/a", 0).unless(|value| *value == 0, "none").reason().cloned(), why);
        assert_eq!(Observed::known("/a", 1).unless(|value| *value == 0, "none").value(), Some(1));
        let absent = || Observed::<u64>::unavailable("/a", Reason::Absent);
        let is_absent = |reason: &Reason| *reason == Reason::Absent;
        assert_eq!(absent().not_applicable_when(is_absent, "none").reason().cloned(), why);
        assert!(absent().not_applicable_when(|reason| *reason == Reason::Denied, "none").is_absent());
    }

    #[test]
    fn absence_is_data() {
        let known = Observed::known("/a", 7_u64);
        assert_eq!(serde_json::to_string(&known).unwrap(), "7");
        let denied = Observed::<u64>::unavailable("/a", Reason::of(&io::Error::from_raw_os_error(13)));
        assert_eq!(serde_json::to_string(&denied).unwrap(), r#"{"unavailable":"denied","source":"/a"}"#);
        let odd = known.parse(|value| if value < 5 { Ok(value) } else { Err("too large".to_owned()) });
        assert_eq!(
            serde_json::to_string(&odd).unwrap(),
            r#"{"unavailable":"malformed","source":"/a","detail":"too large"}"#
        );
        assert_eq!(Reason::of(&NotRecorded::error()), Reason::NotRecorded);
        assert_eq!(Reason::of(&io::Error::from_raw_os_error(22)), Reason::Failed("EINVAL".into()));
    }
}
