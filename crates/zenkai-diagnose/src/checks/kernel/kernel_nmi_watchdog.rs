//! The hard lockup watchdog on a machine for computing or low latency.

use zenkai_facts::Facts;
use zenkai_tune::Setting;

use crate::{
    Check, Context, Evidence, Finding, Impact, Judgement, Outcome, Remedy, Subject, Subsystem, Workload,
    need_or_not_applicable,
};

/// See the explanation.
pub(super) static CHECK: Check = Check {
    id: "kernel-nmi-watchdog",
    subsystem: Subsystem::Kernel,
    summary: "the hard lockup watchdog interrupts the work and holds a performance counter",
    impact: Impact::Depends,
    effect: "small, well below one per cent (estimate)",
    risk: "hard lockups of a CPU are no longer noticed",
    source: "https://docs.kernel.org/admin-guide/lockup-watchdogs.html",
    explanation: include_str!("kernel_nmi_watchdog.md"),
    run,
};

fn run(facts: &Facts, context: Context) -> Judgement {
    judge(facts, context).into()
}

fn judge(facts: &Facts, context: Context) -> Result<Option<Finding>, Outcome> {
    if !context.works_as(&[Workload::Hpc, Workload::Latency]) {
        return Err(Outcome::not_applicable("it depends on the work; name it with --workload"));
    }
    let reading = &facts.kernel.watchdog.nmi;
    if !*need_or_not_applicable(reading, "this kernel has no NMI watchdog")? {
        return Ok(None);
    }
    Ok(Some(
        Finding::new(Subject::Machine, "the hard lockup watchdog interrupts each busy CPU")
            .with(Evidence::of_switch(reading).expected("0"))
            .remedy(Remedy::Set(vec![Setting::sysctl("kernel.nmi_watchdog", "0")])),
    ))
}

#[cfg(test)]
mod tests {
    use zenkai_host::FakeHost;

    use crate::{Context, Workload, checks::testing::judge_host};

    fn fires(value: &str, workload: Option<Workload>) -> bool {
        let host = FakeHost::new(&[("/proc/sys/kernel/nmi_watchdog", value)]);
        !judge_host(&super::CHECK, host, Context { workload }).findings.is_empty()
    }

    #[test]
    fn only_where_it_was_asked_about() {
        assert!(fires("1\n", Some(Workload::Hpc)));
        assert!(!fires("0\n", Some(Workload::Hpc)));
        assert!(!fires("1\n", None));
        assert!(!fires("1\n", Some(Workload::Web)));
    }
}
