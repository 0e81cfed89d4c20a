//! What was found, with the evidence.

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

    /// Both subjects as one, when they are of one kind.
    fn union(&self, other: &Self) -> Option<Self> {
        let both = |left: &CpuSet, right: &CpuSet| left.iter().chain(right.iter()).collect();
        match (self, other) {
            (Self::Cpus(left), Self::Cpus(right)) => Some(Self::Cpus(both(left, right))),
            (Self::Nodes(left), Self::Nodes(right)) => Some(Self::Nodes(both(left, right))),
            (Self::Devices(left), Self::Devices(right)) => {
                Some(Self::Devices([left.as_slice(), right.as_slice()].concat()))
            }
            _ => None,
        }
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

    /// Takes in a finding that says the same of another subject, or gives it back.
    pub(crate) fn fold(&mut self, other: Self) -> Option<Self> {
        let same = self.what == other.what && self.impact == other.impact && self.because == other.because;
        let (true, Some(subject)) = (same, self.subject.union(&other.subject)) else { return Some(other) };
        match (&mut self.remedy, &other.remedy) {
            (Remedy::Set(settings), Remedy::Set(more)) => {
                let new: Vec<_> =
                    more.iter().filter(|setting| !settings.contains(setting)).cloned().collect();
                settings.extend(new);
            }
            (mine, theirs) if mine == theirs => {}
            _ => return Some(other),
        }
        self.subject = subject;
        self.others += 1;
        None
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
        let mut first = of("0-1", "slow");
        assert_eq!(first.fold(of("2-3", "slow")), None);
        assert_eq!(first.subject.to_string(), "CPUs 0-3");
        assert_eq!(first.others, 1);
        assert!(matches!(&first.remedy, Remedy::Set(settings) if settings.len() == 2));
        assert!(first.fold(of("4", "slower")).is_some());
        assert!(first.fold(Finding::new(Subject::Machine, "slow")).is_some());
    }
}
