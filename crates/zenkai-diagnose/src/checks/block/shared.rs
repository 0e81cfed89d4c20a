//! What the block checks share.

use zenkai_facts::{
    Facts,
    block::{Disk, Kind, Md, Mount, Transport},
};

use crate::{Finding, Judgement, Outcome, need};

/// Judges every disk, array and volume by itself; those the check has no opinion on give `None`.
pub(super) fn each_disk(
    facts: &Facts,
    mut judge: impl FnMut(&Disk) -> Option<Result<Option<Finding>, Outcome>>,
) -> Judgement {
    need(&facts.block.disks)
        .map(|disks| Judgement::each(disks.iter().filter_map(&mut judge), std::convert::identity))
        .into()
}

/// Judges every array.
pub(super) fn each_array(
    facts: &Facts,
    mut judge: impl FnMut(&Disk, &Md) -> Result<Option<Finding>, Outcome>,
) -> Judgement {
    each_disk(facts, |disk| disk.md.as_ref().map(|md| judge(disk, md)))
}

/// Single files of the host that container engines mount; whoever is inside cannot mend the host's file system.
const BROUGHT_INTO_CONTAINERS: [&str; 4] =
    ["/etc/hosts", "/etc/hostname", "/etc/resolv.conf", "/dev/termination-log"];

/// Judges every file system that can be written and lies on a block device of this machine.
pub(super) fn each_writable_mount(
    facts: &Facts,
    mut judge: impl FnMut(&Mount) -> Result<Option<Finding>, Outcome>,
) -> Judgement {
    need(&facts.block.mounts)
        .map(|mounts| {
            let local = mounts.iter().filter(|mount| {
                mount.device.is_some()
                    && !mount.is_read_only()
                    && !BROUGHT_INTO_CONTAINERS.contains(&mount.target.as_str())
            });
            // A bind mount shows the same file system once more.
            let mut seen = std::collections::BTreeSet::new();
            let first =
                local.filter(move |mount| seen.insert((mount.device_number.clone(), mount.options.clone())));
            Judgement::each(first, &mut judge)
        })
        .into()
}

/// The disk, array or volume a file system reads from: it has the read-ahead and the request queue that count.
pub(super) fn mounted_disks(facts: &Facts) -> Vec<&Disk> {
    let mut seen = std::collections::BTreeSet::new();
    let mounts = facts.block.mounts.get().into_iter().flatten();
    let disks = mounts.filter_map(|mount| facts.block.disk_or_parent(mount.device.as_deref()?));
    disks.filter(|disk| seen.insert(disk.name.as_str())).collect()
}

/// A drive with platters that we talk to directly, without a RAID controller in between.
pub(super) fn is_spinning_drive(disk: &Disk) -> bool {
    disk.is_real_hardware()
        && disk.queue.rotational.value() == Some(true)
        && matches!(disk.transport.get(), Some(Transport::Sata | Transport::Sas))
}

/// Whether it is a real device without platters.
pub(super) fn is_real_flash(disk: &Disk) -> bool {
    disk.is_real_hardware() && disk.queue.rotational.value() == Some(false)
}

/// Whether a RAID controller shows this volume and keeps its drives to itself.
pub(super) fn is_raid_volume(disk: &Disk) -> bool {
    const DRIVERS: [&str; 8] =
        ["megaraid_sas", "hpsa", "smartpqi", "aacraid", "cciss", "3w-9xxx", "3w-sas", "arcmsr"];
    disk.kind == Kind::Physical
        && disk.transport.get() == Some(&Transport::Scsi)
        && disk.driver.text().is_some_and(|driver| DRIVERS.contains(&driver))
}

/// RAID levels that compute parity.
pub(super) fn has_parity(md: &Md) -> Option<bool> {
    md.level.text().map(|level| matches!(level, "raid4" | "raid5" | "raid6"))
}

#[cfg(test)]
pub(super) mod worlds {
    use zenkai_host::FakeHost;

    use crate::{Check, Context, Judgement, Workload, checks::testing::judge_host};

    /// Where a disk hangs, for the tests.
    pub(in crate::checks::block) const SATA: &str =
        "/sys/devices/pci0000:00/0000:00:1f.2/ata1/host0/target0:0:0/0:0:0:0/block/sda";
    pub(in crate::checks::block) const NVME: &str =
        "/sys/devices/pci0000:00/0000:00:01.0/0000:01:00.0/nvme/nvme0/nvme0n1";
    pub(in crate::checks::block) const VIRTIO: &str =
        "/sys/devices/pci0000:00/0000:00:02.0/virtio1/block/vda";
    pub(in crate::checks::block) const RAID: &str =
        "/sys/devices/pci0000:00/0000:00:01.0/0000:01:00.0/host0/target0:2:0/0:2:0:0/block/sda";
    pub(in crate::checks::block) const MD: &str = "/sys/devices/virtual/block/md0";
    pub(in crate::checks::block) const DM: &str = "/sys/devices/virtual/block/dm-0";

    /// A host with one disk at `place`, with these attributes below its directory.
    pub(in crate::checks::block) fn disk(place: &str, files: &[(&str, &str)]) -> FakeHost {
        add(FakeHost::new(&[]), place, files)
    }

    /// Adds a disk.
    pub(in crate::checks::block) fn add(host: FakeHost, place: &str, files: &[(&str, &str)]) -> FakeHost {
        let name = place.rsplit('/').next().unwrap();
        let host = host.file(&format!("{place}/size"), "2000000000\n");
        let host = if place == RAID {
            host.file("/sys/devices/pci0000:00/0000:00:01.0/0000:01:00.0/uevent", "DRIVER=megaraid_sas\n")
        } else {
            host
        };
        files
            .iter()
            .fold(host, |host, (file, content)| {
                host.file(&format!("{place}/{file}"), &format!("{content}\n"))
            })
            .link(&format!("/sys/block/{name}"), place)
    }

    /// What the check says of this host, without or with a workload.
    pub(in crate::checks::block) fn judged(
        check: &Check,
        host: FakeHost,
        workload: Option<Workload>,
    ) -> Judgement {
        judge_host(check, host, Context { workload })
    }

    /// What the check says of one disk.
    pub(in crate::checks::block) fn on(
        check: &Check,
        place: &str,
        files: &[(&str, &str)],
        workload: Option<Workload>,
    ) -> Judgement {
        judged(check, disk(place, files), workload)
    }

    /// Whether the check finds something on one disk, no workload named.
    pub(in crate::checks::block) fn fires(check: &Check, place: &str, files: &[(&str, &str)]) -> bool {
        !on(check, place, files, None).findings.is_empty()
    }

    /// Adds a mount line.
    pub(in crate::checks::block) fn mounted(host: FakeHost, line: &str) -> FakeHost {
        host.file("/proc/self/mountinfo", &format!("{line}\n"))
    }
}
