//! The bias register tells the CPU to save power.

use zenkai_facts::{Facts, cpu::Group};
use zenkai_tune::Setting;

use super::shared::has_preference;

use crate::{
    Check, Context, Evidence, Finding, Impact, Judgement, Outcome, Remedy, Subject, Subsystem, need,
    need_or_not_applicable,
};

/// See the explanation.
pub(super) static CHECK: Check = Check {
    id: "cpu-epb-powersaving",
    subsystem: Subsystem::Cpu,
    summary: "the performance-energy bias is at its saving end",
    impact: Impact::Moderate,
    effect: "turbo comes late or not at all (no published number)",
    risk: "higher power draw",
    source: "https://docs.kernel.org/admin-guide/pm/intel_epb.html",
    explanation: include_str!("cpu_epb_powersaving.md"),
    run,
};

/// "normal-powersave" (`arch/x86/include/asm/msr-index.h`, `ENERGY_PERF_BIAS_NORMAL_POWERSAVE`); 6 is "normal", the
/// kernel's own default.
const NORMAL_POWERSAVE: u32 = 8;

/// A model that is reported, though in no document of the maker that we found, not to enter turbo at the default bias.
const NEEDS_PERFORMANCE: &str = "E5-2687W v4";

fn run(facts: &Facts, _context: Context) -> Judgement {
    let bias = &facts.cpu.frequency.energy_perf_bias;
    if has_preference(facts) {
        return Outcome::not_applicable("the energy-performance preference decides on these CPUs").into();
    }
    need_or_not_applicable(bias, "these CPUs have no bias that the system could set")
        .map(|groups| Judgement::each(groups, |group| judge(facts, group)))
        .into()
}

fn judge(facts: &Facts, group: &Group<u32>) -> Result<Option<Finding>, Outcome> {
    let bias = *need(&group.value)?;
    let touchy = facts.cpu.model_name.text().is_some_and(|name| name.contains(NEEDS_PERFORMANCE));
    let (highest, wanted) = if touchy { (0, 0) } else { (NORMAL_POWERSAVE - 1, 6) };
    if bias <= highest {
        return Ok(None);
    }
    let path = |cpu: u32| format!("/sys/devices/system/cpu/cpu{cpu}/power/energy_perf_bias");
    let settings = group.cpus.iter().map(|cpu| Setting::attribute(path(cpu), wanted.to_string())).collect();
    Ok(Some(
        Finding::new(
            Subject::Cpus(group.cpus.clone()),
            format!("the performance-energy bias is {bias} on a scale from 0 (performance) to 15 (saving)"),
        )
        .with(Evidence::of(&group.value).expected(if touchy { "0" } else { "0 to 6" }))
        .remedy(Remedy::Set(settings))
        .because(format!("the energy bias is {bias}")),
    ))
}

#[cfg(test)]
mod tests {
    use crate::{
        Context,
        checks::{cpu::shared::worlds::xeon, testing::judge_host},
    };
    use zenkai_host::FakeHost;

    fn fires(host: FakeHost, bias: &str) -> bool {
        let host = (0..2).fold(host, |host, cpu| {
            host.file(
                &format!("/sys/devices/system/cpu/cpu{cpu}/power/energy_perf_bias"),
                &format!("{bias}\n"),
            )
        });
        !judge_host(&super::CHECK, host, Context::default()).findings.is_empty()
    }

    #[test]
    fn the_default_is_fine() {
        assert!(fires(xeon(""), "15"));
        assert!(fires(xeon(""), "8"));
        for healthy in ["0", "4", "6", "7"] {
            assert!(!fires(xeon(""), healthy), "{healthy}");
        }
    }

    #[test]
    fn irrelevant_where_the_preference_decides() {
        let policy = "/sys/devices/system/cpu/cpufreq/policy0/energy_performance_preference";
        assert!(!fires(xeon("hwp").file(policy, "performance\n"), "15"));
    }

    #[test]
    fn one_model_needs_zero() {
        let info =
            "processor: 0\nvendor_id: GenuineIntel\nmodel name: Intel(R) Xeon(R) CPU E5-2687W v4 @ 3.00GHz\n";
        assert!(fires(xeon("").file("/proc/cpuinfo", info), "6"));
        assert!(!fires(xeon("").file("/proc/cpuinfo", info), "0"));
    }
}
