//! Disks and their partitions.

use serde::Serialize;
use zenkai_host::EntryKind;

use super::{
    Dm, Md, Queue, SasLink, SataLink, Transport, dm, md,
    nvme::addresses,
    queue,
    sas::Ports,
    sata,
    transport::{numbered_component, of_path},
};
use crate::{Observed, Reader, Reason, pcie::Paths, reader::join};

/// The kernel counts disk sizes and partition starts in sectors of 512 bytes, whatever the device's own size.
const SECTOR_BYTES: u64 = 512;

/// What a disk is to the kernel.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// A device of its own, real or shown by a hypervisor.
    Physical,
    /// A software RAID array.
    Md,
    /// A device-mapper volume: LVM, encryption, multipath.
    Dm,
    /// Built by something else on other devices or a network: bcache, DRBD, RBD, ZFS volumes.
    Stacked,
    /// A file seen as a disk.
    Loop,
    /// Compressed memory.
    Zram,
    /// Plain memory.
    Ram,
    /// A network block device.
    Nbd,
    /// CD or DVD.
    Optical,
    /// Floppy disk.
    Floppy,
}

impl Kind {
    /// Whether data lives on it so that its speed matters.
    pub fn is_judged(self) -> bool {
        matches!(self, Self::Physical | Self::Md | Self::Dm | Self::Stacked)
    }
}

/// A disk that is known but not judged.
#[derive(Debug, Clone, Serialize)]
pub struct SimpleDisk {
    /// Kernel name.
    pub name: String,
    /// What it is.
    pub kind: Kind,
    /// Its size; 0 when nothing is attached.
    pub size_bytes: Observed<u64>,
}

/// A disk, array or volume.
#[derive(Debug, Clone, Serialize)]
pub struct Disk {
    /// Kernel name, such as `sda` or `dm-0`.
    pub name: String,
    /// What it is.
    pub kind: Kind,
    /// Major and minor number, such as `8:0`.
    pub device_number: Observed<String>,
    /// Its size.
    pub size_bytes: Observed<u64>,
    /// Whether it refuses writes.
    pub read_only: Observed<bool>,
    /// Whether its medium can be taken out.
    pub removable: Observed<bool>,
    /// Who made it, as a SCSI or SATA device says; SATA drives say `ATA`.
    pub vendor: Observed<String>,
    /// Its model; never its serial number.
    pub model: Observed<String>,
    /// How it is attached.
    pub transport: Observed<Transport>,
    /// Driver of the PCI function behind it, such as `mpt3sas`.
    pub driver: Observed<String>,
    /// Its way on PCIe by address, the device first and the root port last; the links are told under `pcie`.
    pub pcie: Observed<Vec<String>>,
    /// Its request queue.
    pub queue: Queue,
    /// Hardware queues.
    pub hardware_queues: Observed<u64>,
    /// Commands a SCSI or SATA device may have in work; 1 means no command queueing.
    pub queue_depth: Observed<u64>,
    /// What it has done since boot.
    pub activity: Observed<Activity>,
    /// How far its start is from a physical block; the kernel says -1 for an array whose members disagree.
    pub alignment_offset_bytes: Observed<i64>,
    /// Partitions, in the kernel's order.
    pub partitions: Vec<Partition>,
    /// What it is built on: kernel names of disks or partitions.
    pub members: Vec<String>,
    /// What is built on the whole of it.
    pub holders: Vec<String>,
    /// For arrays.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub md: Option<Md>,
    /// For device-mapper volumes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dm: Option<Dm>,
    /// For disks on a SATA port.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sata: Option<SataLink>,
    /// For disks on a SAS port.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sas: Option<SasLink>,
    /// For NVMe: the controllers that lead to it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub nvme_controllers: Vec<String>,
}

