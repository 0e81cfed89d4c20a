//! Mounted file systems (`Documentation/filesystems/proc.rst`, section 3.5).

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;
use zenkai_host::{Query, unescape_mount};

use super::Block;
use crate::{Observed, Reader, Reason};

/// File systems that the kernel makes up, or that stand for memory: nothing is stored there.
const WITHOUT_DATA: [&str; 31] = [
    "autofs",
    "binder",
    "binfmt_misc",
    "bpf",
    "cgroup",
    "cgroup2",
    "configfs",
    "debugfs",
    "devpts",
    "devtmpfs",
    "efivarfs",
    "fuse.gvfsd-fuse",
    "fuse.lxcfs",
    "fusectl",
    "hugetlbfs",
    "mqueue",
    "none",
    "nsfs",
    "proc",
    "pstore",
    "ramfs",
    "resctrl",
    "rpc_pipefs",
    "securityfs",
    "selinuxfs",
    "squashfs",
    "sysfs",
    "tmpfs",
    "tracefs",
    "nfsd",
    "xenfs",
];

/// A mounted file system.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Mount {
    /// Where it is mounted.
    pub target: String,
    /// What is mounted, as it was named: `/dev/mapper/vg-lv`, `server:/export`.
    pub source: String,
    /// Which directory of the file system is mounted; `/` unless it is a bind mount or a subvolume.
    pub root: String,
    /// Type, such as `xfs`.
    pub fs_type: String,
    /// Major and minor number of the file system.
    pub device_number: String,
    /// Options of this mount, such as `noatime`.
    pub options: Vec<String>,
    /// Options of the file system, such as `discard`.
    pub fs_options: Vec<String>,
    /// The disk, partition, array or volume it is on; none when it is not on a block device we know.
    pub device: Option<String>,
    /// The physical disks below it.
    pub root_disks: Vec<String>,
    /// How full it is; only asked of file systems on block devices, where the answer cannot hang.
    pub usage: Observed<Usage>,
}

impl Mount {
    /// Whether an option is set exactly so, for the mount or the file system.
    pub fn has_option(&self, option: &str) -> bool {
        self.options.iter().chain(&self.fs_options).any(|set| set == option)
    }

    /// The value of an option `name=value`.
    pub fn option_value(&self, name: &str) -> Option<&str> {
        let value = |option: &'_ String| option.strip_prefix(name)?.strip_prefix('=').map(str::len);
        let found = self.options.iter().chain(&self.fs_options).find(|option| value(option).is_some())?;
        found.split_once('=').map(|(_, value)| value)
    }

    /// Whether it can be written to at all.
    pub fn is_read_only(&self) -> bool {
        self.has_option("ro")
    }
}

/// How full a file system is (`statfs(2)`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Usage {
    /// Size of the file system.
    pub size_bytes: u64,
    /// What ordinary users can still write.
    pub available_bytes: u64,
    /// Inodes in all; 0 where they are made as needed.
    pub files: u64,
    /// Inodes left.
    pub files_free: u64,
}

/// A directory where well-known services keep their data.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct DataDirectory {
    /// Such as `/var/lib/mysql`.
    pub path: String,
    /// The mount it is on.
    pub mount: Option<String>,
    /// The physical disks below it.
    pub root_disks: Vec<String>,
}

pub(super) fn observe(reader: &Reader<'_>) -> Observed<Vec<Mount>> {
    let source = "/proc/self/mountinfo";
    reader.bytes(source).map(|content| {
        let mut usages: BTreeMap<String, Observed<Usage>> = BTreeMap::new();
        let mut mounts = parse(&content);
        for mount in &mut mounts {
            if !mount.source.starts_with("/dev/") || mount.fs_type.starts_with("fuse") {
                continue;
            }
            let known = usages.get(&mount.device_number).cloned();
            mount.usage = known.unwrap_or_else(|| usage(reader, &mount.target));
            usages.insert(mount.device_number.clone(), mount.usage.clone());
        }
        mounts
    })
}

