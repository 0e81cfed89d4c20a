//! A latency limit that keeps CPUs out of deep idle states.

use zenkai_facts::Facts;

use super::shared::{held_limits, limits_are_readable, names, states};

use crate::{Check, Context, Finding, Impact, Judgement, Outcome, Remedy, Subject, Subsystem, Workload};

/// See the explanation.
pub(super) static CHECK: Check = Check {
    id: "idle-latency-held",
    subsystem: Subsystem::Idle,
    summary: "a program keeps CPUs out of deep idle states",
    impact: Impact::Depends,
    effect: "wake-ups are faster, and the busy cores may get less turbo (no published number)",
    risk: "wake-ups take longer",
    source: "https://docs.kernel.org/power/pm_qos_interface.html",
    explanation: include_str!("idle_latency_held.md"),
    run,
};

/// Limits above this still allow the states that save most of the power of a waiting core.
const SMALL_US: u64 = 20;

fn run(facts: &Facts, context: Context) -> Judgement {
    judge_all(facts, context).into()
}

fn judge_all(facts: &Facts, context: Context) -> Result<Judgement, Outcome> {
    let states = states(facts)?;
    if context.works_as(&[Workload::Latency, Workload::Hana]) {
        return Err(Outcome::not_applicable("such work rightly holds a limit"));
    }
    limits_are_readable(facts)?;
    let held = held_limits(facts);
    if held.is_empty() {
        return Ok(Ok(None).into());
    }
    Ok(Judgement::each(held, |held| {
        let real = || states.iter().filter(|state| !state.is_polling());
        let excluded: Vec<_> =
            real().filter(|state| state.latency_us.value() > Some(held.limit_us)).collect();
        // Excluding all of them is polling, which has its own check.
        if held.limit_us > SMALL_US || excluded.is_empty() || excluded.len() == real().count() {
            return Ok(None);
        }
        let what =
            format!("a latency limit of {} µs excludes the idle states {}", held.limit_us, names(excluded));
        Ok(Some(Finding::new(Subject::Cpus(held.cpus), what).with(held.evidence).remedy(Remedy::Do(
            "if no work here needs it, find the holder (tuned-adm active; fuser -v /dev/cpu_dma_latency) and release it".into(),
        ))))
    }))
}

#[cfg(test)]
mod tests {
    use crate::{
        Context, Workload,
        checks::{idle::shared::worlds::healthy, testing::judge_host},
    };

    fn found(limit: u8, workload: Option<Workload>) -> Vec<crate::Finding> {
        let content = format!("{}\0\0\0", char::from(limit));
        let host = healthy().file("/dev/cpu_dma_latency", &content);
        judge_host(&super::CHECK, host, Context { workload }).findings
    }

    #[test]
    fn a_forgotten_limit() {
        assert!(found(2, None)[0].what.ends_with("C1E, C6"));
        assert!(found(2, Some(Workload::Latency)).is_empty());
        assert!(found(70, None).is_empty(), "what SAP asks for");
        assert!(found(0, None).is_empty(), "polling is another check's");
        let free =
            judge_host(&super::CHECK, healthy().file("/dev/cpu_dma_latency", "\0"), Context::default());
        assert_eq!((free.findings.len(), free.unjudged.len()), (0, 1));
    }
}