impl Disk {
    /// Whether a hypervisor or a cloud shows this disk: its flags say nothing about what is behind it.
    pub fn is_virtual_hardware(&self) -> bool {
        const TRANSPORTS: [Transport; 3] = [Transport::Virtio, Transport::Xen, Transport::HyperV];
        const MODELS: [&str; 9] = [
            "QEMU",
            "VBOX",
            "VMware",
            "Virtual",
            "Msft",
            "Amazon Elastic Block Store",
            "Amazon EC2 NVMe",
            "PersistentDisk",
            "nvme_card-pd",
        ];
        let named = |text: &Observed<String>| {
            text.text().is_some_and(|text| MODELS.iter().any(|model| text.contains(model)))
        };
        self.transport.get().is_some_and(|transport| TRANSPORTS.contains(transport))
            || named(&self.model)
            || named(&self.vendor)
    }

    /// Whether it is a physical SATA, SAS, SCSI or NVMe disk whose own flags can be believed.
    pub fn is_real_hardware(&self) -> bool {
        self.kind == Kind::Physical && !self.is_virtual_hardware()
    }
}

/// A partition.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Partition {
    /// Kernel name, such as `sda1`.
    pub name: String,
    /// Major and minor number.
    pub device_number: Observed<String>,
    /// Where it starts on the disk.
    pub start_bytes: Observed<u64>,
    /// Its size.
    pub size_bytes: Observed<u64>,
    /// How far its start is from a physical block; 0 is aligned, -1 is misaligned without saying how far.
    pub alignment_offset_bytes: Observed<i64>,
    /// What is built on it.
    pub holders: Vec<String>,
}

/// What a disk has done since boot (`Documentation/admin-guide/iostats.rst`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Activity {
    /// Reads completed.
    pub reads: u64,
    /// Bytes read.
    pub read_bytes: u64,
    /// Time that reads took together, in ms.
    pub read_ms: u64,
    /// Writes completed.
    pub writes: u64,
    /// Bytes written.
    pub written_bytes: u64,
    /// Time that writes took together, in ms.
    pub write_ms: u64,
    /// Requests in work now.
    pub in_flight: u64,
    /// Time with at least one request in work, in ms.
    pub busy_ms: u64,
}

pub(super) fn observe(
    reader: &Reader<'_>,
    paths: &Paths<'_>,
    simple: &mut Vec<SimpleDisk>,
) -> Observed<Vec<Disk>> {
    const DIR: &str = "/sys/block";
    let ports = Ports::default();
    let mut read = |name: String| {
        let dir = join(DIR, &name);
        let kind = kind_of(&name);
        if kind.is_judged() {
            return Some(read_disk(reader, paths, &ports, &dir, name, kind));
        }
        simple.push(SimpleDisk { kind, size_bytes: sectors(reader, &join(&dir, "size")), name });
        None
    };
    reader
        .names(DIR)
        .map(|names| names.into_iter().filter(|name| !is_hidden_path(name)).filter_map(&mut read).collect())
}

/// One path of a multipath NVMe namespace, `nvme0c1n1`: hidden from users, `nvme0n1` stands for all of them.
fn is_hidden_path(name: &str) -> bool {
    name.strip_prefix("nvme").is_some_and(|rest| rest.contains('c'))
}

/// Told from the name the driver gives (`Documentation/admin-guide/devices.txt`).
fn kind_of(name: &str) -> Kind {
    const PREFIXES: [(&str, Kind); 15] = [
        ("loop", Kind::Loop),
        ("zram", Kind::Zram),
        ("ram", Kind::Ram),
        ("nbd", Kind::Nbd),
        ("sr", Kind::Optical),
        ("scd", Kind::Optical),
        ("fd", Kind::Floppy),
        ("md", Kind::Md),
        ("dm-", Kind::Dm),
        ("bcache", Kind::Stacked),
        ("drbd", Kind::Stacked),
        ("rbd", Kind::Stacked),
        ("zd", Kind::Stacked),
        ("mtdblock", Kind::Ram),
        ("ubiblock", Kind::Ram),
    ];
    let is = |prefix: &str| {
        let rest = name.strip_prefix(prefix);
        rest.is_some_and(|rest| rest.starts_with(|first: char| first.is_ascii_digit() || first == '_'))
    };
    PREFIXES.iter().find(|(prefix, _)| is(prefix)).map_or(Kind::Physical, |(_, kind)| *kind)
}

