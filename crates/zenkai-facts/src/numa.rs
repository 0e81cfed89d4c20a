//! NUMA nodes: their CPUs and memory, the distances between them, and who balances.

use serde::Serialize;

use crate::{CpuSet, Observed, Reader, reader::join};

const NODE_DIR: &str = "/sys/devices/system/node";

/// NUMA nodes.
#[derive(Debug, Clone, Serialize)]
pub struct Numa {
    /// The nodes of this machine; absent when the kernel was built without NUMA.
    pub nodes: Observed<Vec<Node>>,
    /// `kernel.numa_balancing`: 0 off, bit 0 between nodes, bit 1 between memory tiers
    /// (`Documentation/admin-guide/sysctl/kernel.rst`).
    pub balancing: Observed<u32>,
    /// `vm.zone_reclaim_mode`: 0 takes memory of other nodes before reclaiming
    /// (`Documentation/admin-guide/sysctl/vm.rst`).
    pub zone_reclaim_mode: Observed<u32>,
    /// Whether cold memory is moved to slower nodes instead of being reclaimed.
    pub demotion_enabled: Observed<bool>,
}

/// One NUMA node.
#[derive(Debug, Clone, Serialize)]
pub struct Node {
    /// Node number.
    pub number: u32,
    /// Its CPUs; empty for a node of memory alone.
    pub cpus: Observed<CpuSet>,
    /// Its memory.
    pub memory: Observed<NodeMemory>,
    /// How far each node's memory is, in the order of `nodes`; 10 is its own (ACPI SLIT).
    pub distances: Observed<Vec<u32>>,
    /// Where its memory went, in pages since boot.
    pub allocations: Observed<Allocations>,
}

/// The memory of one node, in kB (`/sys/devices/system/node/nodeN/meminfo`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct NodeMemory {
    /// All of it; 0 for a node without memory.
    pub total_kb: u64,
    /// Not used.
    pub free_kb: u64,
    /// Cached file content, which can be dropped.
    pub file_pages_kb: u64,
    /// Anonymous memory of processes.
    pub anonymous_kb: u64,
}

/// Where allocations went, in pages since boot (`Documentation/admin-guide/numastat.rst`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Allocations {
    /// Wanted here and got here.
    pub hit: u64,
    /// Wanted on another node, got here because that one was full.
    pub miss: u64,
    /// Wanted here, got elsewhere because this one is full.
    pub foreign: u64,
    /// Got here by a CPU of this node.
    pub local: u64,
    /// Got here by a CPU of another node.
    pub other: u64,
}

impl Numa {
    /// Nodes that have memory. None when that is not known of every node.
    pub fn nodes_with_memory(&self) -> Option<usize> {
        let totals: Option<Vec<u64>> =
            self.nodes.get()?.iter().map(|node| node.memory.get().map(|memory| memory.total_kb)).collect();
        Some(totals?.into_iter().filter(|total| *total > 0).count())
    }
}

/// Reads this subsystem.
pub fn observe(reader: &Reader<'_>) -> Numa {
    Numa {
        nodes: reader
            .numbered(NODE_DIR, "node")
            .map(|numbers| numbers.into_iter().map(|number| node(reader, number)).collect()),
        balancing: reader.number("/proc/sys/kernel/numa_balancing"),
        zone_reclaim_mode: reader.number("/proc/sys/vm/zone_reclaim_mode"),
        demotion_enabled: reader
            .text("/sys/kernel/mm/numa/demotion_enabled")
            .parse(|text| text.parse().map_err(|_| "neither true nor false".to_owned())),
    }
}

fn node(reader: &Reader<'_>, number: u32) -> Node {
    let path = |name: &str| join(NODE_DIR, format_args!("node{number}/{name}"));
    Node {
        number,
        cpus: reader.cpu_set(&path("cpulist")),
        memory: reader
            .text(&path("meminfo"))
            .parse(|text| parse_memory(&text).ok_or_else(|| "no MemTotal or MemFree".to_owned())),
        distances: reader.words(&path("distance")).parse(|words| {
            words.iter().map(|word| word.parse().map_err(|_| format!("`{word}` is no distance"))).collect()
        }),
        allocations: reader
            .text(&path("numastat"))
            .parse(|text| parse_allocations(&text).ok_or_else(|| "a counter is missing".to_owned())),
    }
}

/// Lines such as `Node 0 MemTotal:  1024 kB`.
fn parse_memory(text: &str) -> Option<NodeMemory> {
    let field = |name: &str| {
        text.lines().find_map(|line| {
            let mut words = line.split_whitespace().skip(2);
            (words.next()?.strip_suffix(':')? == name).then(|| words.next()?.parse::<u64>().ok())?
        })
    };
    Some(NodeMemory {
        total_kb: field("MemTotal")?,
        free_kb: field("MemFree")?,
        file_pages_kb: field("FilePages")?,
        anonymous_kb: field("AnonPages")?,
    })
}

fn parse_allocations(text: &str) -> Option<Allocations> {
    let field = |name: &str| {
        text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' ')?.trim().parse::<u64>().ok())
    };
    Some(Allocations {
        hit: field("numa_hit")?,
        miss: field("numa_miss")?,
        foreign: field("numa_foreign")?,
        local: field("local_node")?,
        other: field("other_node")?,
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use zenkai_host::FakeHost;

    use super::*;

    #[test]
    fn two_nodes() {
        let host = FakeHost::new(&[
            ("/sys/devices/system/node/node0/cpulist", "0,2,4,6\n"),
            ("/sys/devices/system/node/node0/distance", "10 21\n"),
            (
                "/sys/devices/system/node/node0/meminfo",
                "Node 0 MemTotal: 100 kB\nNode 0 MemFree: 30 kB\nNode 0 FilePages: 5 kB\nNode 0 AnonPages: 6 kB\n",
            ),
            ("/sys/devices/system/node/node1/cpulist", "1,3,5,7\n"),
        ]);
        let numa = observe(&Reader::new(&host));
        let nodes = numa.nodes.get().unwrap();
        assert_eq!(nodes[0].memory.get().unwrap().free_kb, 30);
        assert_eq!(nodes[0].distances.get().unwrap(), &[10, 21]);
        assert!(nodes[1].memory.is_absent());
        assert_eq!(numa.nodes_with_memory(), None);
    }

    proptest! {
        #[test]
        fn parsers_never_panic(text in "(Node [0-9] [A-Za-z]{0,9}:? [0-9]{0,22} kB\n|[ -~]{0,30}\n){0,5}") {
            let _ = parse_memory(&text);
            let _ = parse_allocations(&text);
        }
    }
}
