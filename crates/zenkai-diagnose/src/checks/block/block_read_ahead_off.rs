//! Read-ahead switched off.

use zenkai_facts::{Facts, block::Disk};
use zenkai_tune::Setting;

use super::shared::each_disk;
use crate::{
    Check, Context, Evidence, Finding, Impact, Judgement, Outcome, Remedy, Subject, Subsystem, Workload, need,
};

/// See the explanation.
pub(super) static CHECK: Check = Check {
    id: "block-read-ahead-off",
    subsystem: Subsystem::Block,
    summary: "nothing is read ahead of a program that reads in order",
    impact: Impact::Moderate,
    effect: "sequential reads through the page cache wait for the disk page by page (follows from the setting)",
    risk: "read-ahead wastes memory and disk time on purely random reads",
    source: "https://docs.kernel.org/block/queue-sysfs.html",
    explanation: include_str!("block_read_ahead_off.md"),
    run,
};

/// Below this, a stream is read in pieces of one to three pages; the kernel's default is 128.
const LEAST_KB: u64 = 16;
const DEFAULT_KB: &str = "128";

fn run(facts: &Facts, context: Context) -> Judgement {
    // Vendors of databases that read at random ask for 8 to 32.
    if context.works_as(&[Workload::Mongodb, Workload::Database, Workload::Redis]) {
        return Outcome::not_applicable("databases that read at random want little or no read-ahead").into();
    }
    each_disk(facts, |disk| disk.kind.is_judged().then(|| judge(disk)))
}

fn judge(disk: &Disk) -> Result<Option<Finding>, Outcome> {
    let reading = &disk.queue.read_ahead_kb;
    let kb = *need(reading)?;
    if kb >= LEAST_KB {
        return Ok(None);
    }
    Ok(Some(
        Finding::new(Subject::device(&disk.name), format!("reads {kb} KiB ahead of streams"))
            .with(Evidence::of(reading).expected(DEFAULT_KB))
            .remedy(Remedy::Set(vec![Setting::attribute(reading.source(), DEFAULT_KB)])),
    ))
}

#[cfg(test)]
mod tests {
    use super::super::shared::worlds::{SATA, VIRTIO, on};
    use crate::Workload;

    #[test]
    fn in_guests_too_but_not_for_databases() {
        let fires = |place, kb, workload| {
            !on(&super::CHECK, place, &[("queue/read_ahead_kb", kb)], workload).findings.is_empty()
        };
        assert!(fires(SATA, "0", None));
        assert!(fires(VIRTIO, "4", None));
        assert!(!fires(SATA, "128", None));
        assert!(!fires(SATA, "8", Some(Workload::Mongodb)));
    }
}
