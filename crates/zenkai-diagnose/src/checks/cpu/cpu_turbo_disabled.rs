//! Clocks above nominal switched off.

use zenkai_facts::{Facts, Observed};
use zenkai_tune::Setting;

use super::shared::{amd_registers, cpus_of_package, intel_registers, policies};

use crate::checks::shared::needs_own_cpus;
use crate::{
    Check, Context, Evidence, Finding, Impact, Judgement, Outcome, Remedy, Subject, Subsystem, need,
};

/// See the explanation.
pub(super) static CHECK: Check = Check {
    id: "cpu-turbo-disabled",
    subsystem: Subsystem::Cpu,
    summary: "clocks above nominal (turbo, boost) are off",
    impact: Impact::Large,
    effect: "1.2 to 1.7 times for work on few cores, less with all cores busy (estimate from published turbo tables)",
    risk: "more heat and power; run times vary more",
    source: "https://docs.kernel.org/admin-guide/pm/cpufreq.html",
    explanation: include_str!("cpu_turbo_disabled.md"),
    run,
};

fn run(facts: &Facts, _context: Context) -> Judgement {
    let lent = needs_own_cpus(facts, "turbo is the hypervisor's business");
    if let (Err(outcome), Err(_)) = (lent, policies(facts)) {
        return outcome.into();
    }
    let switches = by_switch(facts);
    if !switches.findings.is_empty() {
        return switches;
    }
    let registers: Judgement =
        if facts.cpu.is_intel() { by_intel_register(facts) } else { by_amd_register(facts) }.into();
    match (switches.judged, registers.findings.is_empty()) {
        // The switches say it is on; registers that cannot be read do not put that in doubt.
        (1.., true) => switches,
        _ => registers,
    }
}

fn off(subject: Subject, reading: &Observed<bool>, wanted: &str) -> Finding {
    let switch = reading.source().rsplit('/').next().unwrap_or_default();
    Finding::new(subject, format!("turbo is switched off ({switch})"))
        .with(Evidence::of_switch(reading).expected(wanted))
        .remedy(Remedy::Set(vec![Setting::attribute(reading.source(), wanted)]))
        .because("turbo is switched off")
}

/// The kernel's own switches. `no_turbo` also shows 1 on models that have no turbo at all, and when the firmware
/// switched it off: then the kernel has taken away the flag `ida`, and the registers must decide.
fn by_switch(facts: &Facts) -> Judgement {
    let frequency = &facts.cpu.frequency;
    let has_turbo = facts.cpu.flags.get().is_none_or(|flags| flags.has("ida"));
    let mut judgement = Judgement::default();
    match frequency.intel_pstate.no_turbo.value() {
        Some(true) if has_turbo => {
            judgement.judged = 1;
            judgement.findings.push(off(Subject::Machine, &frequency.intel_pstate.no_turbo, "0"));
        }
        Some(false) => judgement.judged = 1,
        _ => {}
    }
    if !can_boost(facts) {
        return judgement;
    }
    match frequency.boost.value() {
        Some(false) => {
            judgement.judged = 1;
            judgement.findings.push(off(Subject::Machine, &frequency.boost, "1"));
            return judgement;
        }
        Some(true) => judgement.judged = 1,
        None => {}
    }
    for policy in frequency.policies.get().map(Vec::as_slice).unwrap_or_default() {
        if let (Some(false), Some(cpus)) = (policy.boost.value(), policy.cpus.get()) {
            judgement.judged = 1;
            judgement.findings.push(off(Subject::Cpus(cpus.clone()), &policy.boost, "1"));
        }
    }
    judgement
}

/// Drivers of other architectures that show `boost` on every machine, with 0 where the hardware has none, as on
/// Ampere's servers and the Raspberry Pi.
const SHOW_ALWAYS: [&str; 4] = ["cppc_cpufreq", "cpufreq-dt", "scmi", "qcom-cpufreq-hw"];

/// Whether there is anything above nominal, as far as somebody tells.
fn can_boost(facts: &Facts) -> bool {
    let cppc = &facts.cpu.frequency.cppc;
    if let (Some(highest), Some(nominal)) = (cppc.highest_perf.value(), cppc.nominal_perf.value()) {
        return highest > nominal;
    }
    let policies = facts.cpu.frequency.policies.get().map(Vec::as_slice).unwrap_or_default();
    let mut drivers = policies.iter().filter_map(|policy| policy.driver.text());
    !drivers.any(|driver| SHOW_ALWAYS.contains(&driver))
}

