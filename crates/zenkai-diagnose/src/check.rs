//! What a check is.

use std::fmt;

use serde::Serialize;
use zenkai_facts::Facts;

use crate::{Context, Impact, Judgement};

/// The part of a machine a check looks at; also the folder it lives in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Subsystem {
    /// Clock, governors, turbo, cores.
    Cpu,
    /// Idle states.
    Idle,
    /// Heat and power limits, firmware profiles.
    Power,
    /// Memory.
    Memory,
    /// NUMA.
    Numa,
    /// Kernel, its settings and mitigations.
    Kernel,
    /// Control groups.
    Cgroup,
    /// Disks, arrays, file systems.
    Block,
    /// PCIe links.
    Pcie,
    /// Network.
    Net,
    /// Interrupts.
    Irq,
    /// Hypervisors and clouds.
    Virtualisation,
    /// Services and profiles that tune.
    Services,
}

impl fmt::Display for Subsystem {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(match self {
            Self::Cpu => "cpu",
            Self::Idle => "idle",
            Self::Power => "power",
            Self::Memory => "memory",
            Self::Numa => "numa",
            Self::Kernel => "kernel",
            Self::Cgroup => "cgroup",
            Self::Block => "block",
            Self::Pcie => "pcie",
            Self::Net => "net",
            Self::Irq => "irq",
            Self::Virtualisation => "virtualisation",
            Self::Services => "services",
        })
    }
}

/// One thing that can be wrong with a machine, and how to tell.
#[derive(Debug)]
pub struct Check {
    /// Kebab-case, naming the problem, so that "accept cpu-governor-powersave" reads well.
    pub id: &'static str,
    /// Where it belongs.
    pub subsystem: Subsystem,
    /// The problem in one line, without a full stop.
    pub summary: &'static str,
    /// How much it usually costs; a finding may say otherwise.
    pub impact: Impact,
    /// What is known of the effect, and from where; says "estimate" when nobody published a number.
    pub effect: &'static str,
    /// What the remedy may cost or break.
    pub risk: &'static str,
    /// Address of the document behind the rule.
    pub source: &'static str,
    /// The page that `zenkai explain` shows: the sibling Markdown file.
    pub explanation: &'static str,
    /// Looks at the facts.
    pub run: fn(&Facts, Context) -> Judgement,
}
