//! Ailments as data: `lab/ailments/NAME.toml` says which one setting of which machine is spoilt, and which check must
//! then fire, and only then.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use serde::Deserialize;

use crate::error::Doing;
use crate::spec::{MachineSpec, names, read_toml};
use crate::{Cache, Job, LabError, Machine, Outcome, cache};

/// The exit code by which a job says that a machine is not as ailing, or as healthy, as it should be.
const NOT_SPOILT: i32 = 97;

/// An ailment: one thing that is wrong with a machine.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Ailment {
    /// Its name: the name of its file.
    #[serde(skip)]
    pub name: String,
    /// The machine it befalls.
    pub machine: String,
    /// Why it costs speed, or is worth a word, in a sentence.
    pub why: String,
    /// The ids of the checks that must fire on the ailing machine and stay silent on the healthy one.
    pub expect: Vec<String>,
    /// The ids of checks that may fire as well, since the ailment shows in more than one place.
    #[serde(default)]
    pub also: Vec<String>,
    /// What the machine is for, where the check depends on the work: the value of `zenkai doctor --workload`.
    #[serde(default)]
    pub workload: Option<String>,
    /// Shell lines, run on the ailing machine only.
    #[serde(default)]
    pub spoil: String,
    /// A shell command that succeeds on the ailing machine and fails on the healthy one: proof that the kernel took
    /// the ailment.
    pub proof: String,
    /// Words for the kernel's command line of the ailing machine, which is then booted.
    #[serde(default)]
    pub append: String,
    /// More arguments for QEMU for the ailing machine, which is then booted.
    #[serde(default)]
    pub qemu: Vec<String>,
}

impl Ailment {
    /// Reads all ailments of `lab/ailments`, by name.
    pub fn all() -> Result<Vec<Self>, LabError> {
        let dir = cache::sources().join("ailments");
        let load = |name: &String| {
            let mut ailment: Self = read_toml(&dir.join(format!("{name}.toml")))?;
            name.clone_into(&mut ailment.name);
            Ok(ailment)
        };
        names("ailments")?.iter().map(load).collect()
    }

    /// The doctor's command line for this ailment.
    pub fn doctor(&self) -> Vec<String> {
        let mut words: Vec<String> = ["doctor", "--json"].map(str::to_owned).to_vec();
        words.extend(self.workload.iter().flat_map(|workload| ["--workload".to_owned(), workload.clone()]));
        words
    }

    /// A job that spoils the machine, proves it, and then does something as the ailing machine; for [`run`].
    pub fn ailing_job(&self, then: &str) -> Job {
        let (name, spoil, proof) = (&self.name, &self.spoil, &self.proof);
        // Each part in a shell of its own, so that -e and its variables stay there. The noise goes to the error output.
        let script = format!(
            "(set -e\n{spoil}\n) >&2 || {{ echo 'lab: {name}: spoiling failed' >&2; exit {NOT_SPOILT}; }}\n\
             (\n{proof}\n) >&2 || {{ echo 'lab: {name}: the kernel did not take it' >&2; exit {NOT_SPOILT}; }}\n\
             {then}"
        );
        Job::shell(script).append(&self.append).qemu(&self.qemu)
    }

    /// Its machine, ready.
    pub fn machine(&self, cache: &Cache) -> Result<Machine, LabError> {
        Machine::from_spec(cache.clone(), MachineSpec::load(&self.machine)?)
    }
}

/// A job that does something on a healthy machine, after proving that it has none of some ailments; for [`run`].
pub fn healthy_job(ailments: &[&Ailment], then: &str) -> Job {
    let mut script = String::new();
    for Ailment { name, proof, .. } in ailments {
        let sorry =
            format!("{{ echo 'lab: {name}: the healthy machine has it too' >&2; exit {NOT_SPOILT}; }}");
        let _ = writeln!(script, "(\n{proof}\n) > /dev/null 2>&1 && {sorry}");
    }
    Job::shell(script + then)
}

/// Runs an [`Ailment::ailing_job`] or a [`healthy_job`]; an error if the kernel did not take the ailment, or if the
/// healthy machine shows it all the same.
pub fn run(machine: &Machine, job: Job) -> Result<Outcome, LabError> {
    let outcome = machine.run(job)?;
    if outcome.code == NOT_SPOILT {
        let console = cache::tail(&outcome.dmesg, 1000).to_owned();
        let (machine, what) = (machine.spec().name.clone(), outcome.stderr.trim().to_owned());
        return Err(LabError::GuestFailed { machine, what, console });
    }
    Ok(outcome)
}

