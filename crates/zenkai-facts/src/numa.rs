//! NUMA nodes: their CPUs and memory, the distances between them, and who balances.

use serde::Serialize;
use zenkai_host::Query;

use crate::{CpuSet, Observed, Reader, Reason, reader::join};

const NODE_DIR: &str = "/sys/devices/system/node";

/// NUMA nodes.
#[derive(Debug, Clone, Serialize)]
pub struct Numa {
    /// The nodes of this machine; absent when the kernel was built without NUMA.
    pub nodes: Observed<Vec<Node>>,
    /// The CPUs of each socket.
    pub sockets: Observed<Vec<CpuSet>>,
    /// Whether each CPU has its own memory controller, so that more than one socket means more than one node.
    /// False for the Xeons and Opteron-era chips that share a front-side bus.
    pub own_memory_controller: Observed<bool>,
    /// `kernel.numa_balancing`: 0 off, bit 0 between nodes, bit 1 between memory tiers
    /// (`Documentation/admin-guide/sysctl/kernel.rst`).
    pub balancing: Observed<u32>,
    /// `vm.zone_reclaim_mode`: 0 takes memory of other nodes before reclaiming
    /// (`Documentation/admin-guide/sysctl/vm.rst`).
    pub zone_reclaim_mode: Observed<u32>,
    /// Whether cold memory is moved to slower nodes instead of being reclaimed.
    pub demotion_enabled: Observed<bool>,
    /// The value of `numa=` on the kernel command line; not applicable when it is not there.
    pub command_line: Observed<String>,
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
        sockets: sockets(reader),
        own_memory_controller: own_memory_controller(reader),
        balancing: reader.number("/proc/sys/kernel/numa_balancing"),
        zone_reclaim_mode: reader.number("/proc/sys/vm/zone_reclaim_mode"),
        demotion_enabled: reader
            .text("/sys/kernel/mm/numa/demotion_enabled")
            .parse(|text| text.parse().map_err(|_| "neither true nor false".to_owned())),
        command_line: command_line(reader),
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

/// More sockets than any machine has.
const SOCKET_LIMIT: usize = 1024;

/// Asks the first CPU for its socket's CPUs, then the first that is not among them, and so on: one file for each
/// socket instead of one for each CPU.
fn sockets(reader: &Reader<'_>) -> Observed<Vec<CpuSet>> {
    let online = reader.cpu_set("/sys/devices/system/cpu/online");
    let mut rest = match online.outcome() {
        Ok(cpus) => cpus.clone(),
        Err(reason) => return Observed::unavailable(online.source(), reason.clone()),
    };
    let mut found = Vec::new();
    while let (Some(first), true) = (rest.first(), found.len() < SOCKET_LIMIT) {
        let path = |name: &str| format!("/sys/devices/system/cpu/cpu{first}/topology/{name}");
        // `core_siblings_list` is the same under its name before 5.3.
        let socket = reader
            .cpu_set(&path("package_cpus_list"))
            .or_else(|| reader.cpu_set(&path("core_siblings_list")));
        match socket.outcome() {
            Ok(cpus) if cpus.contains(first) => {
                rest = rest.difference(cpus);
                found.push(cpus.clone());
            }
            Ok(_) => {
                let wrong = Reason::Malformed("a socket without the CPU that was asked".to_owned());
                return Observed::unavailable(socket.source(), wrong);
            }
            Err(reason) => return Observed::unavailable(socket.source(), reason.clone()),
        }
    }
    online.map(|_| found)
}

/// On x86 the timestamp counter became independent of clock and sleep states (CPUID 0x80000007, edx bit 8) in the
/// same generations that brought the memory controller onto Xeons (Nehalem).
fn own_memory_controller(reader: &Reader<'_>) -> Observed<bool> {
    let query = Query::Cpuid { leaf: 0x8000_0007, subleaf: 0 };
    let by_cpuid = reader.query(&query, |reply| Some(reply.numbers()?.get(3)? & (1 << 8) != 0));
    by_cpuid.or_else(|| {
        reader.text("/proc/cpuinfo").parse(|text| {
            let flags = text.lines().find(|line| line.starts_with("flags"));
            let flags = flags.ok_or_else(|| "no flags line; not an x86 CPU".to_owned())?;
            Ok(flags.split_whitespace().any(|flag| flag == "nonstop_tsc"))
        })
    })
}

fn command_line(reader: &Reader<'_>) -> Observed<String> {
    let line = reader.text("/proc/cmdline");
    let Some(text) = line.text() else { return line };
    // After `--` come the arguments of init.
    let arguments = text.split_whitespace().take_while(|word| *word != "--");
    match arguments.filter_map(|word| word.strip_prefix("numa=")).last() {
        Some(value) => Observed::known(line.source(), value.to_owned()),
        None => {
            Observed::unavailable(line.source(), Reason::NotApplicable("`numa=` is not given".to_owned()))
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use zenkai_host::FakeHost;

    use super::*;

    #[test]
    fn two_sockets() {
        let host = FakeHost::new(&[
            ("/sys/devices/system/cpu/online", "0-7\n"),
            ("/sys/devices/system/cpu/cpu0/topology/package_cpus_list", "0,2,4,6\n"),
            ("/sys/devices/system/cpu/cpu1/topology/core_siblings_list", "1,3,5,7\n"),
            ("/sys/devices/system/node/node0/cpulist", "0,2,4,6\n"),
            ("/sys/devices/system/node/node0/distance", "10 21\n"),
            (
                "/sys/devices/system/node/node0/meminfo",
                "Node 0 MemTotal: 100 kB\nNode 0 MemFree: 30 kB\nNode 0 FilePages: 5 kB\nNode 0 AnonPages: 6 kB\n",
            ),
            ("/sys/devices/system/node/node1/cpulist", "1,3,5,7\n"),
            ("/proc/cmdline", "quiet numa=fake=2 numa=off -- numa=on\n"),
        ]);
        let numa = observe(&Reader::new(&host));
        assert_eq!(numa.sockets.get().unwrap().len(), 2);
        assert_eq!(numa.command_line.text(), Some("off"));
        let nodes = numa.nodes.get().unwrap();
        assert_eq!(nodes[0].memory.get().unwrap().free_kb, 30);
        assert_eq!(nodes[0].distances.get().unwrap(), &[10, 21]);
        assert!(nodes[1].memory.is_absent());
        assert_eq!(numa.nodes_with_memory(), None);
    }

    #[test]
    fn a_lying_socket_ends_the_walk() {
        let host = FakeHost::new(&[
            ("/sys/devices/system/cpu/online", "0-1\n"),
            ("/sys/devices/system/cpu/cpu0/topology/package_cpus_list", "1\n"),
        ]);
        assert!(matches!(sockets(&Reader::new(&host)).reason(), Some(Reason::Malformed(_))));
    }

    proptest! {
        #[test]
        fn parsers_never_panic(text in "(Node [0-9] [A-Za-z]{0,9}:? [0-9]{0,22} kB\n|[ -~]{0,30}\n){0,5}") {
            let _ = parse_memory(&text);
            let _ = parse_allocations(&text);
        }
    }
}
