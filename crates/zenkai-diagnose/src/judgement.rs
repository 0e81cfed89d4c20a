//! What a check concluded.

use serde::Serialize;
use zenkai_facts::{Observed, Reason};

use crate::Finding;

/// Something a check needed and could not have.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct Unjudged {
    /// The path or query.
    pub source: String,
    /// Why, as the word facts use: `absent`, `denied`, `not-asked` …
    pub kind: &'static str,
    /// Why, in words.
    pub reason: String,
    /// What would make it readable.
    pub remedy: String,
}

const RUN_AS_ROOT: &str = "run zenkai as root";

impl Unjudged {
    /// Whether root could have read it.
    pub fn needs_root(&self) -> bool {
        self.kind == Reason::Denied.word() && self.remedy == RUN_AS_ROOT
    }

    /// What is refused to root as well takes something else to read.
    #[must_use]
    pub(crate) fn seen_by(self, root: bool) -> Self {
        if !root || !self.needs_root() {
            return self;
        }
        Self {
            reason: "refused even to root".to_owned(),
            remedy: "boot without kernel lockdown (Secure Boot), or look from outside this container"
                .to_owned(),
            ..self
        }
    }

    /// Whether it is only read when asked for, as the probe is.
    pub fn is_not_asked(&self) -> bool {
        self.kind == Reason::NotAsked(String::new()).word()
    }

    fn new(source: &str, reason: &Reason) -> Self {
        let remedy = match reason {
            Reason::Denied => RUN_AS_ROOT.to_owned(),
            Reason::NotRecorded => "make the capture again with this version of zenkai".to_owned(),
            Reason::NotAsked(_) => "ask for it".to_owned(),
            // Registers are only asked of CPUs that are not a hypervisor's.
            Reason::Absent if source.starts_with("msr ") => "modprobe msr (as root)".to_owned(),
            Reason::Absent => "nothing on this machine: its kernel or hardware does not have it".to_owned(),
            Reason::NotApplicable(_) | Reason::Malformed(_) | Reason::Failed(_) => {
                "please report it, with a capture".to_owned()
            }
        };
        Self { source: source.to_owned(), kind: reason.word(), reason: reason.to_string(), remedy }
    }
}

/// Why a check, or one subject of it, did not come to a yes or no.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Outcome {
    /// Something could not be read.
    Unjudged(Unjudged),
    /// The question makes no sense here, for this reason.
    NotApplicable(String),
}

impl Outcome {
    /// The question makes no sense here.
    pub fn not_applicable(why: impl Into<String>) -> Self {
        Self::NotApplicable(why.into())
    }
}

/// The value, or the reason why the check cannot judge without it.
///
/// A value that does not apply on this machine makes the question not applicable; everything else that is
/// unavailable leaves it unjudged.
pub fn need<T>(reading: &Observed<T>) -> Result<&T, Outcome> {
    reading.outcome().map_err(|reason| match reason {
        Reason::NotApplicable(why) => Outcome::NotApplicable(why.clone()),
        other => Outcome::Unjudged(Unjudged::new(reading.source(), other)),
    })
}

/// The value; where the kernel or the machine does not have it, the question does not apply, for this reason.
///
/// Most of what is absent cannot be made readable by anyone, so that "could not be judged" would only be noise.
pub fn need_or_not_applicable<'a, T>(reading: &'a Observed<T>, why_absent: &str) -> Result<&'a T, Outcome> {
    if reading.is_absent() { Err(Outcome::not_applicable(why_absent)) } else { need(reading) }
}

/// Everything one check has to say: several subjects may be judged differently, and one unreadable disk must not
/// hide what is wrong with another.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Judgement {
    /// The problems.
    pub findings: Vec<Finding>,
    /// What could not be judged.
    pub unjudged: Vec<Unjudged>,
    /// Why the question does not apply, when it does not.
    pub not_applicable: Option<String>,
    /// How many subjects were judged, for good or bad.
    pub judged: usize,
}

impl Judgement {
    /// Judges each subject by itself.
    pub fn each<S>(
        subjects: impl IntoIterator<Item = S>,
        mut judge: impl FnMut(S) -> Result<Option<Finding>, Outcome>,
    ) -> Self {
        let mut judgement = Self::default();
        for subject in subjects {
            judgement.add(judge(subject));
        }
        if judgement.judged == 0 && judgement.unjudged.is_empty() && judgement.not_applicable.is_none() {
            judgement.not_applicable = Some("there is none here".to_owned());
        }
        judgement.unjudged.sort();
        judgement.unjudged.dedup();
        judgement
    }

    fn add(&mut self, result: Result<Option<Finding>, Outcome>) {
        match result {
            Ok(finding) => {
                self.judged += 1;
                self.findings.extend(finding);
            }
            Err(Outcome::Unjudged(unjudged)) => self.unjudged.push(unjudged),
            Err(Outcome::NotApplicable(why)) => self.not_applicable = Some(why),
        }
    }
}

/// A check about the machine as a whole.
impl From<Result<Option<Finding>, Outcome>> for Judgement {
    fn from(result: Result<Option<Finding>, Outcome>) -> Self {
        let mut judgement = Self::default();
        judgement.add(result);
        judgement
    }
}

/// A check that came to nothing at all.
impl From<Outcome> for Judgement {
    fn from(outcome: Outcome) -> Self {
        Err::<Option<Finding>, Outcome>(outcome).into()
    }
}

/// Judgements on a list that may itself be unreadable.
impl From<Result<Self, Outcome>> for Judgement {
    fn from(result: Result<Self, Outcome>) -> Self {
        result.unwrap_or_else(Self::from)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Subject;

    #[test]
    fn one_unreadable_subject_does_not_hide_another() {
        let readings = [
            Observed::known("/a", 1_u64),
            Observed::unavailable("/b", Reason::Denied),
            Observed::known("/c", 2),
            Observed::unavailable("/d", Reason::NotApplicable("a guest".into())),
        ];
        let judgement = Judgement::each(&readings, |reading| {
            Ok((*need(reading)? > 1).then(|| Finding::new(Subject::device(reading.source()), "too large")))
        });
        assert_eq!(judgement.findings.len(), 1);
        assert_eq!(judgement.judged, 2);
        assert!(judgement.unjudged[0].needs_root());
        assert_eq!(judgement.not_applicable.as_deref(), Some("a guest"));
        let absent = Observed::<u64>::unavailable("/e", Reason::Absent);
        assert!(matches!(need(&absent), Err(Outcome::Unjudged(_))));
        assert_eq!(need_or_not_applicable(&absent, "no e"), Err(Outcome::not_applicable("no e")));
        assert_eq!(need_or_not_applicable(&readings[0], "no a"), Ok(&1));
        let none = Judgement::each(Vec::<u8>::new(), |_| Ok(None));
        assert!(none.not_applicable.is_some());
    }
}
