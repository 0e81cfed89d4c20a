//! `/proc/vmstat` (`mm/vmstat.c`): what memory management did.

use crate::sampler::{
    channel::Channels,
    source::{Cadence, Source, one_file},
    template::{Column, Digits, Lines},
};

pub(in crate::sampler) static SOURCE: Source = Source {
    name: "vmstat",
    cadence: Cadence::Even,
    digits: Digits::Decimal,
    open: |_| one_file("/proc/vmstat"),
    channels,
};

/// Counters with their channel, unit and worth. A name that ends in `*` stands for all that begin so, together.
const COUNTS: [(&str, &str, &str, f64, &str); 29] = [
    ("pgpgin", "paged_in", "B/s", 1024.0, "read from block devices"),
    ("pgpgout", "paged_out", "B/s", 1024.0, "written to block devices"),
    ("pswpin", "swapped_in", "1/s", 1.0, "pages swapped in"),
    ("pswpout", "swapped_out", "1/s", 1.0, "pages swapped out"),
    ("pgfault", "faults", "1/s", 1.0, "page faults"),
    ("pgmajfault", "major_faults", "1/s", 1.0, "page faults that had to read"),
    ("pgscan_kswapd", "scanned_kswapd", "1/s", 1.0, "pages looked at by kswapd to free some"),
    ("pgscan_direct", "scanned_direct", "1/s", 1.0, "pages looked at by processes that needed memory"),
    ("pgsteal_kswapd", "freed_kswapd", "1/s", 1.0, "pages freed by kswapd"),
    ("pgsteal_direct", "freed_direct", "1/s", 1.0, "pages freed by processes that needed memory"),
    ("allocstall*", "stalls", "1/s", 1.0, "allocations that had to free memory first"),
    ("compact_stall", "compact_stalls", "1/s", 1.0, "allocations that had to move pages first"),
    ("compact_fail", "compact_fails", "1/s", 1.0, "of those, in vain"),
    ("compact_success", "compact_successes", "1/s", 1.0, "of those, with success"),
    ("thp_fault_alloc", "thp_faults", "1/s", 1.0, "huge pages given on a page fault"),
    ("thp_fault_fallback", "thp_fallbacks", "1/s", 1.0, "page faults where no huge page was to be had"),
    ("thp_collapse_alloc", "thp_collapses", "1/s", 1.0, "huge pages put together by khugepaged"),
    ("thp_split_page", "thp_splits", "1/s", 1.0, "huge pages taken apart"),
    ("numa_hit", "numa_hits", "1/s", 1.0, "pages taken from the wanted node"),
    ("numa_miss", "numa_misses", "1/s", 1.0, "pages taken from another node than wanted"),
    ("numa_other", "numa_other", "1/s", 1.0, "pages taken from another node than the CPU's"),
    ("numa_hint_faults", "numa_hint_faults", "1/s", 1.0, "page faults that NUMA balancing makes"),
    ("numa_pages_migrated", "numa_migrated", "1/s", 1.0, "pages moved by NUMA balancing"),
    ("pgmigrate_success", "migrated", "1/s", 1.0, "pages moved for any reason"),
    ("workingset_refault_anon", "refaults_anonymous", "1/s", 1.0, "pages swapped out too early"),
    ("workingset_refault_file", "refaults_file", "1/s", 1.0, "pages dropped from the cache too early"),
    ("balance_dirty_pages", "dirty_throttled", "1/s", 1.0, "writers held back because too much is unwritten"),
    ("oom_kill", "oom_kills", "1/s", 1.0, "processes killed for want of memory"),
    ("swap_ra", "swap_read_ahead", "1/s", 1.0, "pages swapped in ahead"),
];

fn channels(lines: &Lines, channels: &mut Channels) {
    for (label, name, unit, factor, words) in COUNTS {
        let wanted = |found: &str| match label.strip_suffix('*') {
            Some(start) => found.starts_with(start),
            None => found == label,
        };
        let of = lines.lines.iter().filter(|line| line.label().is_some_and(wanted));
        let columns: Vec<Column> = of.filter_map(|line| line.words.get(1)?.column()).collect();
        if !columns.is_empty() {
            channels.rate(format!("vmstat.{name}"), unit, words, columns, factor);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sampler::sources::testing::between;

    #[test]
    fn counters_and_sums_of_counters() {
        let text = |count: u32| {
            format!(
                "nr_free_pages 5\npgpgin {count}\nallocstall_normal {count}\nallocstall_movable {count}\n"
            )
        };
        let values = between(&SOURCE, &text(0), &text(4), 2.0);
        assert_eq!(values["vmstat.paged_in"], Some(2048.0));
        assert_eq!(values["vmstat.stalls"], Some(4.0));
        assert!(!values.contains_key("vmstat.oom_kills"));
    }
}
