//! What several checks of clock, heat and power need to know first.

use zenkai_facts::{
    Facts,
    cpu::Policy,
    msr::{AmdRegisters, IntelRegisters},
};

use crate::checks::shared::needs_own_cpus;
use crate::{Outcome, need};

/// Drivers that steer the clock inside the hardware and give the name `powersave` to their normal, fully dynamic
/// mode (`drivers/cpufreq/intel_pstate.c`, `drivers/cpufreq/amd-pstate.c`).
pub(crate) const SELF_STEERING: [&str; 2] = ["intel_pstate", "amd-pstate-epp"];

/// Registers differ in what they do by a per cent or so; a limit that takes less than this is none.
pub(crate) const NEARLY_ALL: f64 = 0.98;

/// A part of a whole, 1 being all of it.
#[expect(clippy::cast_precision_loss, reason = "clocks and powers are far below 2^52")]
pub(crate) fn ratio(part: u64, whole: u64) -> f64 {
    if whole == 0 { 1.0 } else { part as f64 / whole as f64 }
}

/// A clock in GHz, for people.
pub(crate) fn ghz(khz: u64) -> String {
    format!("{:.2} GHz", ratio(khz, 1_000_000))
}

/// Why nobody here steers the clock where a hypervisor owns the CPUs.
pub(crate) const CLOCK_IS_LENT: &str = "the clock is the hypervisor's business";

/// The frequency policies. Most guests and some hosts have none: then nobody here steers a clock.
pub(crate) fn policies(facts: &Facts) -> Result<&[Policy], Outcome> {
    let policies = &facts.cpu.frequency.policies;
    let missing = policies.is_absent() || policies.get().is_some_and(Vec::is_empty);
    if missing {
        needs_own_cpus(facts, CLOCK_IS_LENT)?;
        return Err(Outcome::not_applicable("no cpufreq driver steers these CPUs"));
    }
    need(policies).map(Vec::as_slice)
}

/// Whether hardware P-states follow the energy-performance preference, which then overrides the bias.
pub(crate) fn has_preference(facts: &Facts) -> bool {
    let policies = facts.cpu.frequency.policies.get();
    policies
        .is_some_and(|list| list.iter().any(|policy| policy.energy_performance_preference.get().is_some()))
}

/// Intel's registers, package by package, when hardware gave them.
pub(crate) fn intel_registers(facts: &Facts) -> Result<Vec<&IntelRegisters>, Outcome> {
    let real: Vec<_> = need(&facts.msr.intel)?.iter().filter(|package| package.is_plausible()).collect();
    if real.is_empty() { Err(Outcome::not_applicable("the registers are emulated")) } else { Ok(real) }
}

/// AMD's registers, package by package, when hardware gave them.
pub(crate) fn amd_registers(facts: &Facts) -> Result<Vec<&AmdRegisters>, Outcome> {
    let real: Vec<_> = need(&facts.msr.amd)?.iter().filter(|package| package.is_plausible()).collect();
    if real.is_empty() { Err(Outcome::not_applicable("the registers are emulated")) } else { Ok(real) }
}

/// The online CPUs of a package, for the subject of a finding.
pub(crate) fn cpus_of_package(facts: &Facts, package: u32) -> zenkai_facts::CpuSet {
    let packages = facts.cpu.topology.packages.get().map(Vec::as_slice).unwrap_or_default();
    let found = packages.iter().find(|known| known.number == package);
    found.map(|known| known.cpus.clone()).unwrap_or_default()
}

/// Small worlds for the tests of this folder and of power's.
#[cfg(test)]
pub(crate) mod worlds {
    use zenkai_host::{FakeHost, Query, Reply};

    /// Files of `policy0`, for CPUs 0 and 1.
    pub(crate) fn policy(files: &[(&str, &str)]) -> Vec<(String, String)> {
        let dir = "/sys/devices/system/cpu/cpufreq/policy0";
        let mut world = vec![(format!("{dir}/affected_cpus"), "0 1\n".to_owned())];
        world.extend(files.iter().map(|(name, value)| (format!("{dir}/{name}"), format!("{value}\n"))));
        world
    }

    /// A bare-metal machine with one package of two CPUs.
    pub(crate) fn machine(vendor: &str, family: u32, model: u32, flags: &str) -> FakeHost {
        let block = |cpu: u32| {
            format!(
                "processor: {cpu}\nvendor_id: {vendor}\ncpu family: {family}\nmodel: {model}\nphysical id: 0\n\
                 core id: {cpu}\nflags: fpu {flags}\n\n"
            )
        };
        FakeHost::new(&[("/sys/devices/system/cpu/online", "0-1\n")])
            .file("/proc/cpuinfo", &(block(0) + &block(1)))
    }

    /// A Skylake-SP server.
    pub(crate) fn xeon(flags: &str) -> FakeHost {
        machine("GenuineIntel", 6, 85, flags)
    }

    /// An EPYC server.
    pub(crate) fn epyc(flags: &str) -> FakeHost {
        machine("AuthenticAMD", 25, 1, flags)
    }

    /// Registers of CPU 0 on top of those that make the package plausible (2.7 GHz base, 3.7 GHz turbo).
    pub(crate) fn with_registers(host: FakeHost, registers: &[(u32, u64)]) -> FakeHost {
        let base = [(0xce, 0x800_0000_1b00), (0x1ad, 0x2020_2222_2525_2525)];
        base.iter().chain(registers).fold(host, |host, (register, value)| {
            host.reply(&Query::Msr { cpu: 0, register: *register }, Reply::Numbers(vec![*value]))
        })
    }

    /// What a QEMU guest without `hypervisor` flag answers: 0 to everything.
    pub(crate) fn emulated(host: FakeHost) -> FakeHost {
        let registers = [0xce, 0x1ad, 0x1a0, 0x19c, 0x1b1, 0x1a4, 0x19a, 0x610, 0x614, 0xc001_0015];
        registers.iter().fold(host, |host, register| {
            host.reply(&Query::Msr { cpu: 0, register: *register }, Reply::Numbers(vec![0]))
        })
    }
}
