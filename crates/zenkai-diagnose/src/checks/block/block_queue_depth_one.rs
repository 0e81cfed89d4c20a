//! A drive that gets one command at a time.

use zenkai_facts::{
    Facts,
    block::{Disk, Transport},
};

use super::shared::each_disk;
use crate::checks::shared::in_guest;
use crate::{
    Check, Context, Evidence, Finding, Impact, Judgement, Outcome, Remedy, Subject, Subsystem, need,
};

/// See the explanation.
pub(super) static CHECK: Check = Check {
    id: "block-queue-depth-one",
    subsystem: Subsystem::Block,
    summary: "a drive gets one command at a time",
    impact: Impact::Moderate,
    effect: "estimate: 2 to 5 times fewer random requests per second",
    risk: "command queueing was perhaps turned off for a drive with faulty firmware",
    source: "https://docs.kernel.org/admin-guide/kernel-parameters.html",
    explanation: include_str!("block_queue_depth_one.md"),
    run,
};

fn run(facts: &Facts, _context: Context) -> Judgement {
    each_disk(facts, |disk| {
        let direct = matches!(
            disk.transport.get(),
            Some(Transport::Sata | Transport::Sas | Transport::FibreChannel | Transport::Scsi)
        );
        (direct && disk.is_real_hardware() && disk.removable.value() != Some(true))
            .then(|| judge(facts, disk))
    })
}

fn judge(facts: &Facts, disk: &Disk) -> Result<Option<Finding>, Outcome> {
    if *need(&disk.queue_depth)? > 1 {
        return Ok(None);
    }
    let legacy = disk.driver.text().is_some_and(|driver| driver == "ata_piix" || driver.starts_with("pata_"));
    let remedy = if legacy && in_guest(facts) {
        Remedy::Hypervisor("give the guest a virtio or AHCI disk in place of the IDE one".into())
    } else if legacy {
        Remedy::Firmware("switch the SATA controller from IDE (legacy, compatible) to AHCI mode".into())
    } else {
        // Some disk-on-module and flash cards cannot queue, and the kernel does not say which.
        Remedy::Do(format!(
            "echo 31 > {}; if it stays 1, look for libata.force=noncq on the kernel command line, else the drive \
             itself cannot queue",
            disk.queue_depth.source()
        ))
    };
    Ok(Some(
        Finding::new(Subject::device(&disk.name), "the drive is given one command at a time")
            .with(Evidence::of(&disk.queue_depth).expected("31 or more"))
            .with(Evidence::of(&disk.driver))
            .remedy(remedy)
            .because("command queueing is off"),
    ))
}

#[cfg(test)]
mod tests {
    use super::super::shared::worlds::{SATA, VIRTIO, fires};

    #[test]
    fn only_drives_that_could_queue() {
        assert!(fires(&super::CHECK, SATA, &[("device/queue_depth", "1"), ("device/model", "DISK")]));
        assert!(!fires(&super::CHECK, SATA, &[("device/queue_depth", "32")]));
        assert!(!fires(
            &super::CHECK,
            SATA,
            &[("device/queue_depth", "1"), ("device/model", "QEMU HARDDISK")]
        ));
        assert!(!fires(&super::CHECK, VIRTIO, &[("device/queue_depth", "1")]));
        let usb = "/sys/devices/pci0000:00/0000:00:14.0/usb2/2-1/host9/target9:0:0/9:0:0:0/block/sda";
        assert!(!fires(&super::CHECK, usb, &[("device/queue_depth", "1")]), "USB mass storage has no queue");
    }
}
