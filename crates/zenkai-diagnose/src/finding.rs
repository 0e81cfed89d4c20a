//! What was found, with the evidence.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};
use zenkai_facts::{CpuSet, Observed};
use zenkai_tune::Setting;

/// How much a problem costs, as a class. Ordered from least to most.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Impact {
    /// Nothing to nothing much; it depends on the work.
    Depends,
    /// A few per cent at most.
    Small,
    /// Around ten per cent, or rare but painful stalls.
    Moderate,
    /// A quarter or more of the machine.
    Large,
}

impl std::fmt::Display for Impact {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.write_str(match self {
            Self::Depends => "depends",
            Self::Small => "small",
            Self::Moderate => "moderate",
            Self::Large => "large",
        })
    }
}

/// One thing that was read, and what a machine at full speed would show.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Evidence {
    /// The path or query it was read from.
    pub source: String,
    /// What was read.
    pub value: String,
    /// What would be expected instead; nothing when the value only supports the case.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub expected: Option<String>,
    /// Whether there was a value; supporting evidence that is not there is left out of a finding.
    #[serde(skip)]
    known: bool,
}

impl Evidence {
    /// Evidence from a value that was read. The source comes from the reading itself, so that it cannot drift
    /// from what was really looked at.
    pub fn of<T: ToString>(reading: &Observed<T>) -> Self {
        let value = reading.get().map(ToString::to_string);
        let (known, value) = (value.is_some(), value.unwrap_or_default());
        Self { source: reading.source().to_owned(), value, expected: None, known }
    }

    /// Evidence from a switch, as its file shows it: `Y` or `N` for a module's parameter, else `1` or `0`.
    pub fn of_switch(reading: &Observed<bool>) -> Self {
        let letters = reading.source().contains("/parameters/");
        Self::of(&reading.clone().map(|on| match (on, letters) {
            (true, true) => "Y",
            (false, true) => "N",
            (true, false) => "1",
            (false, false) => "0",
        }))
    }

    /// One part of a reading that holds more: a line of a file, a field of an answer.
    pub fn part<T>(reading: &Observed<T>, value: impl ToString) -> Self {
        Self { known: reading.get().is_some(), ..Self::derived(reading.source(), value) }
    }

    /// Evidence that was derived from several readings; `source` names them.
    pub fn derived(source: impl Into<String>, value: impl ToString) -> Self {
        Self { source: source.into(), value: value.to_string(), expected: None, known: true }
    }

    /// Adds what would be expected.
    #[must_use]
    pub fn expected(self, expected: impl ToString) -> Self {
        Self { expected: Some(expected.to_string()), ..self }
    }
}

/// What can be done about it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Remedy {
    /// Settings that zenkai can apply and undo.
    Set(Vec<Setting>),
    /// Something a person does on the running system.
    Do(String),
    /// A setting in the firmware.
    Firmware(String),
    /// Work on the hardware.
    Hardware(String),
    /// A setting of the hypervisor or the cloud, which the guest cannot reach.
    Hypervisor(String),
    /// Nothing to do; it is good to know.
    None,
}

/// What a finding is about. Findings that say the same of several subjects are folded into one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Subject {
    /// The machine as a whole.
    Machine,
    /// CPUs, as after `CPUs 0-63`.
    Cpus(CpuSet),
    /// NUMA nodes.
    Nodes(CpuSet),
    /// Devices, files or other named things: `nvme0n1`, `eth0`, `/var/lib/pgsql`.
    Devices(Vec<String>),
}

impl Subject {
    /// One named thing.
    pub fn device(name: impl Into<String>) -> Self {
        Self::Devices(vec![name.into()])
    }

    /// All subjects as one; they are of one kind.
    fn union(subjects: &[&Self]) -> Option<Self> {
        let sets = || {
            subjects.iter().filter_map(|subject| match subject {
                Self::Cpus(set) | Self::Nodes(set) => Some(set),
                Self::Machine | Self::Devices(_) => None,
            })
        };
        let names = subjects.iter().flat_map(|subject| match subject {
            Self::Devices(names) => names.as_slice(),
            Self::Machine | Self::Cpus(_) | Self::Nodes(_) => &[],
        });
        Some(match subjects.first()? {
            Self::Machine => Self::Machine,
            Self::Cpus(_) => Self::Cpus(CpuSet::union(sets())),
            Self::Nodes(_) => Self::Nodes(CpuSet::union(sets())),
            Self::Devices(_) => Self::Devices(names.cloned().collect()),
        })
    }
}

impl std::fmt::Display for Subject {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let plural = |set: &CpuSet| if set.len() == 1 { "" } else { "s" };
        match self {
            Self::Machine => out.write_str("this machine"),
            Self::Cpus(set) => write!(out, "CPU{} {set}", plural(set)),
            Self::Nodes(set) => write!(out, "NUMA node{} {set}", plural(set)),
            Self::Devices(names) => out.write_str(&names.join(", ")),
        }
    }
}

