//! `/proc/meminfo`, `/proc/vmstat` and `/proc/pressure/memory`.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::{Observed, Reader};

/// A machine's memory and its use, in kB (`Documentation/filesystems/proc.rst`, meminfo). Fields that older
/// kernels do not have are none.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct MemInfo {
    /// Usable RAM: physical RAM less what firmware and kernel reserve.
    pub total_kb: u64,
    /// Not used at all.
    pub free_kb: u64,
    /// What new work could have without swapping.
    pub available_kb: Option<u64>,
    /// Cached file content.
    pub cached_kb: Option<u64>,
    /// Waiting to be written.
    pub dirty_kb: Option<u64>,
    /// Anonymous memory of processes.
    pub anonymous_kb: Option<u64>,
    /// Part of it in transparent huge pages.
    pub anonymous_huge_kb: Option<u64>,
    /// Kernel objects that cannot be reclaimed.
    pub slab_unreclaimable_kb: Option<u64>,
    /// Page tables.
    pub page_tables_kb: Option<u64>,
    /// Reserved for explicit huge pages of all sizes.
    pub hugetlb_kb: Option<u64>,
    /// Swap space.
    pub swap_total_kb: Option<u64>,
    /// Unused swap space.
    pub swap_free_kb: Option<u64>,
    /// What mode 2 of `overcommit_memory` would grant.
    pub commit_limit_kb: Option<u64>,
    /// What processes were promised.
    pub committed_kb: Option<u64>,
}

pub(super) fn info(reader: &Reader<'_>) -> Observed<MemInfo> {
    reader.text("/proc/meminfo").parse(|text| parse_meminfo(&text))
}

fn parse_meminfo(text: &str) -> Result<MemInfo, String> {
    let fields: BTreeMap<&str, u64> = text
        .lines()
        .filter_map(|line| {
            let (name, value) = line.split_once(':')?;
            Some((name, value.split_whitespace().next()?.parse().ok()?))
        })
        .collect();
    let field = |name: &str| fields.get(name).copied();
    let must = |name: &str| field(name).ok_or_else(|| format!("no {name}"));
    Ok(MemInfo {
        total_kb: must("MemTotal")?,
        free_kb: must("MemFree")?,
        available_kb: field("MemAvailable"),
        cached_kb: field("Cached"),
        dirty_kb: field("Dirty"),
        anonymous_kb: field("AnonPages"),
        anonymous_huge_kb: field("AnonHugePages"),
        slab_unreclaimable_kb: field("SUnreclaim"),
        page_tables_kb: field("PageTables"),
        hugetlb_kb: field("Hugetlb"),
        swap_total_kb: field("SwapTotal"),
        swap_free_kb: field("SwapFree"),
        commit_limit_kb: field("CommitLimit"),
        committed_kb: field("Committed_AS"),
    })
}

/// Counters since boot (`/proc/vmstat`, `include/linux/vm_event_item.h`). Those that this kernel does not count
/// are none; counters of one event per zone are summed.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Counters {
    /// Tasks that had to reclaim memory themselves.
    pub direct_reclaim_stalls: Option<u64>,
    /// Tasks that had to compact memory themselves.
    pub compaction_stalls: Option<u64>,
    /// Compactions that did not yield a huge page.
    pub compaction_failures: Option<u64>,
    /// Pages read from swap.
    pub swapped_in_pages: Option<u64>,
    /// Pages written to swap.
    pub swapped_out_pages: Option<u64>,
    /// Faults that needed the disk.
    pub major_faults: Option<u64>,
    /// Pages that were evicted and soon needed again.
    pub workingset_refaults: Option<u64>,
    /// Processes killed for want of memory.
    pub out_of_memory_kills: Option<u64>,
    /// Faults that were given a transparent huge page.
    pub thp_faults: Option<u64>,
    /// Faults that should have been and were not.
    pub thp_fault_fallbacks: Option<u64>,
    /// Pages that khugepaged put together.
    pub thp_collapses: Option<u64>,
    /// Huge pages that were split.
    pub thp_splits: Option<u64>,
    /// Reclaims on a node although others had free memory (`zone_reclaim_mode`).
    pub zone_reclaims: Option<u64>,
    /// The same without success.
    pub zone_reclaim_failures: Option<u64>,
    /// Faults that NUMA balancing provoked to learn who uses a page.
    pub numa_hint_faults: Option<u64>,
    /// Those of them that came from the page's own node.
    pub numa_hint_faults_local: Option<u64>,
    /// Pages that NUMA balancing moved.
    pub numa_pages_migrated: Option<u64>,
}