fn usage(reader: &Reader<'_>, target: &str) -> Observed<Usage> {
    reader.query(&Query::Statfs { path: target.to_owned() }, |reply| {
        let block = reply.named("block_size_bytes")?;
        Some(Usage {
            size_bytes: reply.named("blocks")?.saturating_mul(block),
            available_bytes: reply.named("blocks_available")?.saturating_mul(block),
            files: reply.named("files")?,
            files_free: reply.named("files_free")?,
        })
    })
}

/// The lines that name a file system with data. A line that is not UTF-8 or too short is skipped: targets are
/// chosen by users.
fn parse(content: &[u8]) -> Vec<Mount> {
    let lines = content.split(|byte| *byte == b'\n');
    let mounts = lines.filter_map(|line| parse_line(std::str::from_utf8(line).ok()?));
    mounts.filter(|mount| holds_data(&mount.fs_type, &mount.target)).collect()
}

/// Containers bring an overlay each; only the one we live in says something about the machine.
fn holds_data(fs_type: &str, target: &str) -> bool {
    !WITHOUT_DATA.contains(&fs_type) && (fs_type != "overlay" || target == "/")
}

/// `36 35 98:0 /mnt1 /mnt2 rw,noatime master:1 - ext3 /dev/root rw,errors=continue`; the optional fields end with
/// a lone `-`.
fn parse_line(line: &str) -> Option<Mount> {
    let (mount, fs) = line.split_once(" - ")?;
    let mut mount = mount.split(' ').skip(2);
    let mut fs = fs.split(' ');
    let list = |text: &str| text.split(',').filter(|option| !option.is_empty()).map(unescape).collect();
    Some(Mount {
        device_number: mount.next()?.to_owned(),
        root: unescape(mount.next()?),
        target: unescape(mount.next()?),
        options: list(mount.next()?),
        fs_type: unescape(fs.next()?),
        source: unescape(fs.next()?),
        fs_options: list(fs.next().unwrap_or_default()),
        device: None,
        root_disks: Vec::new(),
        usage: Observed::unavailable(
            "statfs",
            Reason::NotApplicable("it is not on a block device of this machine".to_owned()),
        ),
    })
}

fn unescape(text: &str) -> String {
    String::from_utf8_lossy(&unescape_mount(text)).into_owned()
}

/// Gives mounts and data directories the disks they are on.
pub(super) fn join_disks(block: &mut Block) {
    let names = Names::of(block);
    let joined: Vec<(Option<String>, Vec<String>)> = block
        .mounts
        .get()
        .into_iter()
        .flatten()
        .map(|mount| {
            let device = names.device_of(mount);
            let below = device.iter().flat_map(|name| block.physical_below(name));
            let disks = below.map(|disk| disk.name.clone()).collect();
            (device, disks)
        })
        .collect();
    block.mounts = std::mem::replace(&mut block.mounts, Observed::known("", Vec::new())).map(|mut mounts| {
        for (mount, (device, disks)) in mounts.iter_mut().zip(joined) {
            mount.device = device;
            mount.root_disks = disks;
        }
        mounts
    });
    let mounts = block.mounts.get().cloned().unwrap_or_default();
    block.data_directories = std::mem::replace(&mut block.data_directories, Observed::known("", Vec::new()))
        .map(|mut dirs| {
            for dir in &mut dirs {
                if let Some(mount) = holding(&mounts, &dir.path) {
                    dir.mount = Some(mount.target.clone());
                    dir.root_disks.clone_from(&mount.root_disks);
                }
            }
            dirs
        });
}

/// The mount a path is on.
pub(super) fn holding<'m>(mounts: &'m [Mount], path: &str) -> Option<&'m Mount> {
    let covers = |mount: &&Mount| {
        let target = mount.target.trim_end_matches('/');
        path.strip_prefix(target).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    };
    // `max_by_key` gives the last of equal ones, which is the one mounted on top.
    mounts.iter().filter(covers).max_by_key(|mount| mount.target.trim_end_matches('/').len())
}

