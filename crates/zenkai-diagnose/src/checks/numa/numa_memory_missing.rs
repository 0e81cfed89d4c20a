//! A node without memory.

use zenkai_facts::{CpuSet, Facts};

use crate::checks::shared::needs_hardware;
use crate::{
    Check, Context, Evidence, Finding, Impact, Judgement, Outcome, Remedy, Subject, Subsystem, need,
};

/// See the explanation.
pub(super) static CHECK: Check = Check {
    id: "numa-memory-missing",
    subsystem: Subsystem::Numa,
    summary: "a NUMA node has CPUs but no memory",
    impact: Impact::Large,
    effect: "all memory accesses of these CPUs go to another socket, and the memory channels of this one lie idle",
    risk: "modules cost money; moving them needs downtime",
    source: "https://lenovopress.lenovo.com/lp1089-balanced-memory-configurations-xeon-scalable-gen-2",
    explanation: include_str!("numa_memory_missing.md"),
    run,
};

fn run(facts: &Facts, _context: Context) -> Judgement {
    judge(facts).into()
}

fn judge(facts: &Facts) -> Result<Option<Finding>, Outcome> {
    needs_hardware(facts)?;
    let numa = &facts.numa;
    let nodes = need(&numa.nodes)?;
    // Within one socket it may be the chip's design: two of the four dies of a Threadripper 2990WX have none.
    if nodes.len() < 2 || need(&facts.cpu.topology.packages)?.len() < 2 {
        return Err(Outcome::not_applicable("one socket"));
    }
    let mut empty = Vec::new();
    for node in nodes {
        if need(&node.memory)?.total_kb == 0 && !need(&node.cpus)?.is_empty() {
            empty.push(node);
        }
    }
    let Some(first) = empty.first() else { return Ok(None) };
    let numbers: CpuSet = empty.iter().map(|node| node.number).collect();
    Ok(Some(
        Finding::new(Subject::Nodes(numbers), "its CPUs have no memory of their own")
            .with(
                Evidence::derived(first.memory.source(), "MemTotal 0 kB")
                    .expected("a share like the others'"),
            )
            .with(Evidence::of(&first.cpus))
            .remedy(Remedy::Hardware("spread the memory modules evenly over the sockets".to_owned()))
            .because("a socket has no memory"),
    ))
}

#[cfg(test)]
mod tests {
    use crate::checks::testing::{cpu_info, findings};

    fn fires(totals: &[u64], sockets: bool) -> bool {
        let sockets: &[&str] = if sockets { &["0", "1"] } else { &["0-1"] };
        let mut files = vec![("/proc/cpuinfo".to_owned(), cpu_info(sockets, ""))];
        for (node, total) in totals.iter().enumerate() {
            let dir = format!("/sys/devices/system/node/node{node}");
            let field = |name: &str, value: u64| format!("Node {node} {name}: {value} kB\n");
            let info = [("MemTotal", *total), ("MemFree", 0), ("FilePages", 0), ("AnonPages", 0)];
            files.push((format!("{dir}/meminfo"), info.map(|(name, value)| field(name, value)).concat()));
            files.push((format!("{dir}/cpulist"), format!("{node}\n")));
        }
        !findings(&super::CHECK, &files).is_empty()
    }

    #[test]
    fn an_empty_socket() {
        assert!(fires(&[1000, 0], true));
        assert!(!fires(&[1000, 1000], true));
        assert!(!fires(&[1000, 0], false), "dies without memory in one socket are by design");
    }
}
