//! A file system that writes everything at once.

use zenkai_facts::{Facts, block::Mount};

use super::shared::each_writable_mount;
use crate::{Check, Context, Evidence, Finding, Impact, Judgement, Remedy, Subject, Subsystem};

/// See the explanation.
pub(super) static CHECK: Check = Check {
    id: "mount-sync",
    subsystem: Subsystem::Block,
    summary: "a file system is mounted so that every write waits for the disk",
    impact: Impact::Large,
    effect: "estimate: each write costs a trip to the disk, ten times slower or more for small ones",
    risk: "programs that relied on it must call fsync themselves",
    source: "https://man7.org/linux/man-pages/man8/mount.8.html",
    explanation: include_str!("mount_sync.md"),
    run,
};

fn run(facts: &Facts, _context: Context) -> Judgement {
    each_writable_mount(facts, |mount| Ok(judge(mount)))
}

fn judge(mount: &Mount) -> Option<Finding> {
    // Boot partitions and memory cards are pulled out and cut off; there the option is caution.
    let careful =
        matches!(mount.fs_type.as_str(), "vfat" | "msdos" | "exfat") || mount.target.starts_with("/boot");
    if careful || !mount.has_option("sync") {
        return None;
    }
    Some(
        Finding::new(Subject::device(&mount.target), "mounted with sync: every write waits for the disk")
            .with(Evidence::derived(
                format!("/proc/self/mountinfo {}", mount.target),
                mount.fs_options.join(","),
            ))
            .remedy(Remedy::Do(format!(
                "mount -o remount,async {}, and take the option out of /etc/fstab",
                mount.target
            )))
            .because("a file system is mounted with sync"),
    )
}

#[cfg(test)]
mod tests {
    use super::super::shared::worlds::{SATA, disk, judged, mounted};

    #[test]
    fn the_option_itself() {
        let fires = |line: &str| {
            let host = mounted(disk(SATA, &[("dev", "8:0")]), line);
            !judged(&super::CHECK, host, None).findings.is_empty()
        };
        assert!(fires("22 1 8:0 / /srv rw,relatime - ext4 /dev/sda rw,sync"));
        assert!(!fires("22 1 8:0 / /srv rw,relatime - ext4 /dev/sda rw,async"));
        assert!(!fires("22 1 8:0 / /srv ro,relatime - ext4 /dev/sda ro,sync"));
        assert!(!fires("22 1 8:0 / /boot/efi rw,relatime - vfat /dev/sda rw,sync"));
    }
}