/// What a doctor made of an ailment.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Verdict {
    /// Expected checks that fired on the ailing machine.
    pub found: BTreeSet<String>,
    /// Expected checks that did not.
    pub missed: BTreeSet<String>,
    /// Expected checks that fired on the healthy machine too.
    pub false_alarms: BTreeSet<String>,
    /// Checks that nobody expected: fired on the ailing machine, not on the healthy one.
    pub others: BTreeSet<String>,
}

impl Verdict {
    /// Compares what fired on the ailing and on the healthy machine with what was expected.
    pub fn new(ailment: &Ailment, ailing: &BTreeSet<String>, healthy: &BTreeSet<String>) -> Self {
        let expected: BTreeSet<String> = ailment.expect.iter().cloned().collect();
        Self {
            found: expected.intersection(ailing).cloned().collect(),
            missed: expected.difference(ailing).cloned().collect(),
            false_alarms: expected.intersection(healthy).cloned().collect(),
            others: ailing
                .difference(healthy)
                .filter(|id| !expected.contains(*id) && !ailment.also.contains(id))
                .cloned()
                .collect(),
        }
    }

    /// Whether exactly what was expected fired, and only on the ailing machine.
    pub fn is_right(&self) -> bool {
        self.missed.is_empty() && self.false_alarms.is_empty() && self.others.is_empty()
    }
}

/// The ids of the checks that fired, from the output of `zenkai doctor --json`: the `check` (or else the `id`) of each
/// entry of its list `findings`. Nothing if there is no such list.
pub fn fired(json: &str) -> Option<BTreeSet<String>> {
    let value: serde_json::Value = serde_json::from_str(json).ok()?;
    let findings = value.get("findings").unwrap_or(&value).as_array()?;
    let id = |finding: &serde_json::Value| {
        let id = finding.get("check").or_else(|| finding.get("id"))?.as_str()?;
        Some(id.to_owned())
    };
    findings.iter().map(id).collect()
}

/// Writes a file of the corpus, making the folders above it.
pub fn keep(path: &std::path::Path, data: &[u8]) -> Result<(), LabError> {
    if let Some(dir) = path.parent() {
        std::fs::create_dir_all(dir).with_path("make the folder", dir)?;
    }
    std::fs::write(path, data).with_path("write", path)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ids(names: &[&str]) -> BTreeSet<String> {
        names.iter().map(|&name| name.to_owned()).collect()
    }

    #[test]
    fn all_ailments_can_be_read_and_name_real_machines() {
        let all = Ailment::all().unwrap();
        assert!(all.len() >= 30, "{}", all.len());
        for ailment in all {
            let name = &ailment.name;
            assert!(MachineSpec::load(&ailment.machine).is_ok(), "{name}");
            assert!(!ailment.expect.is_empty() && ailment.why.ends_with('.'), "{name}");
            assert!(
                [&ailment.spoil, &ailment.append].iter().any(|text| !text.is_empty())
                    || !ailment.qemu.is_empty(),
                "{name}"
            );
        }
    }

    #[test]
    fn a_verdict_tells_found_missed_and_false() {
        let ailment: Ailment = toml::from_str(
            "machine = 'plain'\nwhy = 'x.'\nexpect = ['a', 'b', 'c']\nspoil = 'x'\nproof = 'x'",
        )
        .unwrap();
        let verdict = Verdict::new(&ailment, &ids(&["a", "c", "d", "e"]), &ids(&["c", "e"]));
        assert_eq!(verdict.found, ids(&["a", "c"]));
        assert_eq!(verdict.missed, ids(&["b"]));
        assert_eq!(verdict.false_alarms, ids(&["c"]));
        assert_eq!(verdict.others, ids(&["d"]));
        assert!(!verdict.is_right());
    }

    #[test]
    fn findings_are_found_in_json() {
        assert_eq!(fired(r#"{"findings": [{"check": "a"}, {"check": "b"}]}"#), Some(ids(&["a", "b"])));
        assert_eq!(fired(r#"[{"id": "a"}]"#), Some(ids(&["a"])));
        assert_eq!(fired(r#"{"findings": []}"#), Some(ids(&[])));
        assert_eq!(fired("no json"), None);
        assert_eq!(fired(r#"{"findings": [{"title": "x"}]}"#), None);
    }
}
