//! Disks, partitions, md, device mapper and LVM, mounts.
//!
//! Attributes are those of `Documentation/ABI/stable/sysfs-block` and `Documentation/admin-guide/md.rst`.

mod disk;
mod dm;
mod md;
mod mount;
mod nvme;
mod queue;
mod sas;
mod sata;
mod transport;

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;

use crate::{Observed, Reader, pcie::Paths};

pub use disk::{Activity, Disk, Kind, Partition, SimpleDisk};
pub use dm::{Dm, DmKind, Target};
pub use md::Md;
pub use mount::{DataDirectory, Mount, Usage};
pub use nvme::Nvme;
pub use queue::Queue;
pub use sas::{SasLink, SasPort};
pub use sata::SataLink;
pub use transport::Transport;

/// How deep stacks of md, LVM, encryption and partitions are followed; the kernel itself allows fewer levels.
const STACK_LIMIT: usize = 64;

/// Disks, partitions, md, device mapper and LVM, mounts.
#[derive(Debug, Clone, Serialize)]
pub struct Block {
    /// Disks, arrays and volumes that data lives on.
    pub disks: Observed<Vec<Disk>>,
    /// Loop, RAM, compressed-RAM, optical and floppy disks: known, not judged.
    pub simple_disks: Vec<SimpleDisk>,
    /// NVMe controllers.
    pub nvme: Observed<Vec<Nvme>>,
    /// The deepest sleep the NVMe driver lets drives fall into by themselves, as the longest wake-up in µs it
    /// accepts (`nvme_core.default_ps_max_latency_us`); 0 keeps them awake.
    pub nvme_max_wakeup_us: Observed<u64>,
    /// Mounted file systems that keep data, without the kernel's own (proc, sysfs, cgroup …).
    pub mounts: Observed<Vec<Mount>>,
    /// Well-known data directories below `/var/lib` that exist here, and what they live on.
    pub data_directories: Observed<Vec<DataDirectory>>,
    /// Where in `disks` a disk or the disk of a partition stands: there may be thousands, and joins ask often.
    #[serde(skip)]
    places: BTreeMap<String, usize>,
}

impl Block {
    /// The disk, array or volume of this kernel name.
    pub fn disk(&self, name: &str) -> Option<&Disk> {
        self.disk_or_parent(name).filter(|disk| disk.name == name)
    }

    /// The disk of this name, or the one that the partition of this name is on.
    pub fn disk_or_parent(&self, name: &str) -> Option<&Disk> {
        self.disks.get()?.get(*self.places.get(name)?)
    }

    /// The physical disks below a disk, partition, array or volume, in the order they are met.
    pub fn physical_below(&self, name: &str) -> Vec<&Disk> {
        let mut found = Vec::new();
        let mut seen = BTreeSet::new();
        self.descend(name, STACK_LIMIT, &mut seen, &mut |disk| {
            if disk.kind == Kind::Physical {
                found.push(disk);
            }
        });
        found
    }

    /// The disk of this name and everything it stands on.
    pub fn stack_below(&self, name: &str) -> Vec<&Disk> {
        let mut found = Vec::new();
        self.descend(name, STACK_LIMIT, &mut BTreeSet::new(), &mut |disk| found.push(disk));
        found
    }

    /// A hostile capture may hold devices that are built on each other in a circle; each is visited once.
    fn descend<'b>(
        &'b self,
        name: &str,
        depth: usize,
        seen: &mut BTreeSet<&'b str>,
        visit: &mut impl FnMut(&'b Disk),
    ) {
        let Some(disk) = self.disk_or_parent(name) else { return };
        if depth == 0 || !seen.insert(&disk.name) {
            return;
        }
        visit(disk);
        for member in &disk.members {
            self.descend(member, depth - 1, seen, visit);
        }
    }

    /// The mount that a path is on: the one with the longest matching target; of equal ones the last hides the
    /// others.
    pub fn mount_of(&self, path: &str) -> Option<&Mount> {
        mount::holding(self.mounts.get()?, path)
    }
}

/// Reads this subsystem.
pub fn observe(reader: &Reader<'_>, paths: &Paths<'_>) -> Block {
    let mut simple_disks = Vec::new();
    let disks = disk::observe(reader, paths, &mut simple_disks);
    let places = places(disks.get().map(Vec::as_slice).unwrap_or_default());
    let mut block = Block {
        disks,
        simple_disks,
        nvme: nvme::observe(reader, paths),
        nvme_max_wakeup_us: reader.number("/sys/module/nvme_core/parameters/default_ps_max_latency_us"),
        mounts: mount::observe(reader),
        data_directories: mount::data_directories(reader),
        places,
    };
    mount::join_disks(&mut block);
    block
}

/// Disks come before partitions of the same name, which no kernel has but a capture may.
fn places(disks: &[Disk]) -> BTreeMap<String, usize> {
    let mut places = BTreeMap::new();
    for (place, disk) in disks.iter().enumerate() {
        places.entry(disk.name.clone()).or_insert(place);
    }
    for (place, disk) in disks.iter().enumerate() {
        for partition in &disk.partitions {
            places.entry(partition.name.clone()).or_insert(place);
        }
    }
    places
}

#[cfg(test)]
mod tests;
