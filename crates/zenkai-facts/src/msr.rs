//! Model-specific registers (Intel SDM volume 4; AMD's Processor Programming References).
//!
//! Registers of package scope are read once per package, on its first online CPU; only what a single CPU can have
//! different is read on every CPU. Where a hypervisor owns the CPUs it makes the answers up, so none is asked.

mod amd;
mod intel;
mod register;

use serde::Serialize;
use zenkai_host::Query;

use crate::{
    Observed, Reader, Reason,
    cpu::{Cpu, Group, per_cpu},
    virtualisation::Virtualisation,
};

pub use amd::AmdRegisters;
pub use intel::IntelRegisters;
pub use register::Register;

/// Model-specific registers.
#[derive(Debug, Clone, Serialize)]
pub struct Msr {
    /// By package, on Intel CPUs.
    pub intel: Observed<Vec<IntelRegisters>>,
    /// By package, on AMD CPUs.
    pub amd: Observed<Vec<AmdRegisters>>,
    /// `IA32_CLOCK_MODULATION` (0x19A) of every CPU, on Intel CPUs.
    pub clock_modulation: Observed<Vec<Group<Register>>>,
}

/// Reads one register as hardware gives it.
pub(crate) fn register(reader: &Reader<'_>, cpu: u32, register: u32) -> Observed<Register> {
    reader.query(&Query::Msr { cpu, register }, |reply| reply.numbers()?.first().copied().map(Register))
}

/// Reads this subsystem.
pub fn observe(reader: &Reader<'_>, cpu: &Cpu, virtualisation: &Virtualisation) -> Msr {
    if virtualisation.cpus_are_lent() {
        return made_up();
    }
    let intel =
        packages(cpu, cpu.is_intel(), "an Intel CPU", |number, first| intel::observe(reader, number, first));
    let amd = packages(cpu, cpu.is_amd(), "an AMD CPU", |number, first| amd::observe(reader, number, first));
    let clock_modulation = match intel.reason() {
        None => per_cpu(&cpu.online_cpus(), |cpu| register(reader, cpu, intel::CLOCK_MODULATION)),
        Some(reason) => Observed::unavailable(intel.source(), reason.clone()),
    };
    Msr { intel, amd, clock_modulation }
}

fn made_up() -> Msr {
    fn none<T>() -> Observed<T> {
        let why = "the hypervisor makes up what its registers say".to_owned();
        Observed::unavailable("msr", Reason::NotApplicable(why))
    }
    Msr { intel: none(), amd: none(), clock_modulation: none() }
}

/// One look at each package. `look` gives the reason back when not even its first register can be read; then the
/// others are not tried.
fn packages<T>(
    cpu: &Cpu,
    fits: bool,
    maker: &str,
    mut look: impl FnMut(u32, u32) -> Result<T, Observed<Register>>,
) -> Observed<Vec<T>> {
    let source = "msr";
    let not_applicable = |why: String| Observed::unavailable(source, Reason::NotApplicable(why));
    if !fits {
        return match cpu.vendor.reason() {
            Some(reason) if cpu.flags.get().is_some() => {
                Observed::unavailable(cpu.vendor.source(), reason.clone())
            }
            _ => not_applicable(format!("not {maker}")),
        };
    }
    let places = match cpu.topology.packages.outcome() {
        Ok(places) => places,
        Err(reason) => return Observed::unavailable(cpu.topology.packages.source(), reason.clone()),
    };
    let mut found = Vec::new();
    for package in places {
        let Some(first) = package.cpus.first() else { continue };
        match look(package.number, first) {
            Ok(registers) => found.push(registers),
            Err(unreadable) => {
                let reason = unreadable.reason().cloned().unwrap_or(Reason::Absent);
                return Observed::unavailable(unreadable.source(), reason);
            }
        }
    }
    Observed::known(source, found)
}

#[cfg(test)]
mod tests {
    use zenkai_host::{FakeHost, Reply};

    use super::*;

    fn world(vendor: &str, flags: &str) -> FakeHost {
        let block = |cpu: u32| {
            format!(
                "processor: {cpu}\nvendor_id: {vendor}\ncpu family: 6\nmodel: 85\nphysical id: {cpu}\n\
                 core id: 0\nflags: fpu {flags}\n\n"
            )
        };
        FakeHost::new(&[("/sys/devices/system/cpu/online", "0-1\n")])
            .file("/proc/cpuinfo", &(block(0) + &block(1)))
    }

    fn look(host: &FakeHost) -> Msr {
        let reader = Reader::new(host);
        observe(&reader, &crate::cpu::observe(&reader), &crate::virtualisation::observe(&reader))
    }

    #[test]
    fn once_per_package() {
        let mut host = world("GenuineIntel", "");
        for cpu in [0, 1] {
            for (register, value) in [(0xce, 0x8_0000_1b00), (0x19a, u64::from(cpu) * 0x12)] {
                host = host.reply(&Query::Msr { cpu, register }, Reply::Numbers(vec![value]));
            }
        }
        let msr = look(&host);
        let packages = msr.intel.get().unwrap();
        assert_eq!((packages.len(), packages[1].cpu), (2, 1));
        assert_eq!(packages[0].base_mhz(), Some(2700));
        assert!(packages[0].smi_count.is_absent());
        assert_eq!(msr.clock_modulation.get().unwrap().len(), 2);
        assert!(matches!(msr.amd.reason(), Some(Reason::NotApplicable(_))));
    }

    #[test]
    fn guests_and_missing_modules() {
        let guest = look(&world("GenuineIntel", "hypervisor"));
        assert!(matches!(guest.intel.reason(), Some(Reason::NotApplicable(_))));
        let no_module = look(&world("AuthenticAMD", ""));
        assert_eq!(no_module.amd.reason(), Some(&Reason::Absent));
        assert!(no_module.amd.source().starts_with("msr 0 "));
    }
}
