//! Kernel samepage merging.

use zenkai_facts::Facts;
use zenkai_tune::Setting;

use crate::{
    Check, Context, Evidence, Finding, Impact, Judgement, Outcome, Remedy, Subject, Subsystem, Workload,
    need, need_or_not_applicable,
};

/// See the explanation.
pub(super) static CHECK: Check = Check {
    id: "memory-ksm-running",
    subsystem: Subsystem::Memory,
    summary: "kernel samepage merging runs",
    impact: Impact::Small,
    effect: "CPU time of ksmd, and a fault for each write to a merged page (no general number)",
    risk: "memory use grows by what was merged",
    source: "https://docs.kernel.org/admin-guide/mm/ksm.html",
    explanation: include_str!("memory_ksm_running.md"),
    run,
};

/// Work that writes to its memory all over, or must not wait.
const DISTURBED: [Workload; 5] =
    [Workload::Redis, Workload::Mongodb, Workload::Hana, Workload::Database, Workload::Latency];

fn run(facts: &Facts, context: Context) -> Judgement {
    judge(facts, context).into()
}

fn judge(facts: &Facts, context: Context) -> Result<Option<Finding>, Outcome> {
    let ksm = &facts.memory.ksm;
    if *need_or_not_applicable(&ksm.run, "this kernel cannot merge pages")? != 1 {
        return Ok(None);
    }
    let saved_kb = need(&ksm.pages_sharing)?.saturating_mul(4);
    let total_kb = need(&facts.memory.info)?.total_kb;
    let useless = saved_kb.saturating_mul(100) < total_kb;
    let (what, impact) = match (useless, context.works_as(&DISTURBED)) {
        (true, _) => ("pages are compared all the time and less than 1 % of memory is saved", Impact::Small),
        (false, true) => ("merged pages must be copied when they are written", Impact::Depends),
        (false, false) => return Ok(None),
    };
    // 2 stops and splits what is merged; 0 would only stop.
    Ok(Some(
        Finding::new(Subject::Machine, what)
            .with(Evidence::of(&ksm.run).expected("0"))
            .with(Evidence::of(&ksm.pages_sharing))
            .impact(impact)
            .remedy(Remedy::Set(vec![Setting::attribute(ksm.run.source(), "2")])),
    ))
}

#[cfg(test)]
mod tests {
    use zenkai_host::FakeHost;

    use crate::{Context, Workload, checks::testing::judge_host};

    fn fires(run: &str, sharing: &str, workload: Option<Workload>) -> bool {
        let host = FakeHost::new(&[
            ("/sys/kernel/mm/ksm/run", run),
            ("/sys/kernel/mm/ksm/pages_sharing", sharing),
            ("/proc/meminfo", "MemTotal: 16777216 kB\nMemFree: 1 kB\n"),
        ]);
        !judge_host(&super::CHECK, host, Context { workload }).findings.is_empty()
    }

    #[test]
    fn a_hypervisor_that_saves_memory_is_left_alone() {
        assert!(fires("1", "10", None));
        assert!(!fires("1", "900000", None));
        assert!(fires("1", "900000", Some(Workload::Redis)));
        assert!(!fires("0", "0", Some(Workload::Redis)));
    }
}
