//! disks that imitate old hardware.

use zenkai_facts::{
    Facts,
    virtualisation::{DeviceClass, EmulatedDevice},
};

use crate::checks::shared::NO_PCI;
use crate::{
    Check, Context, Evidence, Finding, Impact, Judgement, Remedy, Subject, Subsystem, need_or_not_applicable,
};

/// See the explanation.
pub(super) static CHECK: Check = Check {
    id: "virtualisation-emulated-disk",
    subsystem: Subsystem::Virtualisation,
    summary: "disks imitate old hardware",
    impact: Impact::Moderate,
    effect: "I/O 2 to 10 times slower at high rates (estimate)",
    risk: "the driver must be in the initial RAM disk before the change, and device names may change",
    source: "https://wiki.xenproject.org/wiki/Tuning_Xen_for_Performance",
    explanation: include_str!("virtualisation_emulated_disk.md"),
    run,
};

fn run(facts: &Facts, _context: Context) -> Judgement {
    let devices = &facts.virtualisation.emulated_devices;
    need_or_not_applicable(devices, NO_PCI).map(|all| judge(all, devices.source())).into()
}

fn judge(devices: &[EmulatedDevice], source: &str) -> Judgement {
    let ours = devices.iter().filter(|device| device.class == DeviceClass::Disk);
    let findings = ours.map(|device| {
        let evidence =
            Evidence::derived(format!("{source}/{}/{}", device.driver, device.address), &device.driver);
        Finding::new(
            Subject::device(&device.name),
            format!("driven by {}, an imitation of old hardware", device.driver),
        )
        .with(evidence.expected("virtio-blk, virtio-scsi, pvscsi, xen-blkfront or storvsc"))
        .remedy(Remedy::Hypervisor(
            "attach the disk as virtio, PVSCSI or the hypervisor's own kind".to_owned(),
        ))
    });
    // The list itself was readable: no imitation is an answer too.
    Judgement { findings: findings.collect(), judged: 1, ..Judgement::default() }
}

#[cfg(test)]
mod tests {
    use zenkai_host::FakeHost;

    use crate::{Context, checks::testing::judge_host};

    const DEVICE: &str = "/sys/devices/pci0000:00/0000:00:03.0";

    fn fires(driver: &str) -> bool {
        let host = FakeHost::new(&[(&format!("{DEVICE}/ata1/sda/x") as &str, "1\n")])
            .file("/proc/cpuinfo", "flags : fpu hypervisor\n")
            .link("/sys/bus/pci/devices/0000:00:03.0", DEVICE)
            .link("/sys/block/sda", &format!("{DEVICE}/ata1/sda"))
            .link(&format!("/sys/bus/pci/drivers/{driver}/0000:00:03.0"), DEVICE);
        !judge_host(&super::CHECK, host, Context::default()).findings.is_empty()
    }

    #[test]
    fn a_guest_without_pci_imitates_nothing() {
        let host = FakeHost::new(&[("/proc/cpuinfo", "flags : fpu hypervisor\n")]);
        let judgement = judge_host(&super::CHECK, host, Context::default());
        assert!(judgement.unjudged.is_empty() && judgement.not_applicable.is_some());
    }

    #[test]
    fn imitations_only() {
        assert!(fires("ata_piix"));
        assert!(!fires("virtio-pci"));
        assert!(!fires("megaraid_sas"));
    }
}
