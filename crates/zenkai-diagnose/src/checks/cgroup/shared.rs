//! Evidence as the files of both versions show it.

use zenkai_facts::{
    Observed,
    cgroup::{CpuQuota, MemoryEvents},
};

use crate::Evidence;

/// A quota: version 1 keeps the period in a file of its own.
pub(super) fn quota(reading: &Observed<CpuQuota>) -> Evidence {
    let alone = reading.source().ends_with("cpu.cfs_quota_us");
    Evidence::of(
        &reading.clone().map(|quota| if alone { quota.quota_us.to_string() } else { quota.to_string() }),
    )
}

/// Meetings with a memory limit: version 1 only counts one kind.
pub(super) fn events(reading: &Observed<MemoryEvents>) -> Evidence {
    let alone = reading.source().ends_with("memory.failcnt");
    Evidence::of(
        &reading.clone().map(|events| if alone { events.max.to_string() } else { events.to_string() }),
    )
}
