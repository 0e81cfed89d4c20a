//! A real machine whose clock the system cannot steer.

use zenkai_facts::Facts;
use zenkai_tune::Setting;

use super::shared::CLOCK_IS_LENT;

use crate::checks::shared::needs_own_cpus;
use crate::{
    Check, Context, Evidence, Finding, Impact, Judgement, Outcome, Remedy, Subject, Subsystem, need,
};

/// See the explanation.
pub(super) static CHECK: Check = Check {
    id: "cpu-driver-missing",
    subsystem: Subsystem::Cpu,
    summary: "no frequency driver steers these CPUs",
    impact: Impact::Moderate,
    effect: "the firmware alone decides on the clock; the cost depends on its profile (no published number)",
    risk: "a restart; more power with a performance profile",
    source: "https://docs.kernel.org/admin-guide/pm/intel_pstate.html",
    explanation: include_str!("cpu_driver_missing.md"),
    run,
};

fn run(facts: &Facts, _context: Context) -> Judgement {
    judge(facts).into()
}

fn judge(facts: &Facts) -> Result<Option<Finding>, Outcome> {
    let (cpu, policies) = (&facts.cpu, &facts.cpu.frequency.policies);
    // Whether there is a hypervisor must be known: a dom0's CPUs do not always show the flag.
    need(&facts.virtualisation.kind)?;
    needs_own_cpus(facts, CLOCK_IS_LENT)?;
    let driven = !policies.is_absent() && !need(policies)?.is_empty();
    if driven {
        return Ok(None);
    }
    // A sandbox that shows no /sys of the machine shows no driver either.
    need(&cpu.online)?;
    // Nobody who rents a whole machine reaches its firmware, and Xen keeps the clock to itself.
    if facts.firmware.vendor.text() == Some("Amazon EC2") {
        return Err(Outcome::not_applicable("the cloud keeps the firmware of this machine to itself"));
    }
    if facts.virtualisation.is_metal() == Some(false) {
        return Err(Outcome::not_applicable("the clock is the hypervisor's business"));
    }
    // Enhanced SpeedStep (Intel) and hardware P-states (AMD): without them there is nothing to steer.
    let flags = need(&cpu.flags)?;
    if !flags.has("est") && !flags.has("hw_pstate") {
        return Err(Outcome::not_applicable("this CPU announces no frequency control"));
    }
    let finding = Finding::new(
        Subject::Machine,
        "no frequency driver is at work, so the firmware alone chooses the clock",
    )
    .with(Evidence::of(&policies.clone().map(|_| "none")).expected("policy0 and others"))
    .because("no frequency driver steers the clock");
    Ok(Some(finish(facts, finding)))
}

/// Who keeps the driver away.
fn finish(facts: &Facts, finding: Finding) -> Finding {
    for (key, value) in [("cpufreq.off", "1"), ("intel_pstate", "disable")] {
        if facts.kernel.argument(key) == Some(value) {
            return finding
                .with(
                    Evidence::part(&facts.kernel.command_line, format!("{key}={value}"))
                        .expected("not given"),
                )
                .remedy(Remedy::Set(vec![Setting::kernel_argument(key, "")]));
        }
    }
    let registers = facts.msr.intel.get().and_then(|list| list.first());
    // Bits 8 and 18: out-of-band control (`intel_pstate_platform_pwr_mgmt_exists` in intel_pstate.c).
    let out_of_band = registers
        .map(|first| &first.misc_power_management)
        .filter(|reading| reading.value().is_some_and(|register| register.bit(8) || register.bit(18)));
    let finding = match out_of_band {
        Some(reading) => finding.with(Evidence::of(reading).expected("bits 8 and 18 clear")),
        None => finding,
    };
    finding.remedy(Remedy::Firmware(
        "choose OS control of CPU power management (HPE: OS Control, Dell: OS DBPM), or the performance profile".into(),
    ))
}

#[cfg(test)]
mod tests {
    use crate::{
        Context, Remedy,
        checks::{
            cpu::shared::worlds::{epyc, xeon},
            testing::judge_host,
        },
    };
    use zenkai_host::FakeHost;

    fn found(host: FakeHost) -> Vec<crate::Finding> {
        judge_host(&super::CHECK, host, Context::default()).findings
    }

    #[test]
    fn only_on_metal_that_could_be_steered() {
        assert!(matches!(found(xeon("est"))[0].remedy, Remedy::Firmware(_)));
        assert_eq!(found(epyc("hw_pstate")).len(), 1);
        assert!(found(xeon("est hypervisor")).is_empty());
        let dom0 = xeon("est").file("/sys/hypervisor/type", "xen\n");
        assert!(found(dom0.file("/proc/xen/capabilities", "control_d\n")).is_empty(), "Xen steers");
        assert!(found(xeon("")).is_empty());
        assert!(
            found(xeon("est").file("/sys/devices/system/cpu/cpufreq/policy0/scaling_driver", "x\n"))
                .is_empty()
        );
        let by_hand = found(xeon("est").file("/proc/cmdline", "cpufreq.off=1\n"));
        assert!(matches!(by_hand[0].remedy, Remedy::Set(_)));
        assert!(found(FakeHost::new(&[])).is_empty());
    }

    #[test]
    fn not_where_nobody_could_do_anything() {
        // A `.metal` instance of EC2: no hypervisor, and no way into the firmware.
        let rented = epyc("hw_pstate").file("/sys/class/dmi/id/sys_vendor", "Amazon EC2\n");
        assert!(found(rented).is_empty());
        let no_sys = FakeHost::new(&[("/proc/cpuinfo", "processor: 0\nflags: fpu est\n")]);
        assert!(found(no_sys).is_empty(), "a sandbox without /sys");
        let dom0 =
            xeon("est").file("/sys/hypervisor/type", "xen\n").file("/proc/xen/capabilities", "control_d\n");
        assert!(found(dom0).is_empty(), "Xen steers the clock");
    }
}
