//! idle CPUs take long to wake.

use zenkai_facts::Facts;

use crate::{
    Check, Context, Evidence, Finding, Impact, Judgement, Outcome, Remedy, Subject, Subsystem, Workload, need,
};

/// See the explanation.
pub(super) static CHECK: Check = Check {
    id: "idle-wake-slow",
    subsystem: Subsystem::Idle,
    summary: "idle CPUs take long to wake",
    impact: Impact::Depends,
    effect: "every wake-up after a pause waits this long (measured here); SAP asks HANA servers for at most 70 µs",
    risk: "shallow idle states draw more power and may lower the turbo clock of busy CPUs",
    source: "https://docs.kernel.org/admin-guide/pm/cpuidle.html",
    explanation: include_str!("idle_wake_slow.md"),
    run,
};

/// Median latency above this, µs, means deep idle states (or a hypervisor that takes its time).
const SLOW_US: f64 = 150.0;
/// Where latency is what counts: the 70 µs that SAP note 2684254 allows the idle state, and as much again for timer
/// and context switch.
const SLOW_FOR_LATENCY_US: f64 = 100.0;
/// A CPU that does other work is woken faster than an idle one: below this share the figure says nothing.
const QUIET_SHARE: f64 = 0.9;

fn run(facts: &Facts, context: Context) -> Judgement {
    judge(facts, context).into()
}

fn judge(facts: &Facts, context: Context) -> Result<Option<Finding>, Outcome> {
    let probe = need(&facts.probe)?;
    // The longer period lets the idle governor choose the deep states.
    let wake = probe.wake.iter().filter_map(|reading| reading.value()).max_by_key(|wake| wake.period_us);
    let Some(wake) = wake else { return Err(Outcome::not_applicable("no timer could be measured")) };
    let share =
        probe.cpus.iter().find(|clock| clock.cpu == wake.cpu).and_then(|clock| clock.all_busy.value());
    if share.is_none_or(|busy| busy.cpu_share < QUIET_SHARE) {
        return Err(Outcome::not_applicable("the machine was busy with other work during the probe"));
    }
    let latency = context.works_as(&[Workload::Latency, Workload::Hana, Workload::Network]);
    let limit = if latency { SLOW_FOR_LATENCY_US } else { SLOW_US };
    if wake.wake_p50_us <= limit {
        return Ok(None);
    }
    let what = format!(
        "a timer wakes it {:.0} us late in the median, {:.0} us in the worst 1 %",
        wake.wake_p50_us, wake.wake_p99_us
    );
    let source = format!("probe, timer every {} us", wake.period_us);
    let finding = Finding::new(Subject::Cpus([wake.cpu].into_iter().collect()), what)
        .with(
            Evidence::derived(source, format!("{:.1} us", wake.wake_p50_us))
                .expected(format!("at most {limit:.0}")),
        )
        .with(Evidence::of(&facts.idle.driver))
        .remedy(remedy(facts));
    Ok(Some(if latency { finding.impact(Impact::Moderate) } else { finding }))
}

fn remedy(facts: &Facts) -> Remedy {
    match facts.virtualisation.is_guest() {
        Some(true) => Remedy::Hypervisor(
            "let the guest poll before it halts (halt_poll_ns), or pin its CPUs".to_owned(),
        ),
        _ => Remedy::Do(
            "hold /dev/cpu_dma_latency at the latency the work can bear, or disable the deepest states"
                .to_owned(),
        ),
    }
}

#[cfg(test)]
mod tests {
    use zenkai_host::probe::Reading;

    use crate::{
        Context, Impact, Workload,
        checks::testing::{judge_probed, judge_probed_for, probe, wake},
    };

    #[test]
    fn judged_by_the_work_and_only_when_quiet() {
        let mut slow = probe(&[(3_000_000, 3_000_000); 2], 2_700_000);
        assert!(judge_probed(&super::CHECK, &[], &slow).findings.is_empty());
        slow.wake[1] = Reading::Value(wake(1000, 120.0));
        assert!(judge_probed(&super::CHECK, &[], &slow).findings.is_empty());
        let latency = Context { workload: Some(Workload::Latency) };
        let found = judge_probed_for(&super::CHECK, &[], &slow, latency).findings;
        assert_eq!(found[0].impact, Some(Impact::Moderate));
        slow.wake[1] = Reading::Value(wake(1000, 300.0));
        assert_eq!(judge_probed(&super::CHECK, &[], &slow).findings.len(), 1);
        if let Reading::Value(busy) = &mut slow.cpus[1].all_busy {
            busy.cpu_share = 0.5;
        }
        assert!(judge_probed(&super::CHECK, &[], &slow).findings.is_empty());
    }
}