/// `IA32_MISC_ENABLE` bit 38, on a model whose turbo table goes above its base clock.
fn by_intel_register(facts: &Facts) -> Result<Judgement, Outcome> {
    Ok(Judgement::each(intel_registers(facts)?, |package| {
        let has_turbo = package.single_core_turbo_mhz() > package.base_mhz();
        if !(has_turbo && need(&package.misc_enable)?.bit(38)) {
            return Ok(None);
        }
        let cpus = cpus_of_package(facts, package.package);
        Ok(Some(
            Finding::new(Subject::Cpus(cpus), "the firmware has switched turbo off")
                .with(Evidence::of(&package.misc_enable).expected("bit 38 clear"))
                .with(Evidence::of(&package.turbo_ratio_limit))
                .remedy(Remedy::Firmware("enable Turbo Boost (Turbo Mode)".into()))
                .because("the firmware has switched turbo off"),
        ))
    }))
}

/// `HWCR` bit 25.
fn by_amd_register(facts: &Facts) -> Result<Judgement, Outcome> {
    Ok(Judgement::each(amd_registers(facts)?, |package| {
        if !need(&package.hardware_config)?.bit(25) {
            return Ok(None);
        }
        let cpus = cpus_of_package(facts, package.package);
        Ok(Some(
            Finding::new(Subject::Cpus(cpus), "Core Performance Boost is switched off")
                .with(Evidence::of(&package.hardware_config).expected("bit 25 clear"))
                .remedy(Remedy::Firmware("enable Core Performance Boost".into()))
                .because("boost is switched off"),
        ))
    }))
}

#[cfg(test)]
mod tests {
    use crate::{
        Context, Remedy,
        checks::{
            cpu::shared::worlds::{emulated, epyc, policy, with_registers, xeon},
            testing::{findings, judge_host},
        },
    };
    use zenkai_host::{FakeHost, Query, Reply};

    const NO_TURBO: &str = "/sys/devices/system/cpu/intel_pstate/no_turbo";
    const BOOST: &str = "/sys/devices/system/cpu/cpufreq/boost";

    fn found(host: FakeHost) -> Vec<crate::Finding> {
        judge_host(&super::CHECK, host, Context::default()).findings
    }

    #[test]
    fn the_kernels_switches() {
        assert_eq!(found(xeon("ida").file(NO_TURBO, "1\n")).len(), 1);
        assert!(found(xeon("ida").file(NO_TURBO, "0\n")).is_empty());
        assert_eq!(found(epyc("cpb").file(BOOST, "0\n")).len(), 1);
        assert!(found(epyc("cpb").file(BOOST, "1\n")).is_empty());
        assert_eq!(findings(&super::CHECK, &policy(&[("boost", "0")]))[0].subject.to_string(), "CPUs 0-1");
    }

    #[test]
    fn arm_servers_show_a_switch_without_turbo() {
        let with = |highest: &str| {
            let cppc = "/sys/devices/system/cpu/cpu0/acpi_cppc";
            let mut files = policy(&[("scaling_driver", "cppc_cpufreq")]);
            files.push((BOOST.to_owned(), "0\n".to_owned()));
            files.push((format!("{cppc}/highest_perf"), format!("{highest}\n")));
            files.push((format!("{cppc}/nominal_perf"), "280\n".to_owned()));
            files.push(("/sys/devices/system/cpu/online".to_owned(), "0-1\n".to_owned()));
            findings(&super::CHECK, &files).len()
        };
        assert_eq!((with("280"), with("340")), (0, 1));
        let mut untold = policy(&[("scaling_driver", "cpufreq-dt")]);
        untold.push((BOOST.to_owned(), "0\n".to_owned()));
        assert!(findings(&super::CHECK, &untold).is_empty());
    }

    #[test]
    fn models_without_turbo_and_firmware() {
        // A Xeon Bronze: no `ida`, `no_turbo` stuck at 1, and a turbo table that ends at the base clock.
        let bronze = || xeon("").file(NO_TURBO, "1\n");
        assert!(found(bronze()).is_empty());
        assert!(found(with_registers(bronze(), &[(0x1ad, 0x1b1b_1b1b), (0x1a0, 1 << 38)])).is_empty());
        let by_firmware = found(with_registers(bronze(), &[(0x1a0, 1 << 38)]));
        assert!(matches!(by_firmware[0].remedy, Remedy::Firmware(_)));
        assert!(found(with_registers(xeon("ida"), &[(0x1a0, 0x85_0089)])).is_empty());
        assert!(found(emulated(xeon("ida"))).is_empty());
    }

    #[test]
    fn amd_by_register() {
        let with = |config: u64| {
            [(0xc001_0015, config), (0xc001_0064, 1 << 63)].iter().fold(
                epyc(""),
                |host, (register, value)| {
                    host.reply(&Query::Msr { cpu: 0, register: *register }, Reply::Numbers(vec![*value]))
                },
            )
        };
        assert_eq!(found(with(1 << 25)).len(), 1);
        assert!(found(with(0x10)).is_empty());
        assert!(found(emulated(epyc(""))).is_empty());
    }
}
