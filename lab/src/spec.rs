//! Machines as data: `lab/machines/NAME.toml`.

use std::path::{Path, PathBuf};

use serde::Deserialize;

use crate::error::Doing;
use crate::{LabError, Tier, cache};

/// Where a job runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Mode {
    /// In the initramfs, with busybox only. Needs the `mini` tier.
    #[default]
    Mini,
    /// In the Debian root, as the only process besides the kernel's. Needs the `full` tier.
    Tools,
    /// In the Debian root, as a service of systemd. Needs the `full` tier.
    Systemd,
}

/// Which CPUs change frequency together.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Domain {
    /// Each on its own.
    #[default]
    PerCpu,
    /// 0 with 1, 2 with 3 and so on.
    Pairs,
    /// All.
    All,
}

/// What the ACPI table says about P-states.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Pstates {
    /// Which CPUs change frequency together.
    pub domain: Domain,
    /// Whether there is a `_CPC` object (AMD's CPPC) too.
    pub cppc: bool,
    /// Whether the table has a power meter too, which shows the watts in the ports 0x8b (low byte) and 0x8f (high byte):
    /// a guest sets them through `/dev/port`.
    pub power_meter: bool,
}

/// A machine: everything that makes one guest different from another.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MachineSpec {
    /// Its name: the name of its file.
    #[serde(skip)]
    pub name: String,
    /// What it is for, in a line.
    pub about: String,
    /// Where jobs run.
    #[serde(default)]
    pub mode: Mode,
    /// CPUs in all.
    pub cpus: usize,
    /// QEMU's `-smp` beyond the number, such as `sockets=2,cores=2,threads=2`.
    #[serde(default)]
    pub topology: String,
    /// QEMU's CPU model with its flags.
    #[serde(default = "skylake")]
    pub cpu: String,
    /// Memory in MiB.
    #[serde(default = "enough_memory")]
    pub memory: u32,
    /// Kernel modules to load at boot, in this order.
    #[serde(default)]
    pub modules: Vec<String>,
    /// More words for the kernel's command line.
    #[serde(default)]
    pub append: String,
    /// CPU features that the kernel is made to believe in (see `caps.rs`).
    #[serde(default)]
    pub features: Vec<String>,
    /// P-states and C-states in an ACPI table; none if left out.
    #[serde(default)]
    pub pstates: Option<Pstates>,
    /// A table of model specific registers, a file beside this one. Needs the `qemu` tier.
    #[serde(default)]
    pub registers: Option<String>,
    /// Whether virtual CPUs really run at the clock that their register asks for (the `clock` line of the table): slower
    /// ones wait in proportion, and APERF counts so. It costs time, so no other machine has it.
    #[serde(default)]
    pub clock: bool,
    /// Watts that a BMC with IPMI and DCMI reports; no BMC if left out.
    #[serde(default)]
    pub bmc_watts: Option<u16>,
    /// Boots Xen with the Debian kernel as its dom0. Needs the `full` tier.
    #[serde(default)]
    pub xen: bool,
    /// More arguments for QEMU.
    #[serde(default)]
    pub qemu: Vec<String>,
    /// Shell lines run once after boot, before the snapshot: what makes the machine a healthy one of its kind.
    #[serde(default)]
    pub prepare: String,
    /// False for a machine with a device that cannot be part of a snapshot: it is booted for each run.
    #[serde(default = "yes")]
    pub snapshot: bool,
    /// Seconds that booting and preparing may take.
    #[serde(default = "ten_minutes")]
    pub boot_limit_s: u64,
}

fn skylake() -> String {
    "Skylake-Server".into()
}

/// Below 512 MiB the kernel switches transparent huge pages off by itself.
fn enough_memory() -> u32 {
    768
}

fn yes() -> bool {
    true
}

fn ten_minutes() -> u64 {
    600
}

impl MachineSpec {
    /// Reads a machine of `lab/machines`.
    pub fn load(name: &str) -> Result<Self, LabError> {
        let known = names("machines")?;
        if !known.iter().any(|other| other == name) {
            return Err(LabError::UnknownMachine { name: name.into(), known: known.join(", ") });
        }
        let path = cache::sources().join("machines").join(format!("{name}.toml"));
        let mut spec: Self = read_toml(&path)?;
        name.clone_into(&mut spec.name);
        Ok(spec)
    }

    /// All machines of `lab/machines`, by name.
    pub fn all() -> Result<Vec<Self>, LabError> {
        names("machines")?.iter().map(|name| Self::load(name)).collect()
    }

    /// The tiers it needs.
    pub fn tiers(&self) -> Vec<Tier> {
        let mut tiers = vec![Tier::Mini];
        if self.mode != Mode::Mini || self.xen {
            tiers.push(Tier::Full);
        }
        if self.registers.is_some() {
            tiers.push(Tier::Qemu);
        }
        tiers
    }

    /// The file of its table of registers.
    pub(crate) fn register_file(&self) -> Option<PathBuf> {
        self.registers.as_ref().map(|name| cache::sources().join("machines").join(name))
    }
}

/// The names of the `.toml` files in a folder of `lab/`, sorted.
pub(crate) fn names(folder: &str) -> Result<Vec<String>, LabError> {
    let dir = cache::sources().join(folder);
    let entries = std::fs::read_dir(&dir).with_path("list", &dir)?;
    let mut names: Vec<String> = entries
        .flatten()
        .filter_map(|entry| entry.file_name().to_str()?.strip_suffix(".toml").map(str::to_owned))
        .collect();
    names.sort();
    Ok(names)
}

/// Reads a file of the laboratory.
pub(crate) fn read_toml<T: serde::de::DeserializeOwned>(path: &Path) -> Result<T, LabError> {
    let text = std::fs::read_to_string(path).with_path("read", path)?;
    toml::from_str(&text)
        .map_err(|error| LabError::BadFile { path: path.display().to_string(), what: error.to_string() })
}

#[cfg(test)]
mod tests {
    use super::MachineSpec;
    use crate::LabError;

    #[test]
    fn all_machines_can_be_read() {
        let all = MachineSpec::all().unwrap();
        assert!(all.len() >= 9);
        for spec in all {
            assert!(spec.register_file().is_none_or(|path| path.exists()), "{}", spec.name);
            assert!(!spec.about.is_empty() && !spec.about.contains('\n'), "{}", spec.name);
        }
    }

    #[test]
    fn an_unknown_machine_names_the_known_ones() {
        match MachineSpec::load("../evil") {
            Err(LabError::UnknownMachine { known, .. }) => {
                assert!(known.contains("plain, storage"), "{known}");
            }
            other => panic!("{other:?}"),
        }
    }
}
