//! One sentence per resource, so that a reader knows where to look before reading any list.

use std::collections::BTreeSet;

use serde::Serialize;
use zenkai_facts::Facts;

use crate::{
    Diagnosis, Finding, Impact, Subject, Subsystem,
    checks::{
        self,
        clock::{all_busy_khz, ghz, median_khz},
    },
    diagnosis::Reported,
};

/// What a machine is made of, in the reader's words.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Resource {
    /// Processors, clock, idle, heat and power.
    Cpu,
    /// Memory and NUMA.
    Memory,
    /// Disks, arrays, file systems and their links.
    Storage,
    /// Network and interrupts.
    Network,
    /// Kernel, services, limits and the hypervisor.
    System,
}

const RESOURCES: [(Resource, &str, &[Subsystem]); 5] = [
    (Resource::Cpu, "CPU", &[Subsystem::Cpu, Subsystem::Idle, Subsystem::Power]),
    (Resource::Memory, "Memory", &[Subsystem::Memory, Subsystem::Numa]),
    (Resource::Storage, "Storage", &[Subsystem::Block, Subsystem::Pcie]),
    (Resource::Network, "Network", &[Subsystem::Net, Subsystem::Irq]),
    (
        Resource::System,
        "System",
        &[Subsystem::Kernel, Subsystem::Cgroup, Subsystem::Virtualisation, Subsystem::Services],
    ),
];

/// The verdict on one resource.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Verdict {
    /// Which resource.
    pub resource: Resource,
    /// The worst impact found, when anything was.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub worst: Option<Impact>,
    /// How many checks came to a yes or no.
    pub judged: usize,
    /// The sentence, starting with the resource's name.
    pub sentence: String,
}

pub(crate) fn verdicts(facts: &Facts, diagnosis: &Diagnosis) -> Vec<Verdict> {
    RESOURCES.iter().map(|resource| verdict(facts, diagnosis, *resource)).collect()
}

fn verdict(
    facts: &Facts,
    diagnosis: &Diagnosis,
    (resource, name, subsystems): (Resource, &str, &[Subsystem]),
) -> Verdict {
    let found: Vec<&Reported> =
        diagnosis.findings.iter().filter(|reported| subsystems.contains(&reported.subsystem)).collect();
    let belongs = |id: &str| checks::find(id).is_some_and(|check| subsystems.contains(&check.subsystem));
    let passed = diagnosis.passed.iter().filter(|id| belongs(id)).count();
    let fired: BTreeSet<&str> = found.iter().map(|reported| reported.check).collect();
    let judged = passed + fired.len();
    // What is only read when asked for is no gap: the reader is told once how to ask.
    let missing = diagnosis.unjudged.iter().filter(|unjudged| !unjudged.missing.is_not_asked());
    let unjudged: BTreeSet<&str> = missing.map(|unjudged| unjudged.check).filter(|id| belongs(id)).collect();
    let worst = found.iter().map(|reported| reported.impact).max();
    let said = match found.first() {
        Some(first) => worst_of(first, found.len()),
        None if judged == 0 && unjudged.is_empty() => "no check applies here".to_owned(),
        None if judged == 0 => "could not be judged".to_owned(),
        None => format!("nothing found by {}", count(judged, "check")),
    };
    let gap = match unjudged.len() {
        0 => String::new(),
        some if judged == 0 && found.is_empty() => format!(" ({})", count(some, "check")),
        some => format!("; {} could not be judged", count(some, "check")),
    };
    let measured = if resource == Resource::Cpu { clock(facts, &found) } else { None };
    let said = match measured {
        Some(clock) => format!("{clock}; {said}"),
        None => said,
    };
    Verdict { resource, worst, judged, sentence: format!("{name}: {said}{gap}") }
}

/// The clock the CPU really had under load, when it was measured, and the causes that findings name.
fn clock(facts: &Facts, found: &[&Reported]) -> Option<String> {
    let clocks = all_busy_khz(facts.probe.get()?);
    let khz = median_khz(&clocks)?;
    let measured = ghz(khz);
    let nominal = facts.nominal_khz().value();
    let of = match nominal {
        Some(nominal) => format!(" (nominal {})", ghz(nominal)),
        None => String::new(),
    };
    // A setting that should slow the clock down, and does not, is no cause of anything.
    if nominal.is_some_and(|nominal| khz >= nominal) {
        return Some(format!("runs at {measured}{of} with all CPUs busy"));
    }
    let causes: Vec<&str> = found.iter().filter_map(|reported| reported.finding.because.as_deref()).collect();
    let because = if causes.is_empty() { String::new() } else { format!(" because {}", causes.join("; ")) };
    Some(format!("runs at {measured}{of} with all CPUs busy{because}"))
}

fn worst_of(first: &Reported, found: usize) -> String {
    let Finding { subject, what, .. } = &first.finding;
    let more = match found {
        1 => String::new(),
        _ => format!(", and {} more", found - 1),
    };
    match subject {
        Subject::Machine => format!("{what}{more}"),
        named => format!("{named}: {what}{more}"),
    }
}

fn count(number: usize, noun: &str) -> String {
    format!("{number} {noun}{}", if number == 1 { "" } else { "s" })
}