fn read_disk(
    reader: &Reader<'_>,
    paths: &Paths<'_>,
    ports: &Ports,
    dir: &str,
    name: String,
    kind: Kind,
) -> Disk {
    let at = |name: &str| join(dir, name);
    let canonical = reader.resolve(dir);
    let physical = kind == Kind::Physical;
    let transport = if physical { canonical.clone().map(|path| of_path(&path)) } else { no_device(dir) };
    let is = |wanted: &[Transport]| transport.get().is_some_and(|found| wanted.contains(found));
    let controllers = if is(&[Transport::Nvme, Transport::NvmeFabrics]) {
        controllers(reader, &canonical)
    } else {
        Vec::new()
    };
    let hops = match (physical, controllers.first()) {
        (false, _) => no_device(dir),
        (true, Some(controller)) => paths.path(&format!("/sys/class/nvme/{controller}")),
        (true, None) => paths.of_canonical(dir, &canonical),
    };
    let driver = hops.get().and_then(|hops| hops.first()).map(|hop| hop.driver.clone());
    let ata =
        canonical.get().filter(|_| is(&[Transport::Sata])).and_then(|path| numbered_component(path, "ata"));
    let inside = reader.entries(dir);
    let has =
        |wanted: &str| inside.get().is_some_and(|entries| entries.iter().any(|entry| entry.name == wanted));
    let scsi =
        has("device") && !is(&[Transport::Nvme, Transport::NvmeFabrics, Transport::Mmc, Transport::Xen]);
    Disk {
        device_number: reader.text(&at("dev")),
        size_bytes: sectors(reader, &at("size")),
        read_only: reader.flag(&at("ro")),
        removable: reader.flag(&at("removable")),
        // Virtio's `vendor` and `device` are numbers; without `queue_depth` it is no SCSI device.
        vendor: if scsi && !name.starts_with("vd") {
            reader.text(&at("device/vendor"))
        } else {
            no_device(dir)
        },
        model: if physical { reader.text(&at("device/model")) } else { no_device(dir) },
        driver: driver.unwrap_or_else(|| no_device(dir)),
        pcie: addresses(hops),
        queue: queue::observe(reader, dir),
        hardware_queues: reader.entries(&at("mq")).map(|entries| entries.len() as u64),
        queue_depth: if scsi { reader.number(&at("device/queue_depth")) } else { no_device(dir) },
        activity: reader.understood(&at("stat"), activity),
        alignment_offset_bytes: reader.number(&at("alignment_offset")),
        partitions: partitions(reader, dir, &name, inside.get().map_or(&[], Vec::as_slice)),
        members: related(reader, &at("slaves")),
        holders: related(reader, &at("holders")),
        md: (kind == Kind::Md).then(|| md::observe(reader, dir)),
        dm: (kind == Kind::Dm).then(|| dm::observe(reader, dir)),
        sata: ata.map(|port| sata::observe(reader, port)),
        sas: canonical.get().filter(|_| is(&[Transport::Sas])).and_then(|path| ports.link(reader, path)),
        nvme_controllers: controllers,
        transport,
        kind,
        name,
    }
}

fn no_device<T>(dir: &str) -> Observed<T> {
    Observed::unavailable(dir, Reason::NotApplicable("this kind of disk has none".to_owned()))
}

/// Names in a directory of links; one that is missing or unreadable means that nothing is related.
fn related(reader: &Reader<'_>, dir: &str) -> Vec<String> {
    reader.names(dir).get().cloned().unwrap_or_default()
}

