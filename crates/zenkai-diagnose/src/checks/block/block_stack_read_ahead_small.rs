//! An array or volume that reads ahead less than the disks below it.

use zenkai_facts::{
    Facts,
    block::{Disk, Kind},
};
use zenkai_tune::Setting;

use super::shared::mounted_disks;
use crate::{
    Check, Context, Evidence, Finding, Impact, Judgement, Outcome, Remedy, Subject, Subsystem, need,
};

/// See the explanation.
pub(super) static CHECK: Check = Check {
    id: "block-stack-read-ahead-small",
    subsystem: Subsystem::Block,
    summary: "a raised read-ahead does not reach the file system",
    impact: Impact::Small,
    effect: "estimate: sequential reads run with the top device's small value, as if nothing had been raised",
    risk: "more read-ahead wastes memory on random reads",
    source: "https://docs.kernel.org/admin-guide/abi-stable.html",
    explanation: include_str!("block_stack_read_ahead_small.md"),
    run,
};

fn run(facts: &Facts, _context: Context) -> Judgement {
    if let Err(outcome) = need(&facts.block.mounts) {
        return outcome.into();
    }
    let stacked = mounted_disks(facts).into_iter().filter(|disk| matches!(disk.kind, Kind::Md | Kind::Dm));
    Judgement::each(stacked, |disk| judge(facts, disk))
}

fn judge(facts: &Facts, disk: &Disk) -> Result<Option<Finding>, Outcome> {
    let top = *need(&disk.queue.read_ahead_kb)?;
    let members = facts.block.physical_below(&disk.name);
    let lowest = members
        .iter()
        .filter_map(|member| member.queue.read_ahead_kb.value().map(|kb| (kb, &member.queue.read_ahead_kb)));
    let Some((below, reading)) = lowest.min_by_key(|(kb, _)| *kb) else {
        return Err(Outcome::not_applicable("the disks below are not known"));
    };
    // Members at the default were never raised; and LVM chooses up to half of what large members have by itself.
    if below <= 128 || top.saturating_mul(4) > below {
        return Ok(None);
    }
    Ok(Some(
        Finding::new(
            Subject::device(&disk.name),
            format!("reads {top} KiB ahead while the disks below are set to {below} KiB"),
        )
        .with(Evidence::of(&disk.queue.read_ahead_kb).expected(below))
        .with(Evidence::of(reading))
        .remedy(Remedy::Set(vec![Setting::attribute(disk.queue.read_ahead_kb.source(), below.to_string())])),
    ))
}

#[cfg(test)]
mod tests {
    use super::super::shared::worlds::{MD, SATA, add, disk, judged, mounted};

    #[test]
    fn only_when_members_were_raised() {
        let fires = |top: &str, member: &str| {
            let host = disk(SATA, &[("queue/read_ahead_kb", member)]);
            let host = add(host, MD, &[("queue/read_ahead_kb", top), ("dev", "9:0"), ("slaves/sda/x", "")]);
            let host = mounted(host, "22 1 9:0 / / rw,relatime - xfs /dev/md0 rw");
            !judged(&super::CHECK, host, None).findings.is_empty()
        };
        assert!(fires("128", "4096"));
        assert!(!fires("4096", "4096"));
        assert!(!fires("128", "128"));
        assert!(!fires("4096", "128"));
    }
}
