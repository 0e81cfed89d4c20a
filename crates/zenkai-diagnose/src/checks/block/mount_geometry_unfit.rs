//! A file system that does not know the stripes of the parity array below it.

use zenkai_facts::{
    Facts,
    block::{Md, Mount},
};

use super::shared::{each_writable_mount, has_parity};
use crate::{
    Check, Context, Evidence, Finding, Impact, Judgement, Outcome, Remedy, Subject, Subsystem, need,
};

/// See the explanation.
pub(super) static CHECK: Check = Check {
    id: "mount-geometry-unfit",
    subsystem: Subsystem::Block,
    summary: "a file system does not know the stripes of the parity array below it",
    impact: Impact::Small,
    effect: "estimate: 10 to 40 % of large writes on parity arrays, which read old data when a stripe is not whole",
    risk: "wrong values are worse than none",
    source: "https://man7.org/linux/man-pages/man5/ext4.5.html",
    explanation: include_str!("mount_geometry_unfit.md"),
    run,
};

fn run(facts: &Facts, _context: Context) -> Judgement {
    each_writable_mount(facts, |mount| judge(facts, mount))
}

fn judge(facts: &Facts, mount: &Mount) -> Result<Option<Finding>, Outcome> {
    // Only a file system directly on the array: volumes in between move the start.
    let array =
        mount.device.as_deref().and_then(|name| facts.block.disk(name)).and_then(|disk| disk.md.as_ref());
    let Some(md) = array.filter(|md| has_parity(md) == Some(true)) else {
        return Err(Outcome::not_applicable("it is not directly on a parity array"));
    };
    let chunk = *need(&md.chunk_bytes)?;
    let Some(told) = told_bytes(mount, md)? else { return Ok(None) };
    if told == chunk {
        return Ok(None);
    }
    let what = match told {
        0 => format!("{} knows nothing of the array's chunks of {} KiB", mount.fs_type, chunk / 1024),
        _ => format!(
            "{} counts on chunks of {} KiB, the array has {} KiB",
            mount.fs_type,
            told / 1024,
            chunk / 1024
        ),
    };
    let remedy = match mount.fs_type.as_str() {
        "xfs" => format!("mount with sunit={},swidth=… in sectors (once; it is remembered)", chunk / 512),
        _ => "mount with stripe= set to the data of one whole stripe in blocks (tune2fs keeps it)".to_owned(),
    };
    Ok(Some(
        Finding::new(Subject::device(&mount.target), what)
            .with(Evidence::of(&md.chunk_bytes))
            .with(Evidence::derived(
                format!("/proc/self/mountinfo {}", mount.target),
                mount.fs_options.join(","),
            ))
            .remedy(Remedy::Do(remedy)),
    ))
}

/// The chunk that the file system counts on, in bytes; 0 when it counts on none, nothing when it does not say.
fn told_bytes(mount: &Mount, md: &Md) -> Result<Option<u64>, Outcome> {
    let number = |name: &str| mount.option_value(name).and_then(|value| value.parse::<u64>().ok());
    Ok(match mount.fs_type.as_str() {
        "xfs" => Some(number("sunit").unwrap_or(0).saturating_mul(512)),
        "ext4" => {
            let parity = if md.level.text() == Some("raid6") { 2 } else { 1 };
            let data = need(&md.raid_disks)?.saturating_sub(parity).max(1);
            // In blocks, which are 4 KiB on everything worth an array.
            Some(number("stripe").unwrap_or(0).saturating_mul(4096) / data)
        }
        _ => None,
    })
}

#[cfg(test)]
mod tests {
    use super::super::shared::worlds::{MD, disk, judged, mounted};

    fn fires(level: &str, fs: &str, options: &str) -> bool {
        let files =
            [("dev", "9:0"), ("md/level", level), ("md/chunk_size", "524288"), ("md/raid_disks", "4")];
        let host =
            mounted(disk(MD, &files), &format!("22 1 9:0 / / rw,relatime - {fs} /dev/md0 rw,{options}"));
        !judged(&super::CHECK, host, None).findings.is_empty()
    }

    #[test]
    fn stripes_must_be_known_and_right() {
        assert!(fires("raid5", "xfs", "noquota"));
        assert!(fires("raid5", "xfs", "sunit=128,swidth=384"));
        assert!(!fires("raid5", "xfs", "sunit=1024,swidth=3072"));
        assert!(fires("raid5", "ext4", "data=ordered"));
        assert!(!fires("raid5", "ext4", "stripe=384"));
        assert!(!fires("raid6", "ext4", "stripe=256"));
        assert!(!fires("raid1", "xfs", "noquota"));
        assert!(!fires("raid5", "btrfs", "ssd"));
    }
}
