//! Reading a file writes to the disk.

use zenkai_facts::{Facts, block::Mount};

use super::shared::each_writable_mount;
use crate::{Check, Context, Evidence, Finding, Impact, Judgement, Remedy, Subject, Subsystem};

/// See the explanation.
pub(super) static CHECK: Check = Check {
    id: "mount-strictatime",
    subsystem: Subsystem::Block,
    summary: "every read of a file writes its access time",
    impact: Impact::Small,
    effect: "estimate: reads cause writes; felt with many small files",
    risk: "programs that need exact access times (few) lose them",
    source: "https://man7.org/linux/man-pages/man8/mount.8.html",
    explanation: include_str!("mount_strictatime.md"),
    run,
};

/// File systems that keep access times on disk; others do not, or show their options otherwise.
const KEEPS_TIMES: [&str; 7] = ["ext2", "ext3", "ext4", "xfs", "btrfs", "f2fs", "jfs"];

fn run(facts: &Facts, _context: Context) -> Judgement {
    each_writable_mount(facts, |mount| Ok(judge(mount)))
}

fn judge(mount: &Mount) -> Option<Finding> {
    // The kernel shows `relatime` and `noatime` and says nothing for the strict way (fs/proc_namespace.c).
    let relaxed = ["relatime", "noatime", "lazytime"].iter().any(|option| mount.has_option(option));
    if relaxed || !KEEPS_TIMES.contains(&mount.fs_type.as_str()) {
        return None;
    }
    Some(
        Finding::new(
            Subject::device(&mount.target),
            "mounted with strictatime: reading a file writes to the disk",
        )
        .with(
            Evidence::derived(format!("/proc/self/mountinfo {}", mount.target), mount.options.join(","))
                .expected("relatime or noatime among them"),
        )
        .remedy(Remedy::Do(format!(
            "mount -o remount,relatime {}, and take strictatime out of /etc/fstab",
            mount.target
        ))),
    )
}

#[cfg(test)]
mod tests {
    use super::super::shared::worlds::{SATA, disk, judged, mounted};

    #[test]
    fn what_is_not_said_counts() {
        let fires = |options: &str, fs: &str| {
            let host = disk(SATA, &[("dev", "8:0")]);
            let host = mounted(host, &format!("22 1 8:0 / / {options} - {fs} /dev/sda rw"));
            !judged(&super::CHECK, host, None).findings.is_empty()
        };
        assert!(fires("rw", "ext4"));
        assert!(!fires("rw,relatime", "ext4"));
        assert!(!fires("rw,noatime", "xfs"));
        assert!(!fires("ro", "ext4"));
        assert!(!fires("rw", "vfat"));
        let inside = mounted(disk(SATA, &[("dev", "8:0")]), "22 1 8:0 /x /etc/hosts rw - ext4 /dev/sda rw");
        assert!(judged(&super::CHECK, inside, None).findings.is_empty(), "the host's, seen in a container");
    }
}
