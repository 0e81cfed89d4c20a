//! An I/O scheduler that does not fit its disk.

use zenkai_facts::{
    Choice, Facts,
    block::{Disk, Kind, Transport},
};
use zenkai_tune::Setting;

use super::shared::{each_disk, is_real_flash, is_spinning_drive};
use crate::{
    Check, Context, Evidence, Finding, Impact, Judgement, Outcome, Remedy, Subject, Subsystem, Workload, need,
};

/// See the explanation.
pub(super) static CHECK: Check = Check {
    id: "block-scheduler-unfit",
    subsystem: Subsystem::Block,
    summary: "the I/O scheduler does not fit the disk",
    impact: Impact::Small,
    effect: "BFQ carries at most 400 000 requests a second on a laptop CPU of 2013 (kernel documentation); the others: \
             no published number",
    risk: "fairness between groups that BFQ gives is lost",
    source: "https://docs.kernel.org/block/bfq-iosched.html",
    explanation: include_str!("block_scheduler_unfit.md"),
    run,
};

fn run(facts: &Facts, context: Context) -> Judgement {
    each_disk(facts, |disk| (disk.kind == Kind::Physical).then(|| judge(disk, context)))
}

fn judge(disk: &Disk, context: Context) -> Result<Option<Finding>, Outcome> {
    let scheduler = need(&disk.queue.scheduler)?;
    let none = ["none", "noop"].into_iter().find(|name| offers(scheduler, name));
    let ordering = ["mq-deadline", "deadline"].into_iter().find(|name| offers(scheduler, name));
    let current = scheduler.current.as_str();
    let fair = matches!(current, "bfq" | "cfq");
    let busy = [Workload::Database, Workload::Hana, Workload::Storage, Workload::Latency, Workload::Mongodb];
    let verdict = if disk.transport.get() == Some(&Transport::Nvme) {
        match current {
            _ if fair => none.map(|better| {
                (better, "sorts and shares out what the drive does by itself", Impact::Moderate)
            }),
            "mq-deadline" => {
                none.map(|better| (better, "sorts requests for a drive that needs no sorting", Impact::Small))
            }
            _ => None,
        }
    } else if disk.is_virtual_hardware() {
        let second = "sorts requests that the hypervisor sorts again";
        match current {
            _ if fair => none.map(|better| (better, second, Impact::Small)),
            // The kernel's own choice for disks with one queue; worth a word to those who push them.
            "mq-deadline" if context.works_as(&busy) => none.map(|better| (better, second, Impact::Depends)),
            _ => None,
        }
    } else if is_spinning_drive(disk) {
        let unsorted = "leaves requests to platters unsorted";
        (matches!(current, "none" | "noop"))
            .then_some(ordering)
            .flatten()
            .map(|better| (better, unsorted, Impact::Moderate))
    } else if is_real_flash(disk) && current == "cfq" {
        ordering.or(none).map(|better| {
            (better, "waits for neighbouring requests, which flash does not need", Impact::Moderate)
        })
    } else {
        None
    };
    Ok(verdict.map(|(better, why, impact)| {
        Finding::new(Subject::device(&disk.name), format!("scheduler {current} {why}"))
            .with(Evidence::of(&disk.queue.scheduler.clone().map(|choice| choice.current)).expected(better))
            .with(Evidence::of_switch(&disk.queue.rotational))
            .impact(impact)
            .remedy(Remedy::Set(vec![Setting::attribute(disk.queue.scheduler.source(), better)]))
    }))
}

fn offers(scheduler: &Choice, name: &str) -> bool {
    scheduler.available.iter().any(|known| known == name)
}

#[cfg(test)]
mod tests {
    use super::super::shared::worlds::{MD, NVME, RAID, SATA, VIRTIO, on};
    use crate::Workload;

    fn fires(place: &str, scheduler: &str, rotational: &str, workload: Option<Workload>) -> bool {
        let files = [("queue/scheduler", scheduler), ("queue/rotational", rotational)];
        !on(&super::CHECK, place, &files, workload).findings.is_empty()
    }

    #[test]
    fn heavy_schedulers_on_fast_disks() {
        assert!(fires(NVME, "none mq-deadline kyber [bfq]", "0", None));
        assert!(fires(NVME, "none [mq-deadline] kyber bfq", "0", None));
        assert!(fires(VIRTIO, "none mq-deadline [bfq]", "1", None));
        assert!(fires(VIRTIO, "none [mq-deadline]", "1", Some(Workload::Database)));
        assert!(fires(SATA, "[none] mq-deadline", "1", None));
        assert!(fires(SATA, "noop deadline [cfq]", "0", None));
    }

    #[test]
    fn the_kernels_own_choices_are_fine() {
        assert!(!fires(NVME, "[none] mq-deadline", "0", None));
        assert!(!fires(NVME, "none [kyber]", "0", None));
        assert!(!fires(VIRTIO, "none [mq-deadline] kyber bfq", "1", None));
        assert!(!fires(SATA, "none [mq-deadline]", "1", None));
        assert!(!fires(SATA, "none mq-deadline [bfq]", "1", None), "fairness is what platters need");
        assert!(!fires(SATA, "[none] mq-deadline", "0", None));
        assert!(!fires(RAID, "[none] mq-deadline", "1", None), "the controller sorts");
        assert!(!fires(MD, "none", "1", None));
        assert!(!fires(SATA, "[none]", "1", None), "nothing better is there");
    }
}
