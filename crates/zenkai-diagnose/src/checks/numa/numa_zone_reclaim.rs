//! Zone reclaim.

use zenkai_facts::Facts;
use zenkai_tune::Setting;

use crate::{
    Check, Context, Evidence, Finding, Impact, Judgement, Outcome, Remedy, Subject, Subsystem, Workload, need,
};

/// See the explanation.
pub(super) static CHECK: Check = Check {
    id: "numa-zone-reclaim",
    subsystem: Subsystem::Numa,
    summary: "file caches are dropped although other nodes have free memory",
    impact: Impact::Moderate,
    effect: "files are read again that would still be in memory; databases ask for it to be off",
    risk: "work that depends on near memory may get remote memory",
    source: "https://docs.kernel.org/admin-guide/sysctl/vm.html",
    explanation: include_str!("numa_zone_reclaim.md"),
    run,
};

fn run(facts: &Facts, context: Context) -> Judgement {
    judge(facts, context).into()
}

fn judge(facts: &Facts, context: Context) -> Result<Option<Finding>, Outcome> {
    let reading = &facts.numa.zone_reclaim_mode;
    if reading.is_absent() || need(&facts.numa.nodes)?.len() < 2 {
        return Err(Outcome::not_applicable("one NUMA node"));
    }
    // Work split over the nodes by hand may want exactly this.
    if *need(reading)? == 0 || context.works_as(&[Workload::Hpc]) {
        return Ok(None);
    }
    let counters = facts.memory.counters.get();
    let happened = counters.and_then(|counters| counters.zone_reclaims).is_some_and(|count| count > 0);
    let mut finding =
        Finding::new(Subject::Machine, "a full node drops its caches instead of using free memory elsewhere")
            .with(Evidence::of(reading).expected("0"))
            .impact(if happened { Impact::Moderate } else { Impact::Depends })
            .remedy(Remedy::Set(vec![Setting::sysctl("vm.zone_reclaim_mode", "0")]));
    if let (true, Some(counters)) = (happened, counters) {
        let count = counters.zone_reclaims.unwrap_or(0);
        let source = facts.memory.counters.source();
        finding = finding.with(Evidence::derived(source, format!("zone_reclaim_success {count}")));
    }
    Ok(Some(finding))
}

#[cfg(test)]
mod tests {
    use zenkai_host::FakeHost;

    use crate::{Context, Impact, Workload, checks::testing::judge_host};

    fn impact(mode: &str, nodes: u32, reclaims: u32, workload: Option<Workload>) -> Option<Impact> {
        let mut host = FakeHost::new(&[
            ("/proc/sys/vm/zone_reclaim_mode", mode),
            ("/proc/vmstat", &format!("zone_reclaim_success {reclaims}\n")),
        ]);
        for node in 0..nodes {
            host = host.file(&format!("/sys/devices/system/node/node{node}/cpulist"), "0\n");
        }
        judge_host(&super::CHECK, host, Context { workload })
            .findings
            .first()
            .map(|finding| finding.impact.unwrap())
    }

    #[test]
    fn worse_when_it_really_happened() {
        assert_eq!(impact("1", 2, 500, None), Some(Impact::Moderate));
        assert_eq!(impact("1", 2, 0, None), Some(Impact::Depends));
        assert_eq!(impact("0", 2, 0, None), None);
        assert_eq!(impact("1", 1, 0, None), None);
        assert_eq!(impact("1", 2, 500, Some(Workload::Hpc)), None);
    }
}
