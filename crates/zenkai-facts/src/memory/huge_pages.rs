//! Huge pages: transparent ones, and pools of explicit ones.

use serde::Serialize;

use crate::{Choice, Observed, Reader, reader::join};

/// Transparent huge pages (`Documentation/admin-guide/mm/transhuge.rst`).
#[derive(Debug, Clone, Serialize)]
pub struct TransparentHugePages {
    /// For which memory the kernel uses them: `always`, `madvise`, `never`.
    pub enabled: Observed<Choice>,
    /// How hard a fault tries to get one: `always`, `defer`, `defer+madvise`, `madvise`, `never`.
    pub defrag: Observed<Choice>,
    /// For which shared memory.
    pub shmem_enabled: Observed<Choice>,
    /// Whether a read of untouched memory maps one huge page of zeros.
    pub use_zero_page: Observed<bool>,
    /// The daemon that puts small pages together.
    pub khugepaged: Khugepaged,
}

/// The daemon that puts small pages together.
#[derive(Debug, Clone, Serialize)]
pub struct Khugepaged {
    /// Whether it may move memory to get huge pages.
    pub defrag: Observed<bool>,
    /// Pages it looks at in one go.
    pub pages_to_scan: Observed<u64>,
    /// Pause between two goes, in ms.
    pub scan_sleep_ms: Observed<u64>,
    /// How many of the small pages may be untouched, out of 511 on x86: memory it may waste.
    pub max_ptes_none: Observed<u64>,
    /// How often it went through everything.
    pub full_scans: Observed<u64>,
    /// Huge pages it made.
    pub pages_collapsed: Observed<u64>,
}

/// Explicit huge pages of one size (`Documentation/admin-guide/mm/hugetlbpage.rst`).
#[derive(Debug, Clone, Serialize)]
pub struct HugePagePool {
    /// Size of one page, in kB.
    pub page_kb: u64,
    /// Pages in the pool.
    pub total: Observed<u64>,
    /// Pages that nobody uses.
    pub free: Observed<u64>,
    /// Free pages that somebody was promised.
    pub reserved: Observed<u64>,
    /// Pages beyond the pool's fixed size.
    pub surplus: Observed<u64>,
    /// How many pages beyond its size the pool may grow.
    pub overcommit: Observed<u64>,
    /// The pool's share on each NUMA node.
    pub nodes: Vec<NodePool>,
}

/// The pages of one pool on one NUMA node.
#[derive(Debug, Clone, Serialize)]
pub struct NodePool {
    /// Node number.
    pub node: u32,
    /// Pages there.
    pub total: Observed<u64>,
    /// Those that nobody uses.
    pub free: Observed<u64>,
}

pub(super) fn transparent(reader: &Reader<'_>) -> TransparentHugePages {
    let path = |name: &str| join("/sys/kernel/mm/transparent_hugepage", name);
    let number = |name: &str| reader.number::<u64>(&path(name));
    TransparentHugePages {
        enabled: reader.choice(&path("enabled")),
        defrag: reader.choice(&path("defrag")),
        shmem_enabled: reader.choice(&path("shmem_enabled")),
        use_zero_page: reader.flag(&path("use_zero_page")),
        khugepaged: Khugepaged {
            defrag: reader.flag(&path("khugepaged/defrag")),
            pages_to_scan: number("khugepaged/pages_to_scan"),
            scan_sleep_ms: number("khugepaged/scan_sleep_millisecs"),
            max_ptes_none: number("khugepaged/max_ptes_none"),
            full_scans: number("khugepaged/full_scans"),
            pages_collapsed: number("khugepaged/pages_collapsed"),
        },
    }
}

pub(super) fn pools(reader: &Reader<'_>) -> Observed<Vec<HugePagePool>> {
    const DIR: &str = "/sys/kernel/mm/hugepages";
    let nodes = reader.numbered("/sys/devices/system/node", "node").get().cloned().unwrap_or_default();
    reader.names(DIR).map(|names| {
        let mut sizes: Vec<u64> = names.iter().filter_map(|name| page_kb(name)).collect();
        sizes.sort_unstable();
        sizes.into_iter().map(|size| pool(reader, &join(DIR, dir_name(size)), size, &nodes)).collect()
    })
}

fn pool(reader: &Reader<'_>, dir: &str, page_kb: u64, nodes: &[u32]) -> HugePagePool {
    let number = |name: &str| reader.number::<u64>(&join(dir, name));
    let total = number("nr_hugepages");
    // An empty pool is empty on every node.
    let used = total.value().is_some_and(|total| total > 0);
    let of_node = |node: &u32| {
        let dir = format!("/sys/devices/system/node/node{node}/hugepages/{}", dir_name(page_kb));
        NodePool {
            node: *node,
            total: reader.number(&join(&dir, "nr_hugepages")),
            free: reader.number(&join(&dir, "free_hugepages")),
        }
    };
    HugePagePool {
        page_kb,
        free: number("free_hugepages"),
        reserved: number("resv_hugepages"),
        surplus: number("surplus_hugepages"),
        overcommit: number("nr_overcommit_hugepages"),
        nodes: if used { nodes.iter().map(of_node).collect() } else { Vec::new() },
        total,
    }
}

fn dir_name(page_kb: u64) -> String {
    format!("hugepages-{page_kb}kB")
}

fn page_kb(name: &str) -> Option<u64> {
    name.strip_prefix("hugepages-")?.strip_suffix("kB")?.parse().ok()
}

#[cfg(test)]
mod tests {
    use zenkai_host::FakeHost;

    use super::*;

    #[test]
    fn pools_by_size_and_node() {
        let host = FakeHost::new(&[
            ("/sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages", "8\n"),
            ("/sys/kernel/mm/hugepages/hugepages-2048kB/free_hugepages", "3\n"),
            ("/sys/kernel/mm/hugepages/hugepages-1048576kB/nr_hugepages", "0\n"),
            ("/sys/devices/system/node/node0/hugepages/hugepages-2048kB/nr_hugepages", "8\n"),
            ("/sys/devices/system/node/node1/hugepages/hugepages-2048kB/nr_hugepages", "0\n"),
        ]);
        let pools = pools(&Reader::new(&host));
        let pools = pools.get().unwrap();
        assert_eq!(pools.iter().map(|pool| pool.page_kb).collect::<Vec<_>>(), [2048, 1_048_576]);
        assert_eq!(pools[0].free.value(), Some(3));
        assert_eq!(pools[0].nodes.iter().map(|node| node.total.value().unwrap()).collect::<Vec<_>>(), [8, 0]);
        assert!(pools[1].nodes.is_empty());
        assert!(pools[0].reserved.is_absent());
    }
}
