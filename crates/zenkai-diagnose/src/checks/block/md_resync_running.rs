//! An array that is busy with itself.

use zenkai_facts::{
    Facts,
    block::{Disk, Md},
};

use super::shared::each_array;
use crate::{
    Check, Context, Evidence, Finding, Impact, Judgement, Outcome, Remedy, Subject, Subsystem,
    need_or_not_applicable,
};

/// See the explanation.
pub(super) static CHECK: Check = Check {
    id: "md-resync-running",
    subsystem: Subsystem::Block,
    summary: "a software RAID array is being rebuilt or checked",
    impact: Impact::Moderate,
    effect: "a third to two thirds of the array's speed while it lasts (estimate); it yields to other I/O only down to \
             its minimum speed",
    risk: "slowing a rebuild down leaves the array without redundancy for longer",
    source: "https://docs.kernel.org/admin-guide/md.html",
    explanation: include_str!("md_resync_running.md"),
    run,
};

fn run(facts: &Facts, _context: Context) -> Judgement {
    each_array(facts, judge)
}

fn judge(disk: &Disk, md: &Md) -> Result<Option<Finding>, Outcome> {
    // Levels without redundancy have nothing to synchronise and no such file.
    let what = match need_or_not_applicable(&md.sync_action, "arrays of this level are never synchronised")?
        .as_str()
    {
        "resync" => "members are being made equal",
        "recover" => "a member is being rebuilt",
        "check" => "all data is being checked",
        "repair" => "all data is being checked and repaired",
        "reshape" => "the array is being reshaped",
        _ => return Ok(None),
    };
    let progress = md.sync_completed.value().map(|progress| format!(", {} % done", progress.percent()));
    let slower = format!("/sys/block/{}/md/sync_speed_max", disk.name);
    Ok(Some(
        Finding::new(Subject::device(&disk.name), format!("{what}{}", progress.unwrap_or_default()))
            .with(Evidence::of(&md.sync_action).expected("idle"))
            .with(Evidence::of(&md.sync_speed_kb_per_s))
            .remedy(Remedy::Do(format!("wait for it, or lower {slower} while users need the disks")))
            .because("an array is being synchronised"),
    ))
}

#[cfg(test)]
mod tests {
    use super::super::shared::worlds::{MD, fires, on};

    #[test]
    fn only_while_it_runs() {
        let check = [("md/sync_action", "check"), ("md/sync_completed", "25 / 100")];
        assert!(on(&super::CHECK, MD, &check, None).findings[0].what.contains("25 % done"));
        assert!(!fires(&super::CHECK, MD, &[("md/sync_action", "idle")]));
        assert!(!fires(&super::CHECK, MD, &[("md/sync_action", "frozen")]));
        assert!(on(&super::CHECK, MD, &[("md/level", "raid0")], None).unjudged.is_empty());
    }
}