pub(super) fn parse_vmstat(text: &str) -> Result<Counters, String> {
    let pairs: Vec<(&str, u64)> = text
        .lines()
        .filter_map(|line| {
            let (name, value) = line.split_once(' ')?;
            Some((name, value.trim().parse().ok()?))
        })
        .collect();
    if pairs.is_empty() {
        return Err("no counters".to_owned());
    }
    let map: BTreeMap<&str, u64> = pairs.iter().copied().collect();
    let field = |name: &str| map.get(name).copied();
    let sum = |prefix: &str| {
        pairs
            .iter()
            .filter(|(name, _)| name.starts_with(prefix))
            .map(|(_, value)| *value)
            .reduce(u64::saturating_add)
    };
    Ok(Counters {
        // One per zone since 4.10, one in all before.
        direct_reclaim_stalls: sum("allocstall"),
        compaction_stalls: field("compact_stall"),
        compaction_failures: field("compact_fail"),
        swapped_in_pages: field("pswpin"),
        swapped_out_pages: field("pswpout"),
        major_faults: field("pgmajfault"),
        workingset_refaults: sum("workingset_refault"),
        out_of_memory_kills: field("oom_kill"),
        thp_faults: field("thp_fault_alloc"),
        thp_fault_fallbacks: field("thp_fault_fallback"),
        thp_collapses: field("thp_collapse_alloc"),
        thp_splits: field("thp_split_page").or_else(|| field("thp_split")),
        zone_reclaims: field("zone_reclaim_success"),
        zone_reclaim_failures: field("zone_reclaim_failed"),
        numa_hint_faults: field("numa_hint_faults"),
        numa_hint_faults_local: field("numa_hint_faults_local"),
        numa_pages_migrated: field("numa_pages_migrated"),
    })
}

/// Time that tasks waited for memory (`Documentation/accounting/psi.rst`), in hundredths of a per cent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Pressure {
    /// Share of the last 10 s in which at least one task waited, in hundredths of a per cent.
    pub some_10s_per_myriad: u64,
    /// The same over the last 5 minutes.
    pub some_300s_per_myriad: u64,
    /// Share of the last 10 s in which no task could go on, in hundredths of a per cent.
    pub full_10s_per_myriad: u64,
    /// The same over the last 5 minutes.
    pub full_300s_per_myriad: u64,
    /// Time in which at least one task waited since boot, in µs.
    pub some_total_us: u64,
    /// Time in which no task could go on since boot, in µs.
    pub full_total_us: u64,
}

pub(super) fn pressure(reader: &Reader<'_>) -> Observed<Pressure> {
    reader
        .text("/proc/pressure/memory")
        .parse(|text| parse_pressure(&text).ok_or_else(|| "not the two lines `some` and `full`".to_owned()))
}

fn parse_pressure(text: &str) -> Option<Pressure> {
    let line = |word: &str| text.lines().find_map(|line| line.strip_prefix(word));
    let field = |line: &str, key: &str| {
        let word = line.split_whitespace().find_map(|word| word.strip_prefix(key)?.strip_prefix('='))?;
        Some(word.to_owned())
    };
    // `12.34`, always with two decimals.
    let share = |line: &str, key: &str| field(line, key)?.replace('.', "").parse::<u64>().ok();
    let total = |line: &str| field(line, "total")?.parse::<u64>().ok();
    let (some, full) = (line("some ")?, line("full ")?);
    Some(Pressure {
        some_10s_per_myriad: share(some, "avg10")?,
        some_300s_per_myriad: share(some, "avg300")?,
        full_10s_per_myriad: share(full, "avg10")?,
        full_300s_per_myriad: share(full, "avg300")?,
        some_total_us: total(some)?,
        full_total_us: total(full)?,
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn reads_what_kernels_write() {
        let info =
            parse_meminfo("MemTotal:  100 kB\nMemFree:  40 kB\nHugePages_Total:   3\nSwapTotal: 7 kB\n")
                .unwrap();
        assert_eq!((info.total_kb, info.swap_total_kb, info.available_kb), (100, Some(7), None));
        assert!(parse_meminfo("MemFree: 1 kB\n").is_err());
        let counters = parse_vmstat("allocstall_dma 1\nallocstall_normal 2\npswpin 5\n").unwrap();
        assert_eq!((counters.direct_reclaim_stalls, counters.swapped_in_pages), (Some(3), Some(5)));
        assert_eq!(counters.swapped_out_pages, None);
        let text = "some avg10=1.50 avg60=0.00 avg300=12.34 total=9\nfull avg10=0.00 avg60=0.00 avg300=0.10 total=4\n";
        let pressure = parse_pressure(text).unwrap();
        assert_eq!((pressure.some_10s_per_myriad, pressure.some_300s_per_myriad), (150, 1234));
    }

    proptest! {
        #[test]
        fn parsers_never_panic(text in "([a-zA-Z_]{0,9}[: =]?[0-9.]{0,25}\n?){0,9}") {
            let _ = parse_meminfo(&text);
            let _ = parse_vmstat(&text);
            let _ = parse_pressure(&text);
        }
    }
}
