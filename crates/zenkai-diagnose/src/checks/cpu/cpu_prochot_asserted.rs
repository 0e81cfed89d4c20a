//! The platform holds the CPU down by PROCHOT#.

use zenkai_facts::{Facts, msr::IntelRegisters};

use super::shared::{cpus_of_package, intel_registers};

use crate::{
    Check, Context, Evidence, Finding, Impact, Judgement, Outcome, Remedy, Subject, Subsystem, need,
};

/// See the explanation.
pub(super) static CHECK: Check = Check {
    id: "cpu-prochot-asserted",
    subsystem: Subsystem::Cpu,
    summary: "the platform forces the CPU to slow down (PROCHOT#)",
    impact: Impact::Large,
    effect: "the clock falls to a fraction of nominal (no general number); one site told its slow Dell blades from the others by this bit",
    risk: "none; do not mask the signal, it protects the hardware",
    source: "https://community.intel.com/t5/Intel-ISA-Extensions/MSR-at-0x19c-bit-2-Indicator-of-Throttling/m-p/785692",
    explanation: include_str!("cpu_prochot_asserted.md"),
    run,
};

/// `IA32_THERM_STATUS` and `IA32_PACKAGE_THERM_STATUS`: PROCHOT# or FORCEPR# comes from the platform now.
const ASSERTED: u32 = 2;

fn run(facts: &Facts, _context: Context) -> Judgement {
    intel_registers(facts).map(|list| Judgement::each(list, |package| judge(facts, package))).into()
}

fn judge(facts: &Facts, package: &IntelRegisters) -> Result<Option<Finding>, Outcome> {
    let core = need(&package.therm_status)?.bit(ASSERTED);
    // Not every model has the register of the package.
    let whole = package.package_therm_status.value().is_some_and(|status| status.bit(ASSERTED));
    if !core && !whole {
        return Ok(None);
    }
    let reading = if core { &package.therm_status } else { &package.package_therm_status };
    Ok(Some(
        Finding::new(
            Subject::Cpus(cpus_of_package(facts, package.package)),
            "the platform asserts PROCHOT#, which holds the clock near its minimum",
        )
        .with(Evidence::of(reading).expected("bit 2 clear"))
        .remedy(Remedy::Hardware(
            "check power supplies, the management controller's power cap and its event log; take the machine off power for a minute".into(),
        ))
        .because("the platform asserts PROCHOT#"),
    ))
}

#[cfg(test)]
mod tests {
    use crate::{
        Context,
        checks::{
            cpu::shared::worlds::{emulated, with_registers, xeon},
            testing::judge_host,
        },
    };
    use zenkai_host::FakeHost;

    fn fires(host: FakeHost) -> bool {
        !judge_host(&super::CHECK, host, Context::default()).findings.is_empty()
    }

    #[test]
    fn only_while_it_is_asserted() {
        assert!(fires(with_registers(xeon(""), &[(0x19c, 0x8830_0004), (0x1b1, 0x8830_0000)])));
        assert!(fires(with_registers(xeon(""), &[(0x19c, 0x8830_0000), (0x1b1, 0x8830_0004)])));
        // Bit 3 only remembers that it once was.
        assert!(!fires(with_registers(xeon(""), &[(0x19c, 0x8830_0008), (0x1b1, 0x8830_0008)])));
        assert!(!fires(emulated(xeon(""))));
        assert!(!fires(xeon("hypervisor")));
    }
}
