//! What differs between two machines, in order of suspicion.
//!
//! Pure functions over two [`Side`]s: the facts and the diagnosis of each. Every fact is compared, since the comparison
//! walks over the tree that serde makes of them; what changes by itself is left out by a written list ([`rules`]), disks
//! and network cards are matched by what they are for ([`roles`]), and what could not be read on one side is never
//! called different: it is counted, with the reason.

mod findings;
mod roles;
mod rules;
mod settings;
mod walk;
mod words;

use std::collections::BTreeMap;

use serde::Serialize;
use zenkai_facts::{Facts, Node, Observed, Reason};

use crate::{CheckId, Diagnosis, Impact};

pub use settings::{Profile, bears_on_security, profile};

/// One of the two machines.
pub struct Side<'a> {
    /// What the user calls it: a file, a label, `now`.
    pub name: &'a str,
    /// What it is.
    pub facts: &'a Facts,
    /// What is wrong with it.
    pub diagnosis: &'a Diagnosis,
    /// Every sysctl that is known of either side, by dotted name.
    pub sysctls: BTreeMap<String, Observed<String>>,
    /// Whether the machine was asked for this path: a capture may not hold it.
    pub holds: &'a dyn Fn(&str) -> bool,
}

/// Which of the two machines.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Which {
    /// The first one.
    A,
    /// The second one.
    B,
}

/// How something can be changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Changeable {
    /// On the running system.
    Now,
    /// At the next boot, by a kernel argument or a module's option.
    Reboot,
    /// In the firmware.
    Firmware,
    /// By another version of software, or by making a file system anew.
    Software,
    /// By who runs the hypervisor.
    Hypervisor,
    /// By other hardware, or not at all.
    Hardware,
}

/// What one side shows: a value, or why there is none.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct Reading {
    /// The value, for people.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub value: Option<String>,
    /// Why there is none, when there is none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unavailable: Option<String>,
    /// The path or query; empty for what comes from several.
    pub source: String,
}

/// How much a difference is worth a look, most suspicious first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Suspicion {
    /// A check finds fault with one side and not with the other.
    Finding,
    /// A check finds fault with one side and cannot judge the other.
    FindingUnjudged,
    /// Checks judge this fact, though they find no fault here.
    Known,
    /// A setting that can be changed now.
    Setting,
    /// Anything else.
    Other,
    /// It follows from something else that differs, such as the size of the memory.
    Derived,
}

/// Which side is likely the slower one, by a finding.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Slower {
    /// The side with the finding.
    pub side: Which,
    /// The check.
    pub check: CheckId,
    /// What it found, one sentence.
    pub why: String,
    /// How much it costs.
    pub impact: Impact,
    /// What is known of the effect.
    pub effect: &'static str,
    /// What the other side's check came to.
    pub other: String,
    /// What to do about it, in a line or two.
    pub remedy: Vec<String>,
}

/// A fact that differs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Difference {
    /// Why it stands where it stands.
    pub suspicion: Suspicion,
    /// The part of the machine.
    pub group: String,
    /// Whose it is: `CPUs 0-31`, `the disk under / (sda ↔ nvme0n1)`; empty for the machine as a whole.
    pub subject: String,
    /// What it is, in words.
    pub what: String,
    /// The path of the fact, as in `zenkai facts --json`; `*` stands for the subject. Empty for a finding.
    pub path: String,
    /// The first machine.
    pub a: Reading,
    /// The second one.
    pub b: Reading,
    /// How many equal ones are folded into this one.
    pub count: usize,
    /// Which side is likely slower.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub slower: Option<Slower>,
    /// The check that explains the fact.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub check: Option<CheckId>,
    /// How it can be changed.
    pub changeable: Changeable,
    /// The facts behind a finding that differ too.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub facts: Vec<Difference>,
    /// Where each of the folded ones was read, on the first and on the second machine.
    #[serde(skip)]
    pub places: Vec<(String, String)>,
}

/// A fact that only one side tells.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct NotCompared {
    /// The side that does not tell it.
    pub side: Which,
    /// Why, such as `not in this capture`.
    pub reason: String,
    /// The facts' paths.
    pub paths: Vec<String>,
}

