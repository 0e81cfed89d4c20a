//! The hardware is told to prefer saving power.

use zenkai_facts::{Facts, cpu::Policy};
use zenkai_tune::Setting;

use super::shared::policies;

use crate::{
    Check, Context, Evidence, Finding, Impact, Judgement, Outcome, Remedy, Subject, Subsystem, need,
};

/// See the explanation.
pub(super) static CHECK: Check = Check {
    id: "cpu-epp-powersaving",
    subsystem: Subsystem::Cpu,
    summary: "the CPU is told to prefer saving power",
    impact: Impact::Moderate,
    effect: "0 to 10 % throughput and more tail latency under bursts (estimate); next to nothing when all CPUs are saturated",
    risk: "higher power draw, also at low load",
    source: "https://docs.kernel.org/admin-guide/pm/intel_pstate.html",
    explanation: include_str!("cpu_epp_powersaving.md"),
    run,
};

/// The drivers that hand the preference to the hardware.
const DRIVERS: [&str; 3] = ["intel_pstate", "intel_cpufreq", "amd-pstate-epp"];

/// `balance_power` as a number, on Intel and AMD alike (`HWP_EPP_BALANCE_POWERSAVE`, `AMD_CPPC_EPP_BALANCE_POWERSAVE`).
const BALANCE_POWER: u8 = 0xc0;

fn run(facts: &Facts, _context: Context) -> Judgement {
    policies(facts).map(|list| Judgement::each(list, judge)).into()
}

fn judge(policy: &Policy) -> Result<Option<Finding>, Outcome> {
    let preference = &policy.energy_performance_preference;
    if preference.is_absent() || !DRIVERS.contains(&need(&policy.driver)?.as_str()) {
        return Err(Outcome::not_applicable("these CPUs take no energy-performance preference"));
    }
    let word = need(preference)?;
    let impact = match (word.as_str(), word.parse::<u8>()) {
        ("power", _) | (_, Ok(u8::MAX)) => Impact::Moderate,
        ("balance_power", _) | (_, Ok(BALANCE_POWER..)) => Impact::Small,
        _ => return Ok(None),
    };
    let better = "balance_performance";
    Ok(Some(
        Finding::new(
            Subject::Cpus(need(&policy.cpus)?.clone()),
            format!("the energy-performance preference is {word}: the clock rises late and stays low"),
        )
        .with(Evidence::of(preference).expected("balance_performance or performance"))
        .with(Evidence::of(&policy.driver))
        .impact(impact)
        .remedy(Remedy::Set(vec![Setting::attribute(preference.source(), better)]))
        .because(format!("the energy-performance preference is {word}")),
    ))
}

#[cfg(test)]
mod tests {
    use crate::checks::{cpu::shared::worlds::policy, testing::findings};

    fn impact(driver: &str, preference: &str) -> Option<crate::Impact> {
        let world = policy(&[("scaling_driver", driver), ("energy_performance_preference", preference)]);
        findings(&super::CHECK, &world).first().and_then(|finding| finding.impact)
    }

    #[test]
    fn only_the_saving_end() {
        use crate::Impact;
        assert_eq!(impact("intel_pstate", "power"), Some(Impact::Moderate));
        assert_eq!(impact("amd-pstate-epp", "balance_power"), Some(Impact::Small));
        assert_eq!(impact("intel_pstate", "200"), Some(Impact::Small));
        assert_eq!(impact("intel_pstate", "255"), Some(Impact::Moderate));
        // What distributions set, and what the firmware left.
        for healthy in ["balance_performance", "performance", "default", "128", "0"] {
            assert_eq!(impact("intel_pstate", healthy), None, "{healthy}");
        }
        assert_eq!(impact("acpi-cpufreq", "power"), None);
    }
}
