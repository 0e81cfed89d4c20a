//! `/proc/meminfo` (proc_meminfo(5), `fs/proc/meminfo.c`): what memory is used for.

use crate::sampler::{
    channel::{Channels, Rule},
    source::{Cadence, Source, one_file},
    template::{Digits, Lines},
};

pub(in crate::sampler) static SOURCE: Source = Source {
    name: "meminfo",
    cadence: Cadence::Odd,
    digits: Digits::Decimal,
    open: |_| one_file("/proc/meminfo"),
    channels,
};

/// Lines in kB, which are KiB.
const LEVELS: [(&str, &str, &str); 14] = [
    ("MemFree", "free", "memory that nothing uses"),
    ("MemAvailable", "available", "memory that could be had without swapping, an estimate of the kernel"),
    ("Buffers", "buffers", "cache of block devices"),
    ("Cached", "cached", "page cache"),
    ("AnonPages", "anonymous", "memory of processes that is no file's"),
    ("AnonHugePages", "huge", "of that, in transparent huge pages"),
    ("Mapped", "mapped", "mapped files"),
    ("Shmem", "shared", "shared memory and tmpfs"),
    ("Slab", "slab", "the kernel's own structures"),
    ("PageTables", "page_tables", "page tables"),
    ("Dirty", "dirty", "changed files waiting to be written"),
    ("Writeback", "writeback", "files being written"),
    ("SwapCached", "swap_cached", "in memory and in swap"),
    ("Committed_AS", "committed", "memory promised to processes"),
];

const KIB: f64 = 1024.0;

fn channels(lines: &Lines, channels: &mut Channels) {
    let find =
        |label: &str| lines.lines.iter().find(|line| line.label() == Some(label))?.words.get(1)?.column();
    for (label, name, words) in LEVELS {
        if let Some(column) = find(label) {
            channels.level(format!("memory.{name}"), "B", words, column, KIB);
        }
    }
    if let (Some(total), Some(free)) = (find("SwapTotal"), find("SwapFree")) {
        let rule = Rule::Level { plus: vec![total], minus: vec![free] };
        channels.by("memory.swap_used", "B", "swap in use", rule, KIB);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sampler::sources::testing::between;

    #[test]
    fn in_bytes() {
        let text = "MemTotal:  100 kB\nMemFree:          10 kB\nSwapTotal:   7 kB\nSwapFree:  4 kB\nHugePages_Free: 3\n";
        let values = between(&SOURCE, text, text, 1.0);
        assert_eq!(values["memory.free"], Some(10_240.0));
        assert_eq!(values["memory.swap_used"], Some(3_072.0));
        assert!(!values.contains_key("memory.available"), "an old kernel does not tell it");
    }
}
