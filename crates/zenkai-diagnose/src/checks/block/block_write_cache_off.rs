//! A disk that says it has no write cache.

use zenkai_facts::{
    Facts,
    block::{Disk, Transport},
};

use super::shared::{each_disk, is_raid_volume, is_spinning_drive};
use crate::{
    Check, Context, Evidence, Finding, Impact, Judgement, Outcome, Remedy, Subject, Subsystem, Workload, need,
};

/// See the explanation.
pub(super) static CHECK: Check = Check {
    id: "block-write-cache-off",
    subsystem: Subsystem::Block,
    summary: "writes wait for the platters because no cache takes them",
    impact: Impact::Depends,
    effect: "estimate: small writes to spinning disks 2 to 10 times slower; a controller that falls back to \
             write-through adds about 30 ms to a write (published case)",
    risk: "a cache without battery or capacitor loses what it holds when power fails",
    source: "https://docs.kernel.org/block/writeback_cache_control.html",
    explanation: include_str!("block_write_cache_off.md"),
    run,
};

fn run(facts: &Facts, context: Context) -> Judgement {
    let busy = [Workload::Database, Workload::Hana, Workload::Mongodb, Workload::Storage];
    each_disk(facts, |disk| {
        // Flash with capacitors truly has no volatile cache. SAS drives leave the factory with theirs off.
        let sata = is_spinning_drive(disk)
            && (disk.transport.get() == Some(&Transport::Sata) || disk.vendor.text() == Some("ATA"));
        let raid = is_raid_volume(disk) && context.works_as(&busy);
        (sata || raid).then(|| judge(disk, raid))
    })
}

fn judge(disk: &Disk, raid: bool) -> Result<Option<Finding>, Outcome> {
    let cache = &disk.queue.write_cache;
    if need(cache)? != "write through" {
        return Ok(None);
    }
    let (what, remedy) = if raid {
        (
            "the controller's volume shows write-through",
            "ask the controller's tool (storcli, ssacli, arcconf) for the volume's current and default cache policy \
             and for the state of the battery; never force write-back without one",
        )
    } else {
        (
            "the drive's write cache is off",
            "if data is safe against power loss otherwise: hdparm -W 1; never for members of an array without flushes",
        )
    };
    Ok(Some(
        Finding::new(Subject::device(&disk.name), what)
            .with(Evidence::of(cache).expected("write back"))
            .with(Evidence::of(&disk.model))
            .remedy(Remedy::Do(remedy.to_owned())),
    ))
}

#[cfg(test)]
mod tests {
    use super::super::shared::worlds::{NVME, RAID, SATA, on};
    use crate::Workload;

    #[test]
    fn platters_without_cache() {
        let fires = |place, rotational, cache, workload| {
            let files = [("queue/rotational", rotational), ("queue/write_cache", cache)];
            !on(&super::CHECK, place, &files, workload).findings.is_empty()
        };
        assert!(fires(SATA, "1", "write through", None));
        assert!(!fires(SATA, "1", "write back", None));
        assert!(!fires(SATA, "0", "write through", None), "flash with capacitors");
        assert!(!fires(NVME, "0", "write through", None));
        assert!(!fires(RAID, "1", "write through", None), "with a battery it may say so too");
        assert!(fires(RAID, "1", "write through", Some(Workload::Database)));
    }
}
