//! Memory: use, huge pages, swap, the kernel's settings, modules and their errors.

mod counters;
mod edac;
mod huge_pages;
mod limits;
mod modules;
mod smbios;
mod swap;

use serde::Serialize;

use crate::{Observed, Reader, reader::join};

pub use counters::{Counters, MemInfo, Pressure};
pub use edac::{EdacController, EdacModule};
pub use huge_pages::{HugePagePool, Khugepaged, NodePool, TransparentHugePages};
pub use limits::{SpeedLimit, speed_limit};
pub use modules::{MemoryArray, MemoryModule, Modules, Processor, Slot};
pub use swap::{Swap, SwapDevice, Zswap};

/// Memory: use, huge pages, swap, settings, modules.
#[derive(Debug, Clone, Serialize)]
pub struct Memory {
    /// How much there is and what it is used for (`/proc/meminfo`).
    pub info: Observed<MemInfo>,
    /// How long tasks waited for memory (`/proc/pressure/memory`).
    pub pressure: Observed<Pressure>,
    /// Transparent huge pages.
    pub transparent_huge_pages: TransparentHugePages,
    /// Pools of explicit huge pages, one for each size.
    pub huge_page_pools: Observed<Vec<HugePagePool>>,
    /// Swap devices and compressed swap.
    pub swap: Swap,
    /// Settings in `/proc/sys/vm`.
    pub settings: Settings,
    /// Kernel samepage merging.
    pub ksm: Ksm,
    /// Counters since boot that tell of trouble (`/proc/vmstat`).
    pub counters: Observed<Counters>,
    /// What the firmware says of slots and modules; root only, absent in many guests.
    pub modules: Observed<Modules>,
    /// Memory controllers with their error counts; absent without ECC or without a driver.
    pub edac: Observed<Vec<EdacController>>,
}

/// Settings in `/proc/sys/vm` (`Documentation/admin-guide/sysctl/vm.rst`).
#[derive(Debug, Clone, Serialize)]
pub struct Settings {
    /// How readily anonymous memory is swapped out instead of dropping file cache, 0 to 200.
    pub swappiness: Observed<u32>,
    /// Per cent of available memory that may be dirty before writers are made to write; 0 when bytes rule.
    pub dirty_ratio: Observed<u32>,
    /// Per cent of available memory at which write-back starts; 0 when bytes rule.
    pub dirty_background_ratio: Observed<u32>,
    /// The same as `dirty_ratio` in bytes; 0 when the ratio rules.
    pub dirty_bytes: Observed<u64>,
    /// The same as `dirty_background_ratio` in bytes; 0 when the ratio rules.
    pub dirty_background_bytes: Observed<u64>,
    /// Age at which dirty data must be written, in hundredths of a second.
    pub dirty_expire_centisecs: Observed<u64>,
    /// How often write-back wakes up, in hundredths of a second; 0 is never.
    pub dirty_writeback_centisecs: Observed<u64>,
    /// Reserve that is kept free, in kB.
    pub min_free_kb: Observed<u64>,
    /// Distance between the reclaim watermarks in fractions of 10 000 of a node's memory.
    pub watermark_scale_factor: Observed<u64>,
    /// How far watermarks are raised after fragmentation, in fractions of 10 000.
    pub watermark_boost_factor: Observed<u64>,
    /// 0 heuristic, 1 always grant, 2 never beyond the limit.
    pub overcommit_memory: Observed<u32>,
    /// Per cent of RAM that counts towards the limit in mode 2.
    pub overcommit_ratio: Observed<u64>,
    /// How readily the caches of directories and inodes are dropped; 100 is neutral.
    pub vfs_cache_pressure: Observed<u64>,
    /// Most memory mappings of one process.
    pub max_map_count: Observed<u64>,
    /// Pages read ahead from swap, as a power of two.
    pub page_cluster: Observed<u32>,
    /// How eagerly memory is compacted in the background, 0 to 100.
    pub compaction_proactiveness: Observed<u32>,
    /// Non-zero while laptop mode collects writes.
    pub laptop_mode: Observed<u64>,
}

/// Kernel samepage merging (`Documentation/admin-guide/mm/ksm.rst`).
#[derive(Debug, Clone, Serialize)]
pub struct Ksm {
    /// 0 stopped, 1 running, 2 stopped and all merged pages split again.
    pub run: Observed<u32>,
    /// Distinct pages that are shared.
    pub pages_shared: Observed<u64>,
    /// Further places that share them: the pages saved.
    pub pages_sharing: Observed<u64>,
    /// Pages looked at each time the daemon wakes up.
    pub pages_to_scan: Observed<u64>,
    /// How long the daemon sleeps in between, in ms.
    pub sleep_ms: Observed<u64>,
    /// Whether pages of different NUMA nodes are merged.
    pub merge_across_nodes: Observed<bool>,
}

/// Reads this subsystem.
pub fn observe(reader: &Reader<'_>) -> Memory {
    let vmstat = reader.text("/proc/vmstat");
    Memory {
        info: counters::info(reader),
        pressure: counters::pressure(reader),
        transparent_huge_pages: huge_pages::transparent(reader),
        huge_page_pools: huge_pages::pools(reader),
        swap: swap::observe(reader),
        settings: settings(reader),
        ksm: ksm(reader),
        counters: vmstat.parse(|text| counters::parse_vmstat(&text)),
        modules: modules::observe(reader),
        edac: edac::observe(reader),
    }
}

fn settings(reader: &Reader<'_>) -> Settings {
    let path = |name: &str| join("/proc/sys/vm", name);
    let number = |name: &str| reader.number::<u64>(&path(name));
    let small = |name: &str| reader.number::<u32>(&path(name));
    Settings {
        swappiness: small("swappiness"),
        dirty_ratio: small("dirty_ratio"),
        dirty_background_ratio: small("dirty_background_ratio"),
        dirty_bytes: number("dirty_bytes"),
        dirty_background_bytes: number("dirty_background_bytes"),
        dirty_expire_centisecs: number("dirty_expire_centisecs"),
        dirty_writeback_centisecs: number("dirty_writeback_centisecs"),
        min_free_kb: number("min_free_kbytes"),
        watermark_scale_factor: number("watermark_scale_factor"),
        watermark_boost_factor: number("watermark_boost_factor"),
        overcommit_memory: small("overcommit_memory"),
        overcommit_ratio: number("overcommit_ratio"),
        vfs_cache_pressure: number("vfs_cache_pressure"),
        max_map_count: number("max_map_count"),
        page_cluster: small("page-cluster"),
        compaction_proactiveness: small("compaction_proactiveness"),
        laptop_mode: number("laptop_mode"),
    }
}

fn ksm(reader: &Reader<'_>) -> Ksm {
    let path = |name: &str| join("/sys/kernel/mm/ksm", name);
    let number = |name: &str| reader.number::<u64>(&path(name));
    Ksm {
        run: reader.number(&path("run")),
        pages_shared: number("pages_shared"),
        pages_sharing: number("pages_sharing"),
        pages_to_scan: number("pages_to_scan"),
        sleep_ms: number("sleep_millisecs"),
        merge_across_nodes: reader.flag(&path("merge_across_nodes")),
    }
}

#[cfg(test)]
mod tests {
    use zenkai_host::FakeHost;

    use super::*;

    #[test]
    fn an_empty_world_has_no_values() {
        let memory = observe(&Reader::new(&FakeHost::new(&[])));
        assert!(memory.info.is_absent() && memory.counters.is_absent() && memory.edac.is_absent());
        assert!(memory.modules.is_absent() && memory.settings.swappiness.is_absent());
    }
}
