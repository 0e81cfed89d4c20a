//! Flash that the kernel takes for a spinning disk.

use zenkai_facts::{
    Facts,
    block::{Disk, Kind},
};
use zenkai_tune::Setting;

use super::shared::each_disk;
use crate::{
    Check, Context, Evidence, Finding, Impact, Judgement, Outcome, Remedy, Subject, Subsystem, Workload, need,
};

/// See the explanation.
pub(super) static CHECK: Check = Check {
    id: "block-rotational-flag-wrong",
    subsystem: Subsystem::Block,
    summary: "the kernel takes flash for a spinning disk",
    impact: Impact::Small,
    effect: "estimate: schedulers, file systems and write-back throttling treat it as slow to seek",
    risk: "none known; file systems read the flag when mounted",
    source: "https://docs.kernel.org/admin-guide/abi-stable.html",
    explanation: include_str!("block_rotational_flag_wrong.md"),
    run,
};

fn run(facts: &Facts, context: Context) -> Judgement {
    each_disk(facts, |disk| (disk.kind == Kind::Physical).then(|| judge(disk, context)))
}

fn judge(disk: &Disk, context: Context) -> Result<Option<Finding>, Outcome> {
    if !*need(&disk.queue.rotational)? {
        return Ok(None);
    }
    let named_flash = disk.model.text().is_some_and(|model| {
        model
            .to_ascii_uppercase()
            .split(|letter: char| !letter.is_ascii_alphanumeric())
            .any(|word| word == "SSD")
    });
    let busy = [Workload::Database, Workload::Hana, Workload::Mongodb, Workload::Storage, Workload::Latency];
    let (what, impact) = if disk.is_virtual_hardware() {
        // What is behind a hypervisor's disk is unknown, and the flag is the default of most of them.
        if !context.works_as(&busy) {
            return Err(Outcome::not_applicable("what is behind a hypervisor's disk is not known"));
        }
        ("a hypervisor's disk is treated as a spinning one; if flash is behind it, say so", Impact::Depends)
    } else if named_flash {
        ("the model says SSD and the flag says platters", Impact::Small)
    } else {
        return Ok(None);
    };
    let finding = Finding::new(Subject::device(&disk.name), what)
        .with(Evidence::of_switch(&disk.queue.rotational).expected(0));
    let finding = if named_flash { finding.with(Evidence::of(&disk.model)) } else { finding };
    Ok(Some(
        finding
            .impact(impact)
            .remedy(Remedy::Set(vec![Setting::attribute(disk.queue.rotational.source(), "0")])),
    ))
}

#[cfg(test)]
mod tests {
    use super::super::shared::worlds::{RAID, SATA, VIRTIO, on};
    use crate::Workload;

    #[test]
    fn flash_by_its_own_name() {
        let fires = |place, model, rotational, workload| {
            let files = [("queue/rotational", rotational), ("device/model", model)];
            !on(&super::CHECK, place, &files, workload).findings.is_empty()
        };
        assert!(fires(RAID, "ACME SSD 960", "1", None));
        assert!(!fires(RAID, "ACME SSD 960", "0", None));
        assert!(!fires(SATA, "ST4000NM0033", "1", None));
        assert!(!fires(SATA, "CROSSDISK", "1", None));
        assert!(!fires(VIRTIO, "", "1", None), "this is what most guests show");
        assert!(fires(VIRTIO, "", "1", Some(Workload::Database)));
    }
}
