//! `scaling_max_freq` below what the hardware can do.

use zenkai_facts::{
    Facts,
    cpu::{Frequency, Policy},
};
use zenkai_tune::Setting;

use super::shared::{NEARLY_ALL, ghz, policies, ratio};

use crate::{
    Check, Context, Evidence, Finding, Impact, Judgement, Outcome, Remedy, Subject, Subsystem, need,
};

/// See the explanation.
pub(super) static CHECK: Check = Check {
    id: "cpu-max-frequency-capped",
    subsystem: Subsystem::Cpu,
    summary: "the highest clock is capped",
    impact: Impact::Moderate,
    effect: "at most the ratio of cap to highest clock, for work that the clock limits (estimate)",
    risk: "higher power draw and heat under load",
    source: "https://docs.kernel.org/admin-guide/pm/cpufreq.html",
    explanation: include_str!("cpu_max_frequency_capped.md"),
    run,
};

/// Intel's acpi-cpufreq shows "turbo" as a clock 1 MHz above nominal.
const TURBO_STEP_KHZ: u64 = 1000;

fn run(facts: &Facts, _context: Context) -> Judgement {
    let frequency = &facts.cpu.frequency;
    policies(facts).map(|list| Judgement::each(list, |policy| judge(frequency, policy))).into()
}

/// The clock the policy would allow if nobody capped it, unless something with a check of its own lowers it.
fn uncapped(frequency: &Frequency, policy: &Policy, max: u64) -> Result<Option<u64>, Outcome> {
    if need(&policy.driver)? == "acpi-cpufreq" {
        // On EPYC the policy ends at the nominal clock and boost is above it, though cpuinfo_max_freq counts boost.
        let Some(table) = policy.table_max_khz.value() else { return Ok(None) };
        let by_firmware = policy.bios_limit_khz.value().is_some_and(|limit| limit < table && max >= limit);
        return Ok((!by_firmware).then_some(table));
    }
    let highest = *need(&policy.hardware_max_khz)?;
    let no_turbo = frequency.intel_pstate.no_turbo.value() == Some(true)
        || frequency.boost.value() == Some(false)
        || policy.boost.value() == Some(false);
    if no_turbo {
        let nominal = frequency.cppc.nominal_mhz.value().map(|mhz| mhz.saturating_mul(1000));
        return Ok(policy.base_khz.value().or(nominal).map(|base| base.min(highest)));
    }
    let percent = frequency.intel_pstate.max_perf_percent.value().unwrap_or(100);
    let by_percent = highest.saturating_mul(percent.into()) / 100;
    Ok((percent >= 100 || ratio(max, by_percent) < NEARLY_ALL).then_some(highest))
}

fn judge(frequency: &Frequency, policy: &Policy) -> Result<Option<Finding>, Outcome> {
    let max = *need(&policy.max_khz)?;
    let Some(highest) = uncapped(frequency, policy, max)? else { return Ok(None) };
    let part = ratio(max, highest);
    let turbo_cut = max.checked_add(TURBO_STEP_KHZ) == Some(highest);
    if part >= NEARLY_ALL && !turbo_cut {
        return Ok(None);
    }
    let what = if turbo_cut {
        format!("the clock is capped at {}, which leaves out turbo", ghz(max))
    } else {
        format!("the clock is capped at {} of {}", ghz(max), ghz(highest))
    };
    let impact = if part < 0.75 { Impact::Large } else { Impact::Moderate };
    Ok(Some(
        Finding::new(Subject::Cpus(need(&policy.cpus)?.clone()), what)
            .with(Evidence::of(&policy.max_khz).expected(highest))
            .with(Evidence::of(&policy.driver))
            .impact(impact)
            .remedy(Remedy::Set(vec![Setting::attribute(policy.max_khz.source(), highest.to_string())]))
            .because(format!("it is capped at {}", ghz(max))),
    ))
}

#[cfg(test)]
mod tests {
    use crate::checks::{cpu::shared::worlds::policy, testing::findings};

    fn found(driver: &str, max: &str, more: &[(&str, &str)], global: &[(&str, &str)]) -> usize {
        let mut files = vec![("scaling_driver", driver), ("scaling_max_freq", max)];
        files.extend_from_slice(more);
        let mut world = policy(&files);
        let cpu = "/sys/devices/system/cpu";
        world.extend(global.iter().map(|(name, value)| (format!("{cpu}/{name}"), format!("{value}\n"))));
        findings(&super::CHECK, &world).len()
    }

    #[test]
    fn a_cap() {
        assert_eq!(found("intel_pstate", "1200000", &[("cpuinfo_max_freq", "3700000")], &[]), 1);
        assert_eq!(found("intel_pstate", "3700000", &[("cpuinfo_max_freq", "3700000")], &[]), 0);
        let table =
            [("cpuinfo_max_freq", "2701000"), ("scaling_available_frequencies", "2701000 2700000 800000")];
        assert_eq!(found("acpi-cpufreq", "2701000", &table, &[]), 0);
        assert_eq!(found("acpi-cpufreq", "2700000", &table, &[]), 1, "turbo left out");
    }

    #[test]
    fn epyc_boost_lies_above_the_policy() {
        let epyc = [
            ("cpuinfo_max_freq", "3410000"),
            ("scaling_available_frequencies", "2250000 1700000 1500000"),
            ("bios_limit", "2250000"),
        ];
        assert_eq!(found("acpi-cpufreq", "2250000", &epyc, &[("cpufreq/boost", "1")]), 0);
        assert_eq!(found("acpi-cpufreq", "1500000", &epyc, &[("cpufreq/boost", "1")]), 1);
        // Without the table nothing is known of the nominal clock.
        assert_eq!(found("acpi-cpufreq", "2250000", &epyc[..1], &[]), 0);
    }

    #[test]
    fn what_other_checks_explain() {
        let intel = [("cpuinfo_max_freq", "3700000"), ("base_frequency", "2700000")];
        assert_eq!(found("intel_pstate", "2700000", &intel, &[("intel_pstate/no_turbo", "1")]), 0);
        assert_eq!(found("intel_pstate", "1000000", &intel, &[("intel_pstate/no_turbo", "1")]), 1);
        assert_eq!(found("intel_cpufreq", "2220000", &intel, &[("intel_pstate/max_perf_pct", "60")]), 0);
        let limit = [("bios_limit", "1800000"), ("scaling_available_frequencies", "2700000 1800000")];
        assert_eq!(found("acpi-cpufreq", "1800000", &limit, &[]), 0);
    }
}
