//! Linux software RAID (`Documentation/admin-guide/md.rst`).

use serde::Serialize;

use super::queue::unless_zero;
use crate::{Observed, Reader, Reason};

/// `/sys/block/mdN/md`.
#[derive(Debug, Clone, Serialize)]
pub struct Md {
    /// `raid0`, `raid1`, `raid4`, `raid5`, `raid6`, `raid10`, `linear`, `container` …
    pub level: Observed<String>,
    /// Data on one member before the next is used; mirrors have none.
    pub chunk_bytes: Observed<u64>,
    /// Number of the layout, whose meaning depends on the level.
    pub layout: Observed<u64>,
    /// How many members the array wants.
    pub raid_disks: Observed<u64>,
    /// How many of them are missing.
    pub degraded: Observed<u64>,
    /// `clean`, `active`, `write-pending`, `readonly`, `inactive` …
    pub array_state: Observed<String>,
    /// `idle`, `resync`, `recover`, `check`, `repair`, `reshape`, `frozen`.
    pub sync_action: Observed<String>,
    /// How far that is, in sectors done and in all; not applicable when idle.
    pub sync_completed: Observed<SyncProgress>,
    /// How fast it goes now; not applicable when idle.
    pub sync_speed_kb_per_s: Observed<u64>,
    /// Pages per member in the stripe cache of RAID 4, 5 and 6.
    pub stripe_cache_size: Observed<u64>,
    /// Worker threads per NUMA node for RAID 4, 5 and 6; 0 leaves all work to one thread.
    pub group_thread_cnt: Observed<u64>,
    /// Where the write-intent bitmap is: `none`, `+8`, a file.
    pub bitmap_location: Observed<String>,
    /// Data that one bit of it covers.
    pub bitmap_chunk_bytes: Observed<u64>,
}

/// How far a resync is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct SyncProgress {
    /// Sectors done.
    pub done: u64,
    /// Sectors in all.
    pub all: u64,
}

impl SyncProgress {
    /// Per cent done, rounded down.
    pub fn percent(self) -> u64 {
        self.done.saturating_mul(100) / self.all.max(1)
    }
}

pub(super) fn observe(reader: &Reader<'_>, disk_dir: &str) -> Md {
    let at = |name: &str| format!("{disk_dir}/md/{name}");
    Md {
        level: reader.text(&at("level")),
        chunk_bytes: unless_zero(reader, &at("chunk_size"), "this level has no chunks"),
        layout: reader.number(&at("layout")),
        raid_disks: reader.understood(&at("raid_disks"), leading_number),
        degraded: reader.number(&at("degraded")),
        array_state: reader.text(&at("array_state")),
        sync_action: reader.text(&at("sync_action")),
        sync_completed: reader.understood(&at("sync_completed"), progress),
        sync_speed_kb_per_s: reader.understood(&at("sync_speed"), leading_number),
        stripe_cache_size: reader.number(&at("stripe_cache_size")),
        group_thread_cnt: reader.number(&at("group_thread_cnt")),
        bitmap_location: reader.text(&at("bitmap/location")),
        bitmap_chunk_bytes: reader.number(&at("bitmap/chunksize")),
    }
}

/// `none`, or `17536 / 15624960`, or `delayed` while another array on the same disks is busy.
fn progress(text: &str) -> Result<SyncProgress, Reason> {
    if text == "none" || text == "delayed" {
        return Err(Reason::NotApplicable(format!("the kernel shows {text}")));
    }
    let malformed = || Reason::Malformed(text.chars().take(40).collect());
    let (done, all) = text.split_once(" / ").ok_or_else(malformed)?;
    let number = |word: &str| word.trim().parse().map_err(|_| malformed());
    Ok(SyncProgress { done: number(done)?, all: number(all)? })
}

/// The first of `4 (3)`, which is what a reshape shows; `none` when there is nothing to tell.
fn leading_number(text: &str) -> Result<u64, Reason> {
    if text == "none" {
        return Err(Reason::NotApplicable("the kernel shows none".to_owned()));
    }
    let word = text.split_whitespace().next().unwrap_or_default();
    word.parse().map_err(|_| Reason::Malformed(text.chars().take(40).collect()))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn text_forms() {
        assert_eq!(progress("25 / 100").unwrap().percent(), 25);
        assert_eq!(SyncProgress { done: 5, all: 0 }.percent(), 500);
        assert!(matches!(progress("none"), Err(Reason::NotApplicable(_))));
        assert!(matches!(progress("25/100"), Err(Reason::Malformed(_))));
        assert_eq!(leading_number("4 (3)"), Ok(4));
    }

    proptest! {
        #[test]
        fn never_panics(text in "[0-9a-z /()-]{0,50}") {
            let _ = (progress(&text).map(SyncProgress::percent), leading_number(&text));
        }
    }
}
