//! A parity array on flash whose parity is computed by one thread.

use zenkai_facts::{
    Facts,
    block::{Disk, Md},
};
use zenkai_tune::Setting;

use super::shared::{each_array, has_parity};
use crate::{
    Check, Context, Evidence, Finding, Impact, Judgement, Outcome, Remedy, Subject, Subsystem, need,
};

/// See the explanation.
pub(super) static CHECK: Check = Check {
    id: "md-single-writer",
    subsystem: Subsystem::Block,
    summary: "one thread handles all writes of a parity array on flash",
    impact: Impact::Depends,
    effect: "estimate: write speed grows with a few threads until the drives are the limit",
    risk: "more CPU time for writes",
    source: "https://github.com/torvalds/linux/blob/master/drivers/md/raid5.c",
    explanation: include_str!("md_single_writer.md"),
    run,
};

fn run(facts: &Facts, _context: Context) -> Judgement {
    each_array(facts, |disk, md| judge(facts, disk, md))
}

fn judge(facts: &Facts, disk: &Disk, md: &Md) -> Result<Option<Finding>, Outcome> {
    need(&md.level)?;
    if has_parity(md) != Some(true) {
        return Err(Outcome::not_applicable("only parity arrays have writer threads"));
    }
    let threads = *need(&md.group_thread_cnt)?;
    let members = facts.block.physical_below(&disk.name);
    let flash =
        !members.is_empty() && members.iter().all(|member| member.queue.rotational.value() == Some(false));
    // Spinning members are slower than any one thread.
    if threads > 0 || !flash {
        return Ok(None);
    }
    Ok(Some(
        Finding::new(
            Subject::device(&disk.name),
            format!("one thread computes parity for {} drives without platters", members.len()),
        )
        .with(Evidence::of(&md.group_thread_cnt).expected("4"))
        .with(Evidence::of(&md.level))
        .remedy(Remedy::Set(vec![Setting::attribute(md.group_thread_cnt.source(), "4")])),
    ))
}

#[cfg(test)]
mod tests {
    use super::super::shared::worlds::{MD, SATA, add, disk, judged};

    #[test]
    fn flash_members_only() {
        let fires = |rotational, threads| {
            let host = disk(SATA, &[("queue/rotational", rotational)]);
            let files = [("md/level", "raid5"), ("md/group_thread_cnt", threads), ("slaves/sda/x", "")];
            !judged(&super::CHECK, add(host, MD, &files), None).findings.is_empty()
        };
        assert!(fires("0", "0"));
        assert!(!fires("1", "0"));
        assert!(!fires("0", "4"));
    }
}
