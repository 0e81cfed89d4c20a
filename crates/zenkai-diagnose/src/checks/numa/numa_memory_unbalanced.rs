//! Nodes filled unevenly.

use zenkai_facts::{
    CpuSet, Facts,
    numa::{Allocations, NodeMemory},
};

use crate::{
    Check, Context, Evidence, Finding, Impact, Judgement, Outcome, Remedy, Subject, Subsystem, need,
};

/// See the explanation.
pub(super) static CHECK: Check = Check {
    id: "numa-memory-unbalanced",
    subsystem: Subsystem::Numa,
    summary: "one NUMA node is full while another has room",
    impact: Impact::Moderate,
    effect: "remote memory for what no longer fits; 10 to 30 % of memory-bound work (estimate)",
    risk: "memory spread over all nodes is on average farther away",
    source: "https://dev.mysql.com/doc/refman/8.0/en/innodb-parameters.html",
    explanation: include_str!("numa_memory_unbalanced.md"),
    run,
};

fn run(facts: &Facts, _context: Context) -> Judgement {
    judge(facts).into()
}

/// Next to nothing free, and nearly all of it in programs rather than in caches that could go.
fn is_full(memory: &NodeMemory) -> bool {
    memory.free_kb.saturating_mul(50) < memory.total_kb
        && memory.anonymous_kb.saturating_mul(10) > memory.total_kb.saturating_mul(7)
}

fn has_room(memory: &NodeMemory) -> bool {
    memory.total_kb > 0 && memory.free_kb.saturating_mul(4) > memory.total_kb
}

/// Whether one of fifty allocations that were meant for the node went elsewhere.
fn overflows(allocations: &Allocations) -> bool {
    let wanted = allocations.hit.saturating_add(allocations.foreign);
    allocations.foreign.saturating_mul(50) > wanted
}

fn judge(facts: &Facts) -> Result<Option<Finding>, Outcome> {
    let nodes = need(&facts.numa.nodes)?;
    if nodes.len() < 2 {
        return Err(Outcome::not_applicable("one NUMA node"));
    }
    let mut full = Vec::new();
    let mut room = Vec::new();
    for node in nodes {
        let memory = need(&node.memory)?;
        if is_full(memory) && overflows(need(&node.allocations)?) {
            full.push(node);
        } else if has_room(memory) {
            room.push(node.number.to_string());
        }
    }
    let (Some(first), false) = (full.first(), room.is_empty()) else { return Ok(None) };
    let numbers: CpuSet = full.iter().map(|node| node.number).collect();
    let (memory, allocations) = (need(&first.memory)?, need(&first.allocations)?);
    let advice = "start the large program with `numactl --interleave=all`, or its own setting for that \
                  (`innodb_numa_interleave`), or bind one instance to each node";
    Ok(Some(
        Finding::new(
            Subject::Nodes(numbers),
            format!("full of program memory while node {} has room", room.join(", ")),
        )
        .with(Evidence::derived(
            first.memory.source(),
            format!("{} of {} MiB free", memory.free_kb / 1024, memory.total_kb / 1024),
        ))
        .with(Evidence::derived(
            first.allocations.source(),
            format!("{} pages went elsewhere, {} fitted", allocations.foreign, allocations.hit),
        ))
        .remedy(Remedy::Do(advice.to_owned())),
    ))
}

#[cfg(test)]
mod tests {
    use crate::checks::testing::findings;

    fn fires(nodes: [(u64, u64); 2], foreign: u64) -> bool {
        let mut files = Vec::new();
        for (node, (free, anonymous)) in nodes.iter().enumerate() {
            let dir = format!("/sys/devices/system/node/node{node}");
            let field = |name: &str, value: u64| format!("Node {node} {name}: {value} kB\n");
            let info =
                [("MemTotal", 1_000_000), ("MemFree", *free), ("FilePages", 0), ("AnonPages", *anonymous)];
            files.push((format!("{dir}/meminfo"), info.map(|(name, value)| field(name, value)).concat()));
            let stat =
                format!("numa_hit 1000\nnuma_miss 0\nnuma_foreign {foreign}\nlocal_node 1\nother_node 1\n");
            files.push((format!("{dir}/numastat"), stat));
        }
        !findings(&super::CHECK, &files).is_empty()
    }

    #[test]
    fn full_overflowing_and_room_elsewhere() {
        assert!(fires([(1000, 900_000), (600_000, 10_000)], 500));
        assert!(!fires([(1000, 900_000), (600_000, 10_000)], 0), "nothing went elsewhere");
        assert!(!fires([(1000, 10_000), (600_000, 10_000)], 500), "a node full of caches is healthy");
        assert!(!fires([(1000, 900_000), (1000, 900_000)], 500), "there is no room anywhere");
    }
}
