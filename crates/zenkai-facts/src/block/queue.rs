//! The request queue of a disk.

use serde::Serialize;

use crate::{Choice, Observed, Reader, Reason, reader::join};

/// `/sys/block/<disk>/queue` (`Documentation/ABI/stable/sysfs-block`).
#[derive(Debug, Clone, Serialize)]
pub struct Queue {
    /// The I/O scheduler and its alternatives; devices that have no requests of their own (md, most of device
    /// mapper) show `none` alone.
    pub scheduler: Observed<Choice>,
    /// Requests that may wait per queue.
    pub nr_requests: Observed<u64>,
    /// How far the kernel reads ahead of a sequential reader.
    pub read_ahead_kb: Observed<u64>,
    /// Whether the device says it has spinning platters.
    pub rotational: Observed<bool>,
    /// `write back` (there is a volatile cache) or `write through`.
    pub write_cache: Observed<String>,
    /// 0 merges adjacent requests, 1 only the cheap way, 2 never.
    pub nomerges: Observed<u64>,
    /// 0 completes where the interrupt lands, 1 on the group of the submitter, 2 on the submitter's CPU.
    pub rq_affinity: Observed<u64>,
    /// Whether completions feed the entropy pool.
    pub add_random: Observed<bool>,
    /// Latency target of write-back throttling; 0 is off.
    pub wbt_lat_usec: Observed<u64>,
    /// Largest request the kernel sends.
    pub max_sectors_kb: Observed<u64>,
    /// Largest request the hardware takes.
    pub max_hw_sectors_kb: Observed<u64>,
    /// Smallest unit the device addresses.
    pub logical_block_size_bytes: Observed<u64>,
    /// Unit the device writes without reading first.
    pub physical_block_size_bytes: Observed<u64>,
    /// Smallest request the device likes; for an array its chunk.
    pub minimum_io_size_bytes: Observed<u64>,
    /// Best size for streaming; for an array its stripe. A device that names none is not applicable.
    pub optimal_io_size_bytes: Observed<u64>,
    /// Unit of discards; a device that has none is not applicable.
    pub discard_granularity_bytes: Observed<u64>,
    /// Whether I/O is counted.
    pub iostats: Observed<bool>,
    /// Whether completions may be polled for.
    pub io_poll: Observed<bool>,
    /// Whether single writes can bypass the volatile cache.
    pub fua: Observed<bool>,
}

pub(super) fn observe(reader: &Reader<'_>, disk_dir: &str) -> Queue {
    let at = |name: &str| format!("{disk_dir}/queue/{name}");
    Queue {
        scheduler: reader.choice(&at("scheduler")),
        nr_requests: reader.number(&at("nr_requests")),
        read_ahead_kb: reader.number(&at("read_ahead_kb")),
        rotational: reader.flag(&at("rotational")),
        write_cache: reader.text(&at("write_cache")),
        nomerges: reader.number(&at("nomerges")),
        rq_affinity: reader.number(&at("rq_affinity")),
        add_random: reader.flag(&at("add_random")),
        wbt_lat_usec: reader.number(&at("wbt_lat_usec")),
        max_sectors_kb: reader.number(&at("max_sectors_kb")),
        max_hw_sectors_kb: reader.number(&at("max_hw_sectors_kb")),
        logical_block_size_bytes: reader.number(&at("logical_block_size")),
        physical_block_size_bytes: reader.number(&at("physical_block_size")),
        minimum_io_size_bytes: reader.number(&at("minimum_io_size")),
        optimal_io_size_bytes: unless_zero(reader, &join(disk_dir, "queue/optimal_io_size"), "it names none"),
        discard_granularity_bytes: unless_zero(
            reader,
            &join(disk_dir, "queue/discard_granularity"),
            "it cannot discard",
        ),
        iostats: reader.flag(&at("iostats")),
        io_poll: reader.flag(&at("io_poll")),
        fua: reader.flag(&at("fua")),
    }
}

/// A number whose 0 stands for "there is none".
pub(super) fn unless_zero(reader: &Reader<'_>, path: &str, meaning: &str) -> Observed<u64> {
    reader.understood(path, |text| match text.parse() {
        Ok(0) => Err(Reason::NotApplicable(meaning.to_owned())),
        Ok(number) => Ok(number),
        Err(_) => Err(Reason::Malformed(text.chars().take(40).collect())),
    })
}
