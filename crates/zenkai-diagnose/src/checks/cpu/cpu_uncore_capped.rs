//! The clock of mesh, cache and memory controller is capped.

use zenkai_facts::{Facts, cpu::UncoreDomain};
use zenkai_tune::Setting;

use super::shared::{NEARLY_ALL, ghz, ratio};

use crate::{
    Check, Context, Evidence, Finding, Impact, Judgement, Outcome, Remedy, Subject, Subsystem, need,
    need_or_not_applicable,
};

/// See the explanation.
pub(super) static CHECK: Check = Check {
    id: "cpu-uncore-capped",
    subsystem: Subsystem::Cpu,
    summary: "the clock of mesh, cache and memory controller is capped",
    impact: Impact::Moderate,
    effect: "memory and last-level cache slow down with this clock (no published number)",
    risk: "more power, which may cost the cores some turbo",
    source: "https://docs.kernel.org/admin-guide/pm/intel_uncore_frequency_scaling.html",
    explanation: include_str!("cpu_uncore_capped.md"),
    run,
};

fn run(facts: &Facts, _context: Context) -> Judgement {
    let domains = &facts.cpu.frequency.uncore;
    need_or_not_applicable(domains, "this kernel or CPU has no uncore clock that could be set")
        .map(|list| Judgement::each(list, judge))
        .into()
}

fn judge(domain: &UncoreDomain) -> Result<Option<Finding>, Outcome> {
    let (max, initial) = (*need(&domain.max_khz)?, *need(&domain.initial_max_khz)?);
    if ratio(max, initial) >= NEARLY_ALL {
        return Ok(None);
    }
    Ok(Some(
        Finding::new(
            Subject::device(&domain.name),
            format!("the uncore clock is capped at {} of {}", ghz(max), ghz(initial)),
        )
        .with(Evidence::of(&domain.max_khz).expected(initial))
        .with(Evidence::of(&domain.initial_max_khz))
        .remedy(Remedy::Set(vec![Setting::attribute(domain.max_khz.source(), initial.to_string())]))
        .because("the uncore clock is capped"),
    ))
}

#[cfg(test)]
mod tests {
    use crate::checks::testing::findings;

    fn fires(max: &str) -> bool {
        let dir = "/sys/devices/system/cpu/intel_uncore_frequency/package_00_die_00";
        let world =
            [(format!("{dir}/max_freq_khz"), max), (format!("{dir}/initial_max_freq_khz"), "2400000\n")];
        !findings(&super::CHECK, &world).is_empty()
    }

    #[test]
    fn below_what_it_was_at_boot() {
        assert!(fires("1200000\n"));
        assert!(!fires("2400000\n"));
    }
}
