//! Small worlds with disks in them.

use zenkai_host::{FakeHost, Reply};

use super::*;

fn observed(host: &FakeHost) -> Block {
    let reader = Reader::new(host);
    observe(&reader, &Paths::new(&reader))
}

/// A SATA disk with one partition, which is half of a mirror, on which LVM keeps a volume.
fn stack() -> FakeHost {
    let sda = "/sys/devices/pci0000:00/0000:00:1f.2/ata3/host2/target2:0:0/2:0:0:0/block/sda";
    let host = FakeHost::new(&[
        ("/sys/class/ata_link/link3/sata_spd", "3.0 Gbps\n"),
        ("/sys/class/ata_link/link3/sata_spd_limit", "3.0 Gbps\n"),
        ("/sys/class/ata_link/link3/hw_sata_spd_limit", "6.0 Gbps\n"),
        ("/sys/devices/virtual/block/md0/dev", "9:0\n"),
        ("/sys/devices/virtual/block/md0/md/level", "raid1\n"),
        ("/sys/devices/virtual/block/md0/md/chunk_size", "0\n"),
        ("/sys/devices/virtual/block/md0/md/degraded", "1\n"),
        ("/sys/devices/virtual/block/dm-0/dev", "253:0\n"),
        ("/sys/devices/virtual/block/dm-0/dm/name", "vg-data\n"),
        ("/sys/devices/virtual/block/zram0/size", "2048\n"),
        ("/proc/self/mountinfo", "22 1 253:0 / /var/lib/mysql rw - xfs /dev/mapper/vg-data rw\n"),
        ("/var/lib/mysql/ibdata1", ""),
    ]);
    let files = [
        ("dev", "8:0\n"),
        ("size", "2048\n"),
        ("queue/rotational", "0\n"),
        ("queue/scheduler", "none [mq-deadline]\n"),
        ("sda1/start", "63\n"),
        ("sda1/dev", "8:1\n"),
        ("sda1/size", "1000\n"),
    ];
    let host = files.iter().fold(host, |host, (name, content)| host.file(&format!("{sda}/{name}"), content));
    host.link("/sys/block/sda", sda)
        .link("/sys/block/md0", "/sys/devices/virtual/block/md0")
        .link("/sys/block/dm-0", "/sys/devices/virtual/block/dm-0")
        .link("/sys/block/zram0", "/sys/devices/virtual/block/zram0")
        .link("/sys/devices/virtual/block/md0/slaves/sda1", &format!("{sda}/sda1"))
        .link("/sys/devices/virtual/block/dm-0/slaves/md0", "/sys/devices/virtual/block/md0")
        .reply(
            &zenkai_host::Query::Statfs { path: "/var/lib/mysql".into() },
            Reply::Named(
                [
                    ("block_size_bytes", 4096),
                    ("blocks", 100),
                    ("blocks_available", 10),
                    ("files", 5),
                    ("files_free", 1),
                ]
                .map(|(name, value)| (name.to_owned(), value))
                .to_vec(),
            ),
        )
}

#[test]
fn from_the_mount_down_to_the_disk() {
    let block = observed(&stack());
    let mount = &block.mounts.get().unwrap()[0];
    assert_eq!(mount.device.as_deref(), Some("dm-0"));
    assert_eq!(mount.root_disks, ["sda"]);
    assert_eq!(mount.usage.get().unwrap().available_bytes, 40_960);
    assert_eq!(block.data_directories.get().unwrap()[0].root_disks, ["sda"]);
    let disk = block.disk("sda").unwrap();
    assert_eq!(disk.sata.as_ref().unwrap().limit_mbps.value(), Some(3_000));
    assert_eq!(disk.partitions[0].start_bytes.value(), Some(63 * 512));
    assert_eq!(disk.queue.rotational.value(), Some(false));
    assert_eq!(disk.pcie.get().unwrap(), &["0000:00:1f.2"]);
    assert_eq!(block.disk("md0").unwrap().md.as_ref().unwrap().degraded.value(), Some(1));
    assert_eq!(block.simple_disks.len(), 1);
    let names: Vec<&str> = block.stack_below("dm-0").iter().map(|disk| disk.name.as_str()).collect();
    assert_eq!(names, ["dm-0", "md0", "sda"]);
}

#[test]
fn devices_built_on_each_other_in_a_circle() {
    let host = FakeHost::new(&[
        ("/sys/block/dm-0/slaves/dm-1/x", ""),
        ("/sys/block/dm-1/slaves/dm-0/x", ""),
        ("/sys/block/dm-1/slaves/dm-1/x", ""),
    ]);
    let block = observed(&host);
    assert_eq!(block.stack_below("dm-0").len(), 2);
    assert!(block.physical_below("dm-0").is_empty());
}

