//! A file system with next to nothing left.

use zenkai_facts::{Facts, block::Mount};

use super::shared::each_writable_mount;
use crate::{
    Check, Context, Evidence, Finding, Impact, Judgement, Outcome, Remedy, Subject, Subsystem, need,
};

/// See the explanation.
pub(super) static CHECK: Check = Check {
    id: "mount-nearly-full",
    subsystem: Subsystem::Block,
    summary: "a file system is nearly full",
    impact: Impact::Moderate,
    effect: "estimate: files fall to pieces, flash has no room to work in, and writes fail at the end",
    risk: "deleting is final",
    source: "https://man7.org/linux/man-pages/man2/statfs.2.html",
    explanation: include_str!("mount_nearly_full.md"),
    run,
};

/// A share of what is left below which a file system is nearly full …
const SHARE: u64 = 20;
/// … unless this much is left all the same.
const PLENTY_BYTES: u64 = 50 << 30;
/// Boot partitions are made to fit.
const SMALL_BYTES: u64 = 4 << 30;

fn run(facts: &Facts, _context: Context) -> Judgement {
    each_writable_mount(facts, judge)
}

fn judge(mount: &Mount) -> Result<Option<Finding>, Outcome> {
    let usage = *need(&mount.usage)?;
    if usage.size_bytes < SMALL_BYTES {
        return Ok(None);
    }
    let space = usage.available_bytes < PLENTY_BYTES
        && usage.available_bytes.saturating_mul(SHARE) < usage.size_bytes;
    let files = usage.files > 0 && usage.files_free.saturating_mul(SHARE * 2) < usage.files;
    let what = match (space, files) {
        (true, _) => format!("{} of {} GiB are left", usage.available_bytes >> 30, usage.size_bytes >> 30),
        (_, true) => format!("{} of {} inodes are left", usage.files_free, usage.files),
        _ => return Ok(None),
    };
    let left = usage.available_bytes.saturating_mul(100) / usage.size_bytes.max(1);
    Ok(Some(
        Finding::new(Subject::device(&mount.target), what)
            .with(
                Evidence::derived(mount.usage.source(), format!("{left} % of the space is free"))
                    .expected("5 % or more"),
            )
            .remedy(Remedy::Do("make room: delete, move, or enlarge the file system".into()))
            .because("a file system is nearly full"),
    ))
}

#[cfg(test)]
mod tests {
    use zenkai_host::{Query, Reply};

    use super::super::shared::worlds::{SATA, disk, judged, mounted};

    const GIB: u64 = 1 << 30;

    fn fires(size: u64, available: u64, files: u64, files_free: u64) -> bool {
        let numbers = [
            ("block_size_bytes", 1),
            ("blocks", size),
            ("blocks_available", available),
            ("files", files),
            ("files_free", files_free),
        ];
        let reply = Reply::Named(numbers.map(|(name, value)| (name.to_owned(), value)).to_vec());
        let host = mounted(disk(SATA, &[("dev", "8:0")]), "22 1 8:0 / / rw,relatime - ext4 /dev/sda rw")
            .reply(&Query::Statfs { path: "/".into() }, reply);
        !judged(&super::CHECK, host, None).findings.is_empty()
    }

    #[test]
    fn little_in_share_and_in_bytes() {
        assert!(fires(100 * GIB, 4 * GIB, 0, 0));
        assert!(!fires(100 * GIB, 6 * GIB, 0, 0));
        assert!(!fires(10_000 * GIB, 400 * GIB, 0, 0), "much is left all the same");
        assert!(!fires(GIB, 0, 0, 0), "a boot partition");
        assert!(fires(100 * GIB, 50 * GIB, 1_000_000, 1_000));
        assert!(!fires(100 * GIB, 50 * GIB, 0, 0), "inodes made as needed");
    }
}
