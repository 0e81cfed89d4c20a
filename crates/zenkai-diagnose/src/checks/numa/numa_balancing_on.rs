//! Automatic NUMA balancing.

use zenkai_facts::Facts;
use zenkai_tune::Setting;

use crate::{
    Check, Context, Evidence, Finding, Impact, Judgement, Outcome, Remedy, Subject, Subsystem, Workload, need,
};

/// See the explanation.
pub(super) static CHECK: Check = Check {
    id: "numa-balancing-on",
    subsystem: Subsystem::Numa,
    summary: "automatic NUMA balancing disturbs this work",
    impact: Impact::Small,
    effect: "faults that are provoked to see who uses a page, and pages that move; SAP asks for it to be off",
    risk: "programs that are not placed by hand may stay far from their memory",
    source: "https://me.sap.com/notes/3577842",
    explanation: include_str!("numa_balancing_on.md"),
    run,
};

fn run(facts: &Facts, context: Context) -> Judgement {
    judge(facts, context).into()
}

fn judge(facts: &Facts, context: Context) -> Result<Option<Finding>, Outcome> {
    if !context.works_as(&[Workload::Hana, Workload::Latency]) {
        return Err(Outcome::not_applicable("it depends on the work: name it with --workload"));
    }
    let reading = &facts.numa.balancing;
    if reading.is_absent() || need(&facts.numa.nodes)?.len() < 2 {
        return Err(Outcome::not_applicable("one NUMA node"));
    }
    // Bit 1 moves cold memory to slower tiers and is another matter.
    if *need(reading)? & 1 == 0 {
        return Ok(None);
    }
    let moved = facts.memory.counters.get().and_then(|counters| counters.numa_pages_migrated);
    let mut finding = Finding::new(Subject::Machine, "the kernel takes pages away to see who uses them")
        .with(Evidence::of(reading).expected("0"))
        .remedy(Remedy::Set(vec![Setting::sysctl("kernel.numa_balancing", "0")]));
    if let Some(moved) = moved {
        finding =
            finding.with(Evidence::derived(facts.memory.counters.source(), format!("{moved} pages moved")));
    }
    Ok(Some(finding))
}

#[cfg(test)]
mod tests {
    use zenkai_host::FakeHost;

    use crate::{Context, Workload, checks::testing::judge_host};

    fn fires(mode: &str, nodes: u32, workload: Option<Workload>) -> bool {
        let mut host = FakeHost::new(&[("/proc/sys/kernel/numa_balancing", mode)]);
        for node in 0..nodes {
            host = host.file(&format!("/sys/devices/system/node/node{node}/cpulist"), "0\n");
        }
        !judge_host(&super::CHECK, host, Context { workload }).findings.is_empty()
    }

    #[test]
    fn only_for_work_placed_by_hand() {
        assert!(fires("1", 2, Some(Workload::Hana)));
        assert!(!fires("1", 2, None), "good for work that nobody places");
        assert!(!fires("2", 2, Some(Workload::Hana)), "tiering only");
        assert!(!fires("1", 1, Some(Workload::Hana)));
    }
}
