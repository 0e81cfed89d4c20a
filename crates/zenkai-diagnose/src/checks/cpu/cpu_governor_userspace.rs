//! A clock that a person fixed, below what the CPU can do.

use zenkai_facts::{Facts, cpu::Policy};
use zenkai_tune::Setting;

use super::shared::{NEARLY_ALL, ghz, policies, ratio};

use crate::{
    Check, Context, Evidence, Finding, Impact, Judgement, Outcome, Remedy, Subject, Subsystem, need,
};

/// See the explanation.
pub(super) static CHECK: Check = Check {
    id: "cpu-governor-userspace",
    subsystem: Subsystem::Cpu,
    summary: "the clock was fixed by hand below the highest",
    impact: Impact::Large,
    effect: "the ratio of the fixed to the highest clock (estimate from the definition of the governor)",
    risk: "higher power draw while the machine works",
    source: "https://docs.kernel.org/admin-guide/pm/cpufreq.html",
    explanation: include_str!("cpu_governor_userspace.md"),
    run,
};

fn run(facts: &Facts, _context: Context) -> Judgement {
    policies(facts).map(|policies| Judgement::each(policies, judge)).into()
}

fn judge(policy: &Policy) -> Result<Option<Finding>, Outcome> {
    if need(&policy.governor)? != "userspace" {
        return Ok(None);
    }
    let fixed = *need(&policy.fixed_khz)?;
    // On AMD the table ends at the nominal clock; the hardware's own maximum would count boost.
    let highest = policy.table_max_khz.value().map_or_else(|| need(&policy.hardware_max_khz).copied(), Ok)?;
    if ratio(fixed, highest) >= NEARLY_ALL {
        return Ok(None);
    }
    let governors = policy.available_governors.get().map(Vec::as_slice).unwrap_or_default();
    let better = if governors.iter().any(|name| name == "schedutil") { "schedutil" } else { "performance" };
    let what = format!("governor userspace holds the clock at {} of {}", ghz(fixed), ghz(highest));
    Ok(Some(
        Finding::new(Subject::Cpus(need(&policy.cpus)?.clone()), what)
            .with(Evidence::of(&policy.governor).expected(better))
            .with(Evidence::of(&policy.fixed_khz).expected(highest))
            .remedy(Remedy::Set(vec![Setting::attribute(policy.governor.source(), better)]))
            .because("somebody fixed the clock (governor userspace)"),
    ))
}

#[cfg(test)]
mod tests {
    use crate::checks::{cpu::shared::worlds::policy, testing::findings};

    fn fires(governor: &str, fixed: &str) -> bool {
        let world = policy(&[
            ("scaling_governor", governor),
            ("scaling_setspeed", fixed),
            ("scaling_available_frequencies", "2700000 800000"),
        ]);
        !findings(&super::CHECK, &world).is_empty()
    }

    #[test]
    fn only_a_low_fixed_clock() {
        assert!(fires("userspace", "800000"));
        assert!(!fires("userspace", "2700000"));
        assert!(!fires("schedutil", "<unsupported>"));
    }
}
