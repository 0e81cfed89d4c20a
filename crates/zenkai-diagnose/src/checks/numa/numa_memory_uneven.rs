//! Nodes of unequal size.

use zenkai_facts::Facts;

use crate::checks::shared::{needs_hardware, needs_own_cpus};
use crate::{
    Check, Context, Evidence, Finding, Impact, Judgement, Outcome, Remedy, Subject, Subsystem, need,
};

/// See the explanation.
pub(super) static CHECK: Check = Check {
    id: "numa-memory-uneven",
    subsystem: Subsystem::Numa,
    summary: "NUMA nodes have unequal memory",
    impact: Impact::Small,
    effect: "less bandwidth for the smaller node, and remote memory once it is full (estimate)",
    risk: "modules cost money; moving them needs downtime",
    source: "https://lenovopress.lenovo.com/lp1089-balanced-memory-configurations-xeon-scalable-gen-2",
    explanation: include_str!("numa_memory_uneven.md"),
    run,
};

fn run(facts: &Facts, _context: Context) -> Judgement {
    judge(facts).into()
}

fn judge(facts: &Facts) -> Result<Option<Finding>, Outcome> {
    needs_hardware(facts)?;
    needs_own_cpus(facts, "the hypervisor shows its own picture of the nodes")?;
    let reading = &facts.numa.nodes;
    let mut totals = Vec::new();
    for node in need(reading)? {
        let total = need(&node.memory)?.total_kb;
        // Nodes without CPUs are other kinds of memory (HBM, CXL); those without memory have their own check.
        if total > 0 && !need(&node.cpus)?.is_empty() {
            totals.push((node.number, total));
        }
    }
    let least = totals.iter().map(|(_, total)| *total).min().unwrap_or(0);
    let most = totals.iter().map(|(_, total)| *total).max().unwrap_or(0);
    // The first node also pays for the kernel's and the firmware's reservations.
    if totals.len() < 2 || least.saturating_mul(100) >= most.saturating_mul(80) {
        return Ok(None);
    }
    let listed: Vec<String> =
        totals.iter().map(|(node, total)| format!("{node}: {} MiB", total / 1024)).collect();
    Ok(Some(
        Finding::new(
            Subject::Machine,
            format!("the smallest node has {} % of the largest", least * 100 / most.max(1)),
        )
        .with(Evidence::derived(reading.source(), listed.join(", ")).expected("about the same for each"))
        .remedy(Remedy::Hardware("spread the memory modules evenly over the sockets".to_owned())),
    ))
}

#[cfg(test)]
mod tests {
    use crate::checks::testing::findings;

    fn fires(nodes: &[(u64, &str)]) -> bool {
        let mut files = Vec::new();
        for (node, (total, cpus)) in nodes.iter().enumerate() {
            let dir = format!("/sys/devices/system/node/node{node}");
            let field = |name: &str, value: u64| format!("Node {node} {name}: {value} kB\n");
            let info = [("MemTotal", *total), ("MemFree", 0), ("FilePages", 0), ("AnonPages", 0)];
            files.push((format!("{dir}/meminfo"), info.map(|(name, value)| field(name, value)).concat()));
            files.push((format!("{dir}/cpulist"), (*cpus).to_owned()));
        }
        !findings(&super::CHECK, &files).is_empty()
    }

    #[test]
    fn unequal_sockets() {
        assert!(fires(&[(1000, "0"), (500, "1")]));
        assert!(!fires(&[(930, "0"), (1000, "1")]), "reservations");
        assert!(!fires(&[(1000, "0"), (100, "")]), "another kind of memory");
        assert!(!fires(&[(1000, "0")]));
    }
}
