//! `intel_pstate/max_perf_pct` below 100.

use zenkai_facts::Facts;
use zenkai_tune::Setting;

use super::shared::policies;

use crate::{
    Check, Context, Evidence, Finding, Impact, Judgement, Outcome, Remedy, Subject, Subsystem,
    need_or_not_applicable,
};

/// See the explanation.
pub(super) static CHECK: Check = Check {
    id: "cpu-perf-limit-percent",
    subsystem: Subsystem::Cpu,
    summary: "the performance level is limited to a percentage",
    impact: Impact::Moderate,
    effect: "the clock that is cut off, for work that the clock limits (estimate)",
    risk: "higher power draw and heat under load",
    source: "https://docs.kernel.org/admin-guide/pm/intel_pstate.html",
    explanation: include_str!("cpu_perf_limit_percent.md"),
    run,
};

fn run(facts: &Facts, _context: Context) -> Judgement {
    judge(facts).into()
}

fn judge(facts: &Facts) -> Result<Option<Finding>, Outcome> {
    policies(facts)?;
    let limit = &facts.cpu.frequency.intel_pstate.max_perf_percent;
    let percent = *need_or_not_applicable(limit, "intel_pstate does not steer these CPUs")?;
    if percent >= 100 {
        return Ok(None);
    }
    let what = format!("the performance level is limited to {percent} % of the highest");
    Ok(Some(
        Finding::new(Subject::Machine, what)
            .with(Evidence::of(limit).expected(100))
            .impact(if percent < 75 { Impact::Large } else { Impact::Moderate })
            .remedy(Remedy::Set(vec![Setting::attribute(limit.source(), "100")]))
            .because(format!("intel_pstate is limited to {percent} %")),
    ))
}

#[cfg(test)]
mod tests {
    use crate::checks::{cpu::shared::worlds::policy, testing::findings};

    fn fires(percent: &str) -> bool {
        let mut world = policy(&[("scaling_driver", "intel_pstate")]);
        world.push(("/sys/devices/system/cpu/intel_pstate/max_perf_pct".into(), format!("{percent}\n")));
        !findings(&super::CHECK, &world).is_empty()
    }

    #[test]
    fn below_all() {
        assert!(fires("60"));
        assert!(!fires("100"));
    }
}
