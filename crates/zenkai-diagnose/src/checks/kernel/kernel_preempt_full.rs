//! Full preemption where throughput matters.

use zenkai_facts::{Facts, kernel::Preemption};
use zenkai_tune::Setting;

use crate::{
    Check, Context, Evidence, Finding, Impact, Judgement, Outcome, Remedy, Subject, Subsystem, Workload, need,
};

/// See the explanation.
pub(super) static CHECK: Check = Check {
    id: "kernel-preempt-full",
    subsystem: Subsystem::Kernel,
    summary: "the kernel may be interrupted anywhere, which costs throughput",
    impact: Impact::Depends,
    effect: "a few per cent of throughput (estimate)",
    risk: "longer delays for urgent tasks",
    source: "https://docs.kernel.org/admin-guide/kernel-parameters.html",
    explanation: include_str!("kernel_preempt_full.md"),
    run,
};

const THROUGHPUT: [Workload; 6] = [
    Workload::Database,
    Workload::Mongodb,
    Workload::Web,
    Workload::Hpc,
    Workload::Storage,
    Workload::Network,
];

fn run(facts: &Facts, context: Context) -> Judgement {
    judge(facts, context).into()
}

fn judge(facts: &Facts, context: Context) -> Result<Option<Finding>, Outcome> {
    if !context.works_as(&THROUGHPUT) {
        return Err(Outcome::not_applicable("it depends on the work; name it with --workload"));
    }
    let model = &facts.kernel.scheduler.preemption;
    let dynamic = facts.kernel.version.text().is_some_and(|text| text.contains("PREEMPT_DYNAMIC"));
    let remedy = match need(model)? {
        Preemption::Full if dynamic => Remedy::Set(vec![Setting::kernel_argument("preempt", "voluntary")]),
        Preemption::Full => Remedy::Do("use a kernel that is built with another preemption model".to_owned()),
        Preemption::Realtime => {
            Remedy::Do("use the distribution's kernel that is not for real time".to_owned())
        }
        _ => return Ok(None),
    };
    Ok(Some(
        Finding::new(Subject::Machine, "the kernel may be interrupted anywhere, which costs throughput")
            .with(Evidence::of(model).expected("none, voluntary or lazy"))
            .remedy(remedy),
    ))
}

#[cfg(test)]
mod tests {
    use zenkai_host::FakeHost;

    use crate::{Context, Workload, checks::testing::judge_host};

    fn fires(shown: &str, workload: Option<Workload>) -> bool {
        let host = FakeHost::new(&[("/sys/kernel/debug/sched/preempt", shown)]);
        !judge_host(&super::CHECK, host, Context { workload }).findings.is_empty()
    }

    #[test]
    fn only_for_throughput() {
        assert!(fires("none voluntary (full)\n", Some(Workload::Web)));
        assert!(!fires("none voluntary (full)\n", Some(Workload::Latency)));
        assert!(!fires("none voluntary (full)\n", None));
        assert!(!fires("none (voluntary) full\n", Some(Workload::Web)));
    }
}