#[test]
fn several_controllers_lead_to_one_namespace() {
    let subsystem = "/sys/devices/virtual/nvme-subsystem/nvme-subsys0";
    let host = FakeHost::new(&[
        ("/sys/devices/virtual/nvme-subsystem/nvme-subsys0/nvme0n1/size", "8\n"),
        ("/sys/devices/pci0000:00/0000:00:01.0/0000:01:00.0/nvme/nvme0/model", "Fast 1T   \n"),
        ("/sys/devices/pci0000:00/0000:00:01.0/0000:01:00.0/nvme/nvme0/nvme0c0n1/size", "8\n"),
    ])
    .link("/sys/block/nvme0n1", &format!("{subsystem}/nvme0n1"))
    .link("/sys/block/nvme0c0n1", "/sys/devices/pci0000:00/0000:00:01.0/0000:01:00.0/nvme/nvme0/nvme0c0n1")
    .link("/sys/class/nvme/nvme0", "/sys/devices/pci0000:00/0000:00:01.0/0000:01:00.0/nvme/nvme0")
    .link(
        "/sys/devices/virtual/nvme-subsystem/nvme-subsys0/nvme0",
        "/sys/devices/pci0000:00/0000:00:01.0/0000:01:00.0/nvme/nvme0",
    );
    let block = observed(&host);
    assert_eq!(block.disks.get().unwrap().len(), 1);
    let disk = block.disk("nvme0n1").unwrap();
    assert_eq!(disk.nvme_controllers, ["nvme0"]);
    assert_eq!(disk.pcie.get().unwrap(), &["0000:01:00.0", "0000:00:01.0"]);
    assert_eq!(block.nvme.get().unwrap()[0].model.text(), Some("Fast 1T"));
}

#[test]
fn drives_behind_an_expander_share_a_port() {
    let host_dir = "/sys/devices/pci0000:00/0000:01:00.0/host0";
    let disk = |n: u32| {
        format!(
            "{host_dir}/port-0:0/expander-0:0/port-0:0:{n}/end_device-0:0:{n}/target0:0:{n}/0:0:{n}:0/block/sd{n}"
        )
    };
    let mut host = FakeHost::new(&[
        ("/sys/class/sas_phy/phy-0:0/negotiated_linkrate", "6.0 Gbit\n"),
        ("/sys/class/sas_phy/phy-0:0/maximum_linkrate", "12.0 Gbit\n"),
    ]);
    for lane in 0..4 {
        host = host.file(&format!("{host_dir}/port-0:0/phy-0:{lane}"), "");
    }
    for n in 0..3 {
        host = host.file(&format!("{}/size", disk(n)), "8\n").link(&format!("/sys/block/sd{n}"), &disk(n));
    }
    let block = observed(&host);
    let link = block.disk("sd2").unwrap().sas.as_ref().unwrap();
    assert_eq!(link.port.name, "port-0:0:2");
    assert_eq!(link.port.lanes.value(), Some(0));
    let shared = link.host_port.as_ref().unwrap();
    assert_eq!((shared.lanes.value(), shared.speed_mbps.value()), (Some(4), Some(6_000)));
}

#[test]
fn an_empty_world_has_no_disks() {
    let block = observed(&FakeHost::new(&[]));
    assert!(block.disks.is_absent());
    assert!(block.mount_of("/").is_none());
}

/// Counts what is read.
struct Counting(FakeHost, std::sync::atomic::AtomicUsize);

impl zenkai_host::Host for Counting {
    fn read(&self, path: &str) -> std::io::Result<Vec<u8>> {
        self.1.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        self.0.read(path)
    }

    fn list(&self, dir: &str) -> std::io::Result<Vec<zenkai_host::DirEntry>> {
        self.1.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        self.0.list(dir)
    }

    fn resolve(&self, path: &str) -> std::io::Result<String> {
        self.1.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        self.0.resolve(path)
    }

    fn query(&self, query: &zenkai_host::Query) -> std::io::Result<Reply> {
        self.0.query(query)
    }
}

#[test]
fn every_further_disk_costs_the_same() {
    let asked = |disks: usize| {
        let adapter = "/sys/devices/pci0000:00/0000:00:01.0/0000:01:00.0";
        let host = (0..disks).fold(FakeHost::new(&[]), |host, n| {
            let port = format!("{adapter}/host0/port-0:0/expander-0:0/port-0:0:{n}");
            let disk = format!("{port}/end_device-0:0:{n}/target0:0:{n}/0:0:{n}:0/block/sd{n}");
            host.file(&format!("{disk}/size"), "8\n").link(&format!("/sys/block/sd{n}"), &disk)
        });
        let counting = Counting(host, std::sync::atomic::AtomicUsize::new(0));
        let reader = Reader::new(&counting);
        observe(&reader, &Paths::new(&reader));
        counting.1.into_inner()
    };
    let (one, two, twenty) = (asked(1), asked(2), asked(20));
    assert_eq!(twenty - two, 18 * (two - one));
    assert!(two - one <= 45, "{} reads for a disk", two - one);
}
