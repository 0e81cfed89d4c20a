//! What this machine is: one file per subsystem.
//!
//! [`observe`] reads a [`Host`] once and gives [`Facts`], plain data that checks, plans and comparisons work on.
//! Every value is [`Observed`]: known, with the place it was read from, or unavailable, with the reason.

mod cpu_set;
mod nominal;
mod observed;
mod reader;
mod tree;

pub mod block;
pub mod cgroup;
pub mod cpu;
pub mod firmware;
pub mod idle;
pub mod irq;
pub mod kernel;
pub mod memory;
pub mod msr;
pub mod net;
pub mod numa;
pub mod pcie;
pub mod power;
pub mod probe;
pub mod services;
pub mod sysctl_files;
pub mod thermal;
pub mod virtualisation;
pub mod vulnerabilities;

use serde::Serialize;
use zenkai_host::{Host, Query};

pub use cpu_set::CpuSet;
pub use observed::{Observed, Reason};
pub use reader::{Choice, Reader};
pub use tree::Node;

/// Everything zenkai knows of one machine at one moment.
#[derive(Debug, Clone, Serialize)]
pub struct Facts {
    /// Who we are on the machine, which decides what we may read.
    pub privilege: Privilege,
    /// Processors: model, topology, clock and the policies that steer it.
    pub cpu: cpu::Cpu,
    /// Idle states and who limits them.
    pub idle: idle::Idle,
    /// Thermal throttling.
    pub thermal: thermal::Thermal,
    /// Model-specific registers.
    pub msr: msr::Msr,
    /// Hardware vulnerabilities and their mitigations.
    pub vulnerabilities: vulnerabilities::Vulnerabilities,
    /// NUMA nodes.
    pub numa: numa::Numa,
    /// Memory: use, huge pages, modules.
    pub memory: memory::Memory,
    /// The kernel and its settings.
    pub kernel: kernel::Kernel,
    /// Settings in files against settings in force.
    pub sysctl_files: sysctl_files::SysctlFiles,
    /// Limits that our own control group puts on us.
    pub cgroup: cgroup::Cgroup,
    /// Disks and what is built on them.
    pub block: block::Block,
    /// PCIe links of storage, network and accelerators.
    pub pcie: pcie::Pcie,
    /// Network devices.
    pub net: net::Net,
    /// Interrupts.
    pub irq: irq::Irq,
    /// What kind of machine this is: metal, guest, container.
    pub virtualisation: virtualisation::Virtualisation,
    /// Firmware identity.
    pub firmware: firmware::Firmware,
    /// Power limits, platform profile, management controller.
    pub power: power::Power,
    /// Services that tune the machine, and the active tuned profile.
    pub services: services::Services,
    /// What the machine really did under load, if a probe was run.
    pub probe: Observed<zenkai_host::probe::Probe>,
}

/// Who we are on the machine.
#[derive(Debug, Clone, Serialize)]
pub struct Privilege {
    /// Effective user id; 0 is root.
    pub effective_uid: Observed<u64>,
}

/// Reads everything. Never fails: what cannot be read is data too.
pub fn observe(host: &dyn Host) -> Facts {
    let reader = Reader::new(host);
    let effective_uid = reader.query(&Query::EffectiveUid, |reply| reply.numbers()?.first().copied());
    let cpu = cpu::observe(&reader);
    let virtualisation = virtualisation::observe(&reader);
    let paths = pcie::Paths::new(&reader);
    let kernel = kernel::observe(&reader);
    let net = net::observe(&reader, &paths);
    Facts {
        privilege: Privilege { effective_uid },
        idle: idle::observe(&reader, &cpu),
        thermal: thermal::observe(&reader, &cpu, &virtualisation),
        msr: msr::observe(&reader, &cpu, &virtualisation),
        vulnerabilities: vulnerabilities::observe(&reader, &kernel),
        numa: numa::observe(&reader),
        memory: memory::observe(&reader),
        kernel,
        sysctl_files: sysctl_files::observe(&reader),
        cgroup: cgroup::observe(&reader),
        block: block::observe(&reader, &paths),
        pcie: pcie::observe(&reader, &paths),
        irq: irq::observe(&reader, &net),
        net,
        virtualisation,
        firmware: firmware::observe(&reader),
        power: power::observe(&reader),
        services: services::observe(&reader),
        probe: probe::observe(&reader),
        cpu,
    }
}
