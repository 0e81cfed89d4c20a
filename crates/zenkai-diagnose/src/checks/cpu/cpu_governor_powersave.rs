//! The governor `powersave` under a driver where it means "lowest clock, always".

use zenkai_facts::{Facts, cpu::Policy};
use zenkai_tune::Setting;

use super::shared::{NEARLY_ALL, SELF_STEERING, policies, ratio};

use crate::{
    Check, Context, Evidence, Finding, Impact, Judgement, Outcome, Remedy, Subject, Subsystem, need,
};

/// See the explanation.
pub(super) static CHECK: Check = Check {
    id: "cpu-governor-powersave",
    subsystem: Subsystem::Cpu,
    summary: "the governor keeps the CPU at its lowest clock",
    impact: Impact::Large,
    effect: "the ratio of lowest to highest clock, up to 3 times slower (estimate from the governor's definition)",
    risk: "higher power draw while the machine works",
    source: "https://docs.kernel.org/admin-guide/pm/cpufreq.html",
    explanation: include_str!("cpu_governor_powersave.md"),
    run,
};

fn run(facts: &Facts, _context: Context) -> Judgement {
    policies(facts).map(|policies| Judgement::each(policies, judge)).into()
}

fn judge(policy: &Policy) -> Result<Option<Finding>, Outcome> {
    let driver = need(&policy.driver)?;
    let governor = need(&policy.governor)?;
    if governor != "powersave" || SELF_STEERING.contains(&driver.as_str()) {
        return Ok(None);
    }
    // It holds the lowest clock that the policy allows, and some raise that to the highest.
    let highest = policy.table_max_khz.value().or_else(|| policy.hardware_max_khz.value());
    if policy.min_khz.value().zip(highest).is_some_and(|(min, highest)| ratio(min, highest) >= NEARLY_ALL) {
        return Ok(None);
    }
    let path = policy.governor.source().to_owned();
    Ok(Some(
        Finding::new(
            Subject::Cpus(need(&policy.cpus)?.clone()),
            format!("governor powersave with driver {driver} holds the lowest clock whatever the load"),
        )
        .with(Evidence::of(&policy.governor).expected("performance or schedutil"))
        .with(Evidence::of(&policy.driver))
        .remedy(Remedy::Set(vec![Setting::attribute(path, "performance")]))
        .because("the governor is powersave"),
    ))
}

#[cfg(test)]
mod tests {
    use crate::checks::testing::findings;

    const POLICY: &str = "/sys/devices/system/cpu/cpufreq/policy0";

    fn fires(driver: &str, governor: &str) -> bool {
        let files = [("affected_cpus", "0 1"), ("scaling_driver", driver), ("scaling_governor", governor)];
        let files = files.map(|(name, value)| (format!("{POLICY}/{name}"), format!("{value}\n")));
        !findings(&super::CHECK, &files).is_empty()
    }

    #[test]
    fn only_where_powersave_means_slow() {
        assert!(fires("acpi-cpufreq", "powersave"));
        assert!(fires("intel_cpufreq", "powersave"));
        assert!(!fires("intel_pstate", "powersave"));
        assert!(!fires("amd-pstate-epp", "powersave"));
        assert!(!fires("acpi-cpufreq", "schedutil"));
    }

    #[test]
    fn a_lowest_clock_raised_to_the_highest_is_no_loss() {
        let with = |min: &str| {
            let files = [
                ("affected_cpus", "0"),
                ("scaling_driver", "acpi-cpufreq"),
                ("scaling_governor", "powersave"),
                ("scaling_available_frequencies", "2250000 1900000 1500000"),
                ("scaling_min_freq", min),
                ("cpuinfo_max_freq", "3414550"),
            ];
            let files = files.map(|(name, value)| (format!("{POLICY}/{name}"), format!("{value}\n")));
            findings(&super::CHECK, &files).len()
        };
        assert_eq!((with("1500000"), with("2250000")), (1, 0));
    }
}
