//! Discards sent with every deletion.

use zenkai_facts::{Facts, block::Mount};

use super::shared::each_writable_mount;
use crate::{Check, Context, Evidence, Finding, Impact, Judgement, Remedy, Subject, Subsystem};

/// See the explanation.
pub(super) static CHECK: Check = Check {
    id: "mount-discard",
    subsystem: Subsystem::Block,
    summary: "deleting files sends discards to the drive at once",
    impact: Impact::Small,
    effect: "estimate: deletions and journal commits wait for the drive's discards; how long is the drive's affair",
    risk: "freed blocks reach the drive only once a week",
    source: "https://man7.org/linux/man-pages/man8/fstrim.8.html",
    explanation: include_str!("mount_discard.md"),
    run,
};

fn run(facts: &Facts, _context: Context) -> Judgement {
    each_writable_mount(facts, |mount| Ok(judge(facts, mount)))
}

fn judge(facts: &Facts, mount: &Mount) -> Option<Finding> {
    // The whole word: `nodiscard` and btrfs's `discard=async` are the opposite of a problem.
    if !mount.has_option("discard") || !matches!(mount.fs_type.as_str(), "ext4" | "xfs" | "btrfs" | "jfs") {
        return None;
    }
    // A hypervisor wants to know what is free, and answers at once.
    let disks: Vec<_> = mount.root_disks.iter().filter_map(|name| facts.block.disk(name)).collect();
    let real = !disks.is_empty()
        && disks
            .iter()
            .all(|disk| disk.is_real_hardware() && disk.queue.discard_granularity_bytes.get().is_some());
    if !real {
        return None;
    }
    Some(
        Finding::new(
            Subject::device(&mount.target),
            "mounted with discard: every deletion waits for the drive",
        )
        .with(Evidence::derived(format!("/proc/self/mountinfo {}", mount.target), mount.fs_options.join(",")))
        .remedy(Remedy::Do(format!(
            "enable fstrim.timer, then take discard out of /etc/fstab and mount -o remount,nodiscard {}",
            mount.target
        ))),
    )
}

#[cfg(test)]
mod tests {
    use super::super::shared::worlds::{SATA, VIRTIO, disk, judged, mounted};

    fn fires(place: &str, granularity: &str, fs: &str, options: &str) -> bool {
        let host = disk(place, &[("dev", "8:0"), ("queue/discard_granularity", granularity)]);
        let host = mounted(host, &format!("22 1 8:0 / / rw,relatime - {fs} /dev/x rw,{options}"));
        !judged(&super::CHECK, host, None).findings.is_empty()
    }

    #[test]
    fn the_word_itself_on_real_flash() {
        assert!(fires(SATA, "512", "ext4", "discard"));
        assert!(!fires(SATA, "512", "ext4", "nodiscard"), "the opposite");
        assert!(!fires(SATA, "512", "btrfs", "discard=async"), "done in the background");
        assert!(!fires(SATA, "0", "ext4", "discard"), "the drive cannot, so nothing is sent");
        assert!(!fires(VIRTIO, "4096", "ext4", "discard"), "a guest gives space back");
    }
}
