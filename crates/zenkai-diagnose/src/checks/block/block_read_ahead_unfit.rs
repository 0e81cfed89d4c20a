//! Read-ahead that is too short, or that the work does not want.

use zenkai_facts::{Facts, block::Disk};
use zenkai_tune::Setting;

use super::shared::{is_spinning_drive, mounted_disks};
use crate::{
    Check, Context, Evidence, Finding, Impact, Judgement, Outcome, Remedy, Subject, Subsystem, Workload, need,
};

/// See the explanation.
pub(super) static CHECK: Check = Check {
    id: "block-read-ahead-unfit",
    subsystem: Subsystem::Block,
    summary: "the kernel reads ahead too little, or too much for this work",
    impact: Impact::Depends,
    effect: "estimate: sequential readers of spinning disks lose half or more with next to no read-ahead; random \
             readers of large files waste cache with too much",
    risk: "much read-ahead wastes memory and bandwidth on random reads",
    source: "https://www.mongodb.com/docs/manual/administration/production-notes/",
    explanation: include_str!("block_read_ahead_unfit.md"),
    run,
};

/// The kernel's default (`VM_READAHEAD_PAGES`).
const DEFAULT_KB: u64 = 128;

fn run(facts: &Facts, context: Context) -> Judgement {
    if let Err(outcome) = need(&facts.block.mounts) {
        return outcome.into();
    }
    Judgement::each(mounted_disks(facts), |disk| judge(facts, disk, context))
}

fn judge(facts: &Facts, disk: &Disk, context: Context) -> Result<Option<Finding>, Outcome> {
    let read_ahead = &disk.queue.read_ahead_kb;
    let now = *need(read_ahead)?;
    let below = facts.block.physical_below(&disk.name);
    let spinning = !below.is_empty() && below.iter().all(|disk| is_spinning_drive(disk));
    let (what, wanted, impact) = if context.works_as(&[Workload::Mongodb]) {
        // MongoDB counts in sectors of 512 bytes, 8 to 32 of them.
        if now <= 16 {
            return Ok(None);
        }
        (
            format!("reads {now} KiB ahead of random reads; MongoDB asks for 8 to 32 sectors"),
            16,
            Impact::Moderate,
        )
    } else if context.works_as(&[Workload::Storage, Workload::Hpc]) {
        if now >= 4096 {
            return Ok(None);
        }
        (format!("reads {now} KiB ahead of streams"), 4096, Impact::Depends)
    } else if spinning && now < DEFAULT_KB {
        (format!("reads only {now} KiB ahead on spinning disks"), DEFAULT_KB, Impact::Moderate)
    } else {
        return Ok(None);
    };
    Ok(Some(
        Finding::new(Subject::device(&disk.name), what)
            .with(Evidence::of(read_ahead).expected(wanted))
            .impact(impact)
            .remedy(Remedy::Set(vec![Setting::attribute(read_ahead.source(), wanted.to_string())])),
    ))
}

#[cfg(test)]
mod tests {
    use super::super::shared::worlds::{NVME, SATA, disk, judged, mounted};
    use crate::Workload;

    fn fires(place: &str, rotational: &str, kb: &str, workload: Option<Workload>) -> bool {
        let host =
            disk(place, &[("queue/rotational", rotational), ("queue/read_ahead_kb", kb), ("dev", "8:0")]);
        let host = mounted(host, "22 1 8:0 / / rw,relatime - xfs /dev/x rw");
        !judged(&super::CHECK, host, workload).findings.is_empty()
    }

    #[test]
    fn neutral_until_the_work_is_known() {
        assert!(!fires(SATA, "1", "128", None));
        assert!(!fires(NVME, "0", "8", None), "somebody's choice for a database");
        assert!(fires(SATA, "1", "8", None));
        assert!(fires(NVME, "0", "128", Some(Workload::Storage)));
        assert!(!fires(NVME, "0", "8192", Some(Workload::Storage)));
        assert!(fires(NVME, "0", "128", Some(Workload::Mongodb)));
        assert!(!fires(NVME, "0", "16", Some(Workload::Mongodb)));
    }
}