impl Serialize for Subject {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

/// A problem on this machine.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// What it is about.
    pub subject: Subject,
    /// What is wrong, one sentence without full stop, with the numbers and without the subject's name, so that
    /// several subjects with the same problem can be told in one line.
    pub what: String,
    /// What proves it, for the first subject.
    pub evidence: Vec<Evidence>,
    /// How many more subjects show the same.
    #[serde(skip_serializing_if = "is_zero")]
    pub others: usize,
    /// When it differs from the check's usual impact.
    #[serde(skip)]
    pub impact: Option<Impact>,
    /// What to do.
    pub remedy: Remedy,
    /// For the verdict on a resource: a clause that completes "… because", such as `the governor is powersave`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub because: Option<String>,
}

impl Finding {
    /// A finding with the check's own impact and no remedy yet.
    pub fn new(subject: Subject, what: impl Into<String>) -> Self {
        Self {
            subject,
            what: what.into(),
            evidence: Vec::new(),
            others: 0,
            impact: None,
            remedy: Remedy::None,
            because: None,
        }
    }

    /// Findings with equal likeness say the same of several subjects. There is one machine only, so what is found
    /// of it has none.
    pub(crate) fn likeness(&self) -> Option<impl Ord + '_> {
        let kind = match self.subject {
            Subject::Machine => return None,
            Subject::Cpus(_) => 0_u8,
            Subject::Nodes(_) => 1,
            Subject::Devices(_) => 2,
        };
        // Settings are joined; anything else to do must be the same to be told once.
        let remedy = match &self.remedy {
            Remedy::Set(_) => (0_u8, ""),
            Remedy::Do(text) => (1, text.as_str()),
            Remedy::Firmware(text) => (2, text.as_str()),
            Remedy::Hardware(text) => (3, text.as_str()),
            Remedy::Hypervisor(text) => (4, text.as_str()),
            Remedy::None => (5, ""),
        };
        Some((self.what.as_str(), self.impact, self.because.as_deref(), kind, remedy))
    }

    /// The findings of equal likeness as one, told as the first tells it.
    pub(crate) fn folded(findings: Vec<Self>) -> Option<Self> {
        if findings.len() < 2 {
            return findings.into_iter().next();
        }
        let subject = Subject::union(&findings.iter().map(|finding| &finding.subject).collect::<Vec<_>>())?;
        let mut findings = findings.into_iter();
        let mut folded = findings.next()?;
        folded.subject = subject;
        folded.others = findings.len();
        if let Remedy::Set(settings) = &mut folded.remedy {
            let more = findings.flat_map(|finding| match finding.remedy {
                Remedy::Set(settings) => settings,
                _ => Vec::new(),
            });
            settings.extend(more);
            let mut seen = BTreeSet::new();
            let fresh: Vec<bool> = settings.iter().map(|setting| seen.insert(setting.clone())).collect();
            let mut fresh = fresh.into_iter();
            settings.retain(|_| fresh.next().unwrap_or(true));
        }
        Some(folded)
    }

    /// Adds evidence; what could not be read proves nothing and is left out.
    #[must_use]
    pub fn with(mut self, evidence: Evidence) -> Self {
        self.evidence.extend(Some(evidence).filter(|evidence| evidence.known));
        self
    }

    /// States the remedy.
    #[must_use]
    pub fn remedy(self, remedy: Remedy) -> Self {
        Self { remedy, ..self }
    }

    /// Overrides the check's impact.
    #[must_use]
    pub fn impact(self, impact: Impact) -> Self {
        Self { impact: Some(impact), ..self }
    }

    /// States the cause in a clause, for the verdict.
    #[must_use]
    pub fn because(self, clause: impl Into<String>) -> Self {
        Self { because: Some(clause.into()), ..self }
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde calls it so")]
fn is_zero(count: &usize) -> bool {
    *count == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_switch_is_shown_as_its_file_shows_it() {
        let shown = |path: &str, on| Evidence::of_switch(&Observed::known(path, on)).value;
        assert_eq!(shown("/sys/module/zswap/parameters/enabled", true), "Y");
        assert_eq!(shown("/proc/sys/kernel/nmi_watchdog", false), "0");
    }

    #[test]
    fn the_same_of_many_is_told_once() {
        let of = |cpus: &str, what: &str| {
            Finding::new(Subject::Cpus(cpus.parse().unwrap()), what)
                .remedy(Remedy::Set(vec![Setting::attribute(format!("/sys/{cpus}"), "1")]))
        };
        let fold = |findings: &[&Finding]| Finding::folded(findings.iter().copied().cloned().collect());
        let (first, second) = (of("0-1", "slow"), of("2-3", "slow"));
        assert!(first.likeness() == second.likeness());
        let folded = fold(&[&first, &second, &first]).unwrap();
        assert_eq!((folded.subject.to_string(), folded.others), ("CPUs 0-3".to_owned(), 2));
        assert!(matches!(&folded.remedy, Remedy::Set(settings) if settings.len() == 2));
        let slower = of("4", "slower");
        assert!(first.likeness() != slower.likeness());
        assert!(Finding::new(Subject::Machine, "slow").likeness().is_none());
        let disk = |name: &str| Finding::new(Subject::device(name), "slow").remedy(Remedy::Do("turn".into()));
        assert_eq!(fold(&[&disk("b"), &disk("a")]).unwrap().subject.to_string(), "b, a");
        let (soft, hard) = (disk("a"), disk("a").remedy(Remedy::Hardware("turn".into())));
        assert!(soft.likeness() != hard.likeness());
    }
}