/// The ways a mount may name its device.
struct Names {
    by_number: BTreeMap<String, String>,
    by_path: BTreeMap<String, String>,
}

impl Names {
    fn of(block: &Block) -> Self {
        let mut names = Self { by_number: BTreeMap::new(), by_path: BTreeMap::new() };
        for disk in block.disks.get().into_iter().flatten() {
            names.add(&disk.name, &disk.device_number);
            if let Some(mapped) = disk.dm.as_ref().and_then(|dm| dm.name.text()) {
                names.by_path.insert(format!("/dev/mapper/{mapped}"), disk.name.clone());
            }
            for partition in &disk.partitions {
                names.add(&partition.name, &partition.device_number);
            }
        }
        names
    }

    fn add(&mut self, name: &str, number: &Observed<String>) {
        self.by_path.insert(format!("/dev/{name}"), name.to_owned());
        if let Some(number) = number.text() {
            self.by_number.insert(number.to_owned(), name.to_owned());
        }
    }

    /// By number, or by source for file systems with a made-up number (btrfs, overlay on a device).
    fn device_of(&self, mount: &Mount) -> Option<String> {
        self.by_number.get(&mount.device_number).or_else(|| self.by_path.get(&mount.source)).cloned()
    }
}

/// Names below `/var/lib` that say what the machine does.
const DATA_DIRECTORIES: [&str; 22] = [
    "cassandra",
    "ceph",
    "clickhouse",
    "containerd",
    "containers",
    "docker",
    "elasticsearch",
    "etcd",
    "influxdb",
    "kafka",
    "kubelet",
    "libvirt",
    "mongo",
    "mongodb",
    "mysql",
    "opensearch",
    "pgsql",
    "postgresql",
    "prometheus",
    "rabbitmq",
    "redis",
    "scylla",
];

pub(super) fn data_directories(reader: &Reader<'_>) -> Observed<Vec<DataDirectory>> {
    const DIR: &str = "/var/lib";
    reader.entries(DIR).map(|entries| {
        let found: BTreeSet<&str> = entries.iter().map(|entry| entry.name.as_str()).collect();
        let known = DATA_DIRECTORIES.iter().filter(|name| found.contains(*name));
        known
            .map(|name| DataDirectory { path: format!("{DIR}/{name}"), mount: None, root_disks: Vec::new() })
            .collect()
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn lines() {
        let content = b"22 1 8:2 / / rw,noatime shared:1 - ext4 /dev/sda2 rw,discard\n\
            23 22 0:21 / /proc rw - proc proc rw\n\
            24 22 0:40 /@home /with\\040blank rw,relatime - btrfs /dev/sdb rw,subvol=/@home\n\
            25 22 0:41 / /var/lib/docker/overlay2/x rw - overlay overlay rw\n\
            26 22 0:50 / /nfs rw - nfs4 server:/e rw\n\
            \xff\xfe\nbroken\n27 22 8:3\n";
        let mounts = parse(content);
        let targets: Vec<&str> = mounts.iter().map(|mount| mount.target.as_str()).collect();
        assert_eq!(targets, ["/", "/with blank", "/nfs"]);
        assert!(mounts[0].has_option("discard") && mounts[0].has_option("noatime"));
        assert_eq!(mounts[1].option_value("subvol"), Some("/@home"));
        assert_eq!(mounts[1].option_value("sub"), None);
        assert_eq!(holding(&mounts, "/with blank/x").unwrap().target, "/with blank");
        assert_eq!(holding(&mounts, "/with blankx").unwrap().target, "/");
        assert_eq!(unescape("a\\134b\\04"), "a\\b\\04");
        assert_eq!(unescape("\\777"), "\\777");
    }

    proptest! {
        #[test]
        fn never_panics(content in proptest::collection::vec(any::<u8>(), 0..200), line in "[0-9: /,=\\\\-]{0,80}") {
            let _ = (parse(&content), parse_line(&line), unescape(&line));
        }
    }
}