/// Two machines side by side.
#[derive(Debug, Clone, Serialize)]
pub struct Comparison {
    /// What the first machine is called.
    pub a: String,
    /// What the second one is called.
    pub b: String,
    /// What limits the comparison as a whole.
    pub notes: Vec<String>,
    /// What differs, most suspicious first.
    pub differences: Vec<Difference>,
    /// What could not be compared.
    pub not_compared: Vec<NotCompared>,
    /// How many values were compared.
    pub compared: usize,
    /// How many sysctls are among them.
    pub sysctls: usize,
}

/// Compares two machines. It fails only if facts cannot be made a tree, which is a defect.
pub fn compare(a: &Side<'_>, b: &Side<'_>) -> Result<Comparison, serde_json::Error> {
    let roles = roles::Roles::of(a.facts, b.facts);
    let mut notes = Vec::new();
    let foreign = foreign(a, b, &mut notes);
    notes.extend(findings::momentary("A", a.diagnosis));
    notes.extend(findings::momentary("B", b.diagnosis));
    let holds = |which: Which, path: &str| match which {
        Which::A => (a.holds)(path),
        Which::B => (b.holds)(path),
    };
    let mut walk = walk::Walk::new(&roles, &holds, foreign);
    walk.facts(&Node::of(a.facts)?, &Node::of(b.facts)?);
    walk.sysctls(&Node::of(&a.sysctls)?, &Node::of(&b.sysctls)?);
    let (compared, gaps, raw) = walk.finish();
    notes.extend(silent(compared, &gaps));
    let mut differences = findings::ranked(a, b, &roles, raw);
    differences.sort_by_key(order);
    let sysctls = a.sysctls.iter().filter(|(name, left)| {
        left.get().is_some() && b.sysctls.get(*name).is_some_and(|right| right.get().is_some())
    });
    Ok(Comparison {
        a: a.name.to_owned(),
        b: b.name.to_owned(),
        notes,
        differences,
        not_compared: gaps,
        compared,
        sysctls: sysctls.count(),
    })
}

/// Notes on a side that tells much less than the other one.
fn silent(compared: usize, gaps: &[NotCompared]) -> Vec<String> {
    let unknown = Reason::NotRecorded.to_string();
    let few = gaps.iter().filter(|gap| gap.reason == unknown && gap.paths.len() > compared / 2);
    few.map(|gap| {
        let (letter, count) = (if gap.side == Which::A { "A" } else { "B" }, gap.paths.len());
        format!(
            "{letter} does not hold {count} values that the other side tells: it may have been cut short, or \
             made by another version"
        )
    })
    .collect()
}

/// What differs more than its settings: then some facts have no counterpart.
fn foreign(a: &Side<'_>, b: &Side<'_>, notes: &mut Vec<String>) -> bool {
    let differ = |left: &Observed<String>, right: &Observed<String>| match (left.text(), right.text()) {
        (Some(left), Some(right)) if left != right => Some((left.to_owned(), right.to_owned())),
        _ => None,
    };
    let machine = differ(&a.facts.kernel.machine, &b.facts.kernel.machine);
    let vendor = differ(&a.facts.cpu.vendor, &b.facts.cpu.vendor);
    let (what, pair) = match (machine, vendor) {
        (Some(pair), _) => ("the architectures differ", pair),
        (None, Some(pair)) => ("the CPUs are of different makers", pair),
        (None, None) => return false,
    };
    notes.push(format!(
        "{what} ({} and {}): CPU flags, model numbers, microcode, registers and what belongs to one driver \
         are not compared",
        pair.0, pair.1
    ));
    true
}

/// Most suspicious first, then by what it costs, then as the facts have it.
fn order(difference: &Difference) -> (Suspicion, std::cmp::Reverse<Impact>) {
    let impact = difference
        .slower
        .as_ref()
        .map(|slower| slower.impact)
        .or_else(|| difference.check.and_then(findings::impact_of))
        // What has no check leads its class: the processor, the kernel, the memory.
        .unwrap_or(Impact::Large);
    (difference.suspicion, std::cmp::Reverse(impact))
}

#[cfg(test)]
mod tests {
    use zenkai_host::FakeHost;

    use super::*;
    use crate::{Context, Policy, Selection, diagnose};