/// `…/nvme/nvme0/nvme0n1` has its controller above it; `…/nvme-subsystem/nvme-subsys0/nvme0n1` stands for all
/// controllers that are linked beside it.
fn controllers(reader: &Reader<'_>, canonical: &Observed<String>) -> Vec<String> {
    let Some((above, _)) = canonical.get().and_then(|path| path.rsplit_once('/')) else { return Vec::new() };
    let is_controller = |name: &str| {
        name.strip_prefix("nvme")
            .is_some_and(|number| !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit()))
    };
    match above.rsplit('/').next() {
        Some(name) if is_controller(name) => vec![name.to_owned()],
        Some(name) if name.starts_with("nvme-subsys") => {
            related(reader, above).into_iter().filter(|name| is_controller(name)).collect()
        }
        _ => Vec::new(),
    }
}

fn partitions(
    reader: &Reader<'_>,
    dir: &str,
    disk: &str,
    inside: &[zenkai_host::DirEntry],
) -> Vec<Partition> {
    // A partition is the only directory in a disk's own that begins with the disk's name (block/partitions/core.c).
    let mut names: Vec<&str> = inside
        .iter()
        .filter(|entry| entry.kind == EntryKind::Directory && entry.name.starts_with(disk))
        .map(|entry| entry.name.as_str())
        .collect();
    names.sort_by_key(|name| (name.len(), *name));
    let read = |name: &str| {
        let at = |file: &str| format!("{dir}/{name}/{file}");
        Partition {
            name: name.to_owned(),
            device_number: reader.text(&at("dev")),
            start_bytes: sectors(reader, &at("start")),
            size_bytes: sectors(reader, &at("size")),
            alignment_offset_bytes: reader.number(&at("alignment_offset")),
            holders: related(reader, &at("holders")),
        }
    };
    names.into_iter().map(read).collect()
}

fn sectors(reader: &Reader<'_>, path: &str) -> Observed<u64> {
    reader
        .number::<u64>(path)
        .parse(|count| count.checked_mul(SECTOR_BYTES).ok_or_else(|| format!("{count} sectors are no size")))
}

/// The `stat` attribute: eleven numbers or more.
fn activity(text: &str) -> Result<Activity, Reason> {
    let malformed = || Reason::Malformed(text.chars().take(40).collect());
    let numbers: Vec<u64> = text
        .split_whitespace()
        .take(11)
        .map(str::parse)
        .collect::<Result<_, _>>()
        .map_err(|_| malformed())?;
    let [reads, _, read_sectors, read_ms, writes, _, written_sectors, write_ms, in_flight, busy_ms, _] =
        <[u64; 11]>::try_from(numbers).map_err(|_| malformed())?;
    Ok(Activity {
        reads,
        read_bytes: read_sectors.saturating_mul(SECTOR_BYTES),
        read_ms,
        writes,
        written_bytes: written_sectors.saturating_mul(SECTOR_BYTES),
        write_ms,
        in_flight,
        busy_ms,
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn names_tell_the_kind() {
        let cases = [
            ("sda", Kind::Physical),
            ("nvme0n1", Kind::Physical),
            ("md127", Kind::Md),
            ("md_d0", Kind::Md),
            ("dm-3", Kind::Dm),
            ("loop7", Kind::Loop),
            ("zram0", Kind::Zram),
            ("sr0", Kind::Optical),
            ("rbd0", Kind::Stacked),
            ("srx", Kind::Physical),
        ];
        for (name, kind) in cases {
            assert_eq!(kind_of(name), kind, "{name}");
        }
        assert!(is_hidden_path("nvme0c0n1") && !is_hidden_path("nvme0n1"));
    }

    #[test]
    fn what_a_disk_has_done() {
        let done = activity("  1 0 8 4   2 0 16 5  3 9 9 0 0 0 0 0 0").unwrap();
        assert_eq!((done.reads, done.read_bytes, done.written_bytes, done.in_flight), (1, 4096, 8192, 3));
        assert!(activity("1 2 3").is_err());
    }

    proptest! {
        #[test]
        fn never_panics(text in "[0-9 a-z-]{0,90}") {
            let _ = (activity(&text), kind_of(&text), is_hidden_path(&text));
        }
    }
}
