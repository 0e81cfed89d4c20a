//! The frequency driver that asks the firmware for every change.

use zenkai_facts::{Facts, cpu::Policy};

use super::shared::policies;

use crate::{
    Check, Context, Evidence, Finding, Impact, Judgement, Outcome, Remedy, Subject, Subsystem, need,
};

/// See the explanation.
pub(super) static CHECK: Check = Check {
    id: "cpu-driver-pcc",
    subsystem: Subsystem::Cpu,
    summary: "the clock is steered through the firmware (pcc-cpufreq)",
    impact: Impact::Moderate,
    effect: "each change of the clock is one request at a time to the firmware (no published number)",
    risk: "a restart",
    source: "https://docs.kernel.org/admin-guide/pm/cpufreq_drivers.html",
    explanation: include_str!("cpu_driver_pcc.md"),
    run,
};

fn run(facts: &Facts, _context: Context) -> Judgement {
    policies(facts).map(|list| Judgement::each(list, judge)).into()
}

fn judge(policy: &Policy) -> Result<Option<Finding>, Outcome> {
    if need(&policy.driver)? != "pcc-cpufreq" {
        return Ok(None);
    }
    Ok(Some(
        Finding::new(
            Subject::Cpus(need(&policy.cpus)?.clone()),
            "driver pcc-cpufreq asks the firmware for every change of the clock",
        )
        .with(Evidence::of(&policy.driver).expected("intel_pstate or acpi-cpufreq"))
        .remedy(Remedy::Firmware(
            "set the power regulator to OS control and disable Collaborative Power Control (HPE)".into(),
        ))
        .because("the firmware steers the clock (pcc-cpufreq)"),
    ))
}

#[cfg(test)]
mod tests {
    use crate::checks::{cpu::shared::worlds::policy, testing::findings};

    #[test]
    fn only_pcc() {
        assert_eq!(findings(&super::CHECK, &policy(&[("scaling_driver", "pcc-cpufreq")])).len(), 1);
        assert!(findings(&super::CHECK, &policy(&[("scaling_driver", "intel_pstate")])).is_empty());
    }
}
