//! One sentence per resource, so that a reader knows where to look before reading any list.

use serde::Serialize;
use zenkai_facts::Facts;

use crate::{Diagnosis, Impact, Subsystem, diagnosis::Reported};

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
    /// The sentence, starting with the resource's name.
    pub sentence: String,
}

pub(crate) fn verdicts(facts: &Facts, diagnosis: &Diagnosis) -> Vec<Verdict> {
    RESOURCES.iter().map(|resource| verdict(facts, diagnosis, *resource)).collect()
}

fn verdict(
    _facts: &Facts,
    diagnosis: &Diagnosis,
    (resource, name, subsystems): (Resource, &str, &[Subsystem]),
) -> Verdict {
    let found: Vec<&Reported> =
        diagnosis.findings.iter().filter(|reported| subsystems.contains(&reported.subsystem)).collect();
    let worst = found.iter().map(|reported| reported.impact).max();
    let sentence = match found.first() {
        None => format!("{name}: nothing found"),
        Some(first) => {
            let more =
                if found.len() > 1 { format!(" (and {} more)", found.len() - 1) } else { String::new() };
            let subject = &first.finding.subject;
            format!("{name}: {subject}: {}{more}", first.finding.what)
        }
    };
    Verdict { resource, worst, sentence }
}
