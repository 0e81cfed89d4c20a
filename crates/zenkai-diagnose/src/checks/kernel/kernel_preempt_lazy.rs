//! Lazy preemption under a database.

use zenkai_facts::{Facts, kernel::Preemption};

use crate::{
    Check, Context, Evidence, Finding, Impact, Judgement, Outcome, Remedy, Subject, Subsystem, Workload, need,
};

/// See the explanation.
pub(super) static CHECK: Check = Check {
    id: "kernel-preempt-lazy",
    subsystem: Subsystem::Kernel,
    summary: "lazy preemption may interrupt a database that holds a spin lock",
    impact: Impact::Depends,
    effect: "PostgreSQL on 96 ARM CPUs without huge pages fell to 0.51 of its throughput in one measurement (S. Dipietro, April 2026)",
    risk: "none in measuring",
    source: "https://lore.kernel.org/all/20260403191942.21410-1-dipiets@amazon.it",
    explanation: include_str!("kernel_preempt_lazy.md"),
    run,
};

fn run(facts: &Facts, context: Context) -> Judgement {
    judge(facts, context).into()
}

fn judge(facts: &Facts, context: Context) -> Result<Option<Finding>, Outcome> {
    if !context.works_as(&[Workload::Database]) {
        return Err(Outcome::not_applicable("it matters for databases only; name the work with --workload"));
    }
    let model = &facts.kernel.scheduler.preemption;
    if *need(model)? != Preemption::Lazy {
        return Ok(None);
    }
    Ok(Some(
        Finding::new(
            Subject::Machine,
            "the kernel preempts lazily, which can interrupt holders of spin locks",
        )
        .with(Evidence::of(model))
        .with(Evidence::of(&facts.kernel.release))
        .remedy(Remedy::Do("give the database huge pages, and measure before and after".to_owned())),
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
    fn only_for_databases() {
        assert!(fires("full (lazy)\n", Some(Workload::Database)));
        assert!(!fires("full (lazy)\n", None));
        assert!(!fires("(full) lazy\n", Some(Workload::Database)));
    }
}
