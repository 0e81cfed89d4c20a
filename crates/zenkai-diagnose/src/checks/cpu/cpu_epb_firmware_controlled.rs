//! The bias comes from the firmware, at its saving end.

use zenkai_facts::{Facts, msr::IntelRegisters};

use super::shared::{cpus_of_package, has_preference, intel_registers};

use crate::{
    Check, Context, Evidence, Finding, Impact, Judgement, Outcome, Remedy, Subject, Subsystem, need,
};

/// See the explanation.
pub(super) static CHECK: Check = Check {
    id: "cpu-epb-firmware-controlled",
    subsystem: Subsystem::Cpu,
    summary: "the firmware keeps the performance bias to itself, at its saving end",
    impact: Impact::Moderate,
    effect: "as for a saving bias, and what the system writes has no effect (no published number)",
    risk: "higher power draw",
    source: "https://docs.kernel.org/admin-guide/pm/intel_epb.html",
    explanation: include_str!("cpu_epb_firmware_controlled.md"),
    run,
};

/// `MSR_POWER_CTL` bit 34: the bias is taken from register 0xA01, which the firmware writes.
const FROM_FIRMWARE: u32 = 34;

fn run(facts: &Facts, _context: Context) -> Judgement {
    if has_preference(facts) {
        return Outcome::not_applicable("the energy-performance preference decides on these CPUs").into();
    }
    intel_registers(facts).map(|list| Judgement::each(list, |package| judge(facts, package))).into()
}

fn judge(facts: &Facts, package: &IntelRegisters) -> Result<Option<Finding>, Outcome> {
    if !need(&package.power_control)?.bit(FROM_FIRMWARE) {
        return Ok(None);
    }
    let bias = need(&package.firmware_bias)?.bits(6, 3);
    if bias < 8 {
        return Ok(None);
    }
    Ok(Some(
        Finding::new(
            Subject::Cpus(cpus_of_package(facts, package.package)),
            format!("the firmware sets the performance-energy bias to {bias} of 15 and ignores the system's"),
        )
        .with(Evidence::of(&package.power_control).expected("bit 34 clear"))
        .with(Evidence::of(&package.firmware_bias).expected("bits 6:3 below 8"))
        .remedy(Remedy::Firmware(
            "let the operating system control the energy-performance bias, or set it to performance".into(),
        ))
        .because("the firmware's energy bias saves power"),
    ))
}

#[cfg(test)]
mod tests {
    use crate::{
        Context,
        checks::{
            cpu::shared::worlds::{with_registers, xeon},
            testing::judge_host,
        },
    };

    fn fires(control: u64, bias: u64) -> bool {
        let host = with_registers(xeon(""), &[(0x1fc, control), (0xa01, bias << 3)]);
        !judge_host(&super::CHECK, host, Context::default()).findings.is_empty()
    }

    #[test]
    fn only_a_saving_firmware() {
        assert!(fires(1 << 34, 15));
        assert!(!fires(1 << 34, 0));
        assert!(!fires(3, 15));
    }
}