    /// Two small machines, compared.
    fn compared(a: &[(&str, &str)], b: &[(&str, &str)]) -> Comparison {
        let look = |files: &[(&str, &str)]| {
            let facts = zenkai_facts::observe(&FakeHost::new(files));
            let diagnosis = diagnose(&facts, Context::default(), &Policy::default(), &Selection::default());
            (facts, diagnosis)
        };
        let (left, right) = (look(a), look(b));
        let holds = |_: &str| true;
        let of = |name| {
            let (facts, diagnosis) = if name == "a" { &left } else { &right };
            Side { name, facts, diagnosis, sysctls: BTreeMap::new(), holds: &holds }
        };
        compare(&of("a"), &of("b")).unwrap()
    }

    /// What differs between them, as path, subject, first and second value.
    fn between(a: &[(&str, &str)], b: &[(&str, &str)]) -> Vec<[String; 4]> {
        let shown =
            |reading: &Reading| reading.value.clone().or(reading.unavailable.clone()).unwrap_or_default();
        let comparison = compared(a, b);
        let all = comparison.differences.iter().flat_map(|one| std::iter::once(one).chain(&one.facts));
        all.filter(|one| !one.path.is_empty())
            .map(|one| [one.path.clone(), one.subject.clone(), shown(&one.a), shown(&one.b)])
            .collect()
    }

    fn borrowed(files: &[(String, String)]) -> Vec<(&str, &str)> {
        files.iter().map(|(path, text)| (path.as_str(), text.as_str())).collect()
    }

    const POLICIES: &str = "/sys/devices/system/cpu/cpufreq";

    #[test]
    fn equal_differences_of_many_cpus_are_one() {
        let machine = |governor: &str| -> Vec<(String, String)> {
            let policy = |cpu: u32| {
                [("affected_cpus", cpu.to_string()), ("scaling_governor", governor.to_owned())]
                    .map(|(file, text)| (format!("{POLICIES}/policy{cpu}/{file}"), format!("{text}\n")))
            };
            (0..32).flat_map(policy).collect()
        };
        let (a, b) = (machine("powersave"), machine("performance"));
        let found = between(&borrowed(&a), &borrowed(&b));
        let governor = ["cpu.frequency.policies.*.governor", "CPUs 0-31", "powersave", "performance"];
        assert!(found.iter().any(|one| one == &governor), "{found:?}");
    }

    /// An option of the cpu unit is for all CPUs, also for those that do not differ.
    #[test]
    fn one_cpu_is_not_set_with_all_others() {
        let machine = |governors: [&str; 2]| -> Vec<(String, String)> {
            let policy = |(cpu, governor): (usize, &str)| {
                [("affected_cpus", cpu.to_string()), ("scaling_governor", governor.to_owned())]
                    .map(|(file, text)| (format!("{POLICIES}/policy{cpu}/{file}"), format!("{text}\n")))
            };
            governors.into_iter().enumerate().flat_map(policy).collect()
        };
        let text = |a: [&str; 2], b: [&str; 2]| {
            let (a, b) = (machine(a), machine(b));
            let (a, b) = (borrowed(&a), borrowed(&b));
            profile(&FakeHost::new(&a), &FakeHost::new(&b), &compared(&a, &b), false).text
        };
        let all = text(["performance"; 2], ["powersave"; 2]);
        assert!(all.contains("[cpu]\ngovernor=performance\n"), "{all}");
        let part = text(["performance"; 2], ["powersave", "performance"]);
        assert!(part.contains("[cpu]\ngovernor=performance\n"), "{part}");
        let one = text(["performance", "powersave"], ["powersave"; 2]);
        let policy = format!("[sysfs]\n{POLICIES}/policy0/scaling_governor=performance\n");
        assert!(one.contains(&policy) && !one.contains("[cpu]"), "{one}");
    }

    #[test]
    fn what_is_absent_differs_and_what_may_not_be_read_does_not() {
        let a = [("/proc/sys/vm/swappiness", "60\n"), ("/proc/sys/vm/page-cluster", "3\n")];
        let b = [("/proc/sys/vm/page-cluster", "3\n")];
        let found = between(&a, &b);
        assert_eq!(found, [["memory.settings.swappiness", "", "60", "absent"]]);
        let moments = between(&[("/proc/uptime", "5.0 1.0\n")], &[("/proc/uptime", "900.0 1.0\n")]);
        assert!(moments.is_empty(), "{moments:?}");
    }
}
