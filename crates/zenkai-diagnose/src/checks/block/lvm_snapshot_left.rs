//! A classic LVM snapshot, which copies before every first write.

use zenkai_facts::{Facts, block::Dm};

use super::shared::each_disk;
use crate::{
    Check, Context, Evidence, Finding, Impact, Judgement, Outcome, Remedy, Subject, Subsystem, need,
};

/// See the explanation.
pub(super) static CHECK: Check = Check {
    id: "lvm-snapshot-left",
    subsystem: Subsystem::Block,
    summary: "a classic LVM snapshot makes every first write a copy",
    impact: Impact::Large,
    effect: "sequential synchronous writes about 90 % slower in a published measurement on a 12-disk RAID 10 \
             (johnleach.co.uk, 2010)",
    risk: "the snapshot is gone; make sure no backup needs it",
    source: "https://docs.kernel.org/admin-guide/device-mapper/snapshot.html",
    explanation: include_str!("lvm_snapshot_left.md"),
    run,
};

fn run(facts: &Facts, _context: Context) -> Judgement {
    each_disk(facts, |disk| disk.dm.as_ref().map(judge))
}

fn judge(dm: &Dm) -> Result<Option<Finding>, Outcome> {
    if need(&dm.lvm_layer)? != "cow" {
        return Ok(None);
    }
    let name = need(&dm.name)?;
    let volume = name.strip_suffix("-cow").unwrap_or(name);
    Ok(Some(
        Finding::new(
            Subject::device(volume),
            "this snapshot copies old data away at every first write to its origin",
        )
        .with(Evidence::of(&dm.lvm_layer).expected("no volume of this kind"))
        .with(Evidence::of(&dm.name))
        .remedy(Remedy::Do(format!("when no backup needs it any more: lvremove /dev/mapper/{volume}")))
        .because("an LVM snapshot copies data at every first write"),
    ))
}

#[cfg(test)]
mod tests {
    use super::super::shared::worlds::{DM, fires, on};

    #[test]
    fn the_copy_store_gives_it_away() {
        let uuid = |layer: &str| format!("LVM-{}{layer}", "x".repeat(64));
        let judged =
            on(&super::CHECK, DM, &[("dm/uuid", &uuid("-cow")), ("dm/name", "vg-daily-cow")], None).findings;
        assert_eq!(judged[0].subject.to_string(), "vg-daily");
        assert!(!fires(&super::CHECK, DM, &[("dm/uuid", &uuid("")), ("dm/name", "vg-data")]));
        assert!(!fires(&super::CHECK, DM, &[("dm/uuid", &uuid("-tpool")), ("dm/name", "vg-pool")]), "thin");
        assert!(!fires(&super::CHECK, DM, &[("dm/uuid", "CRYPT-LUKS2-0-cow"), ("dm/name", "x")]));
    }
}
