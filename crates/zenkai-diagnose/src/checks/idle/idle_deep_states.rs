//! Deep idle states under work that waits for wake-ups.

use zenkai_facts::{CpuSet, Facts};

use super::shared::{held_limits, limits_are_readable, names, states};

use crate::{
    Check, Context, Evidence, Finding, Impact, Judgement, Outcome, Remedy, Subject, Subsystem, Workload,
};

/// See the explanation.
pub(super) static CHECK: Check = Check {
    id: "idle-deep-states",
    subsystem: Subsystem::Idle,
    summary: "deep idle states are in use, and the work is latency-critical",
    impact: Impact::Moderate,
    effect: "up to the wake-up latency of the state on every wake-up; SAP asks for a limit of 70 µs for HANA",
    risk: "more power while idle, which may take turbo from the busy cores",
    source: "https://me.sap.com/notes/2684254",
    explanation: include_str!("idle_deep_states.md"),
    run,
};

/// What SAP note 2684254 asks for, as saptune applies it (`force_latency=70`).
const LIMIT_US: u64 = 70;

fn run(facts: &Facts, context: Context) -> Judgement {
    if !context.works_as(&[Workload::Latency, Workload::Hana]) {
        return Outcome::not_applicable("a matter for --workload latency or hana").into();
    }
    judge(facts).into()
}

fn judge(facts: &Facts) -> Result<Option<Finding>, Outcome> {
    let deep: Vec<_> = states(facts)?
        .iter()
        .filter(|state| state.latency_us.value() > Some(LIMIT_US) && !state.enabled_on().is_empty())
        .collect();
    if deep.is_empty() {
        return Ok(None);
    }
    limits_are_readable(facts)?;
    let global = &facts.idle.latency_limit_us;
    let limited: CpuSet = held_limits(facts)
        .into_iter()
        .filter(|held| held.limit_us <= LIMIT_US)
        .flat_map(|held| held.cpus.iter().collect::<Vec<_>>())
        .collect();
    let enabled: CpuSet =
        deep.iter().flat_map(|state| state.enabled_on().iter().collect::<Vec<_>>()).collect();
    let free = enabled.difference(&limited);
    if free.is_empty() {
        return Ok(None);
    }
    let latency = deep.iter().filter_map(|state| state.latency_us.value()).max().unwrap_or(0);
    let what = format!(
        "idle states {} are allowed, with up to {latency} µs to wake up",
        names(deep.iter().copied())
    );
    Ok(Some(
        Finding::new(Subject::Cpus(free), what)
            .with(Evidence::of(global).expected(format!("at most {LIMIT_US}")))
            .remedy(Remedy::Do(format!(
                "hold a latency limit of {LIMIT_US} µs: a tuned profile with force_latency={LIMIT_US} (sap-hana has it)"
            ))),
    ))
}

#[cfg(test)]
mod tests {
    use crate::{
        Context, Workload,
        checks::{
            idle::shared::worlds::{disable, healthy},
            testing::judge_host,
        },
    };
    use zenkai_host::FakeHost;

    fn found(host: FakeHost, workload: Option<Workload>) -> usize {
        judge_host(&super::CHECK, host, Context { workload }).findings.len()
    }

    #[test]
    fn only_for_work_that_waits() {
        let free = || healthy().file("/dev/cpu_dma_latency", "\0\0\0\u{1}");
        let held = || healthy().file("/dev/cpu_dma_latency", "\u{46}\0\0\0");
        assert_eq!(found(free(), Some(Workload::Hana)), 1);
        assert_eq!(found(free(), None), 0);
        assert_eq!(found(held(), Some(Workload::Hana)), 0);
        assert_eq!(found(disable(disable(free(), 0, 3), 1, 3), Some(Workload::Latency)), 0);
    }
}
