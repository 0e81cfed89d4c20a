//! Write-back throttling on disks that queue by themselves.

use zenkai_facts::{Facts, block::Disk};
use zenkai_tune::Setting;

use super::shared::{each_disk, is_raid_volume};
use crate::{
    Check, Context, Evidence, Finding, Impact, Judgement, Outcome, Remedy, Subject, Subsystem, Workload, need,
};

/// See the explanation.
pub(super) static CHECK: Check = Check {
    id: "block-write-throttling",
    subsystem: Subsystem::Block,
    summary: "background writes to a RAID controller are throttled for the sake of reads",
    impact: Impact::Depends,
    effect: "estimate: bulk writes below what the controller's cache could take",
    risk: "reads may wait longer while much is being written",
    source: "https://docs.kernel.org/admin-guide/abi-stable.html",
    explanation: include_str!("block_write_throttling.md"),
    run,
};

fn run(facts: &Facts, context: Context) -> Judgement {
    if !context.works_as(&[Workload::Storage]) {
        return Outcome::not_applicable("it only matters where bulk writes do (see --workload storage)")
            .into();
    }
    each_disk(facts, |disk| is_raid_volume(disk).then(|| judge(disk)))
}

fn judge(disk: &Disk) -> Result<Option<Finding>, Outcome> {
    let target = *need(&disk.queue.wbt_lat_usec)?;
    if target == 0 {
        return Ok(None);
    }
    Ok(Some(
        Finding::new(
            Subject::device(&disk.name),
            format!("writes are held back to keep reads below {target} µs"),
        )
        .with(Evidence::of(&disk.queue.wbt_lat_usec).expected(0))
        .remedy(Remedy::Set(vec![Setting::attribute(disk.queue.wbt_lat_usec.source(), "0")])),
    ))
}

#[cfg(test)]
mod tests {
    use super::super::shared::worlds::{RAID, SATA, on};
    use crate::Workload;

    #[test]
    fn only_bulk_writers_behind_a_controller() {
        let fires = |place, target, workload| {
            let files = [("queue/wbt_lat_usec", target), ("queue/rotational", "1")];
            !on(&super::CHECK, place, &files, workload).findings.is_empty()
        };
        assert!(fires(RAID, "75000", Some(Workload::Storage)));
        assert!(!fires(RAID, "75000", None));
        assert!(!fires(RAID, "0", Some(Workload::Storage)));
        assert!(!fires(SATA, "75000", Some(Workload::Storage)));
    }
}
