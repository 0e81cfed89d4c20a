//! An array that misses members.

use zenkai_facts::{
    Facts,
    block::{Disk, Md},
};

use super::shared::{each_array, has_parity};
use crate::{
    Check, Context, Evidence, Finding, Impact, Judgement, Outcome, Remedy, Subject, Subsystem, need,
};

/// See the explanation.
pub(super) static CHECK: Check = Check {
    id: "md-degraded",
    subsystem: Subsystem::Block,
    summary: "a software RAID array misses members",
    impact: Impact::Moderate,
    effect: "with parity, what was on the missing member is computed from all others at every read (estimate: half the \
             read speed or less); a mirror loses one reader",
    risk: "the rebuild onto a new member is itself a load",
    source: "https://docs.kernel.org/admin-guide/md.html",
    explanation: include_str!("md_degraded.md"),
    run,
};

fn run(facts: &Facts, _context: Context) -> Judgement {
    each_array(facts, judge)
}

fn judge(disk: &Disk, md: &Md) -> Result<Option<Finding>, Outcome> {
    let level = need(&md.level)?;
    if !matches!(level.as_str(), "raid1" | "raid4" | "raid5" | "raid6" | "raid10") {
        return Err(Outcome::not_applicable("arrays of this level have no redundancy to lose"));
    }
    let missing = *need(&md.degraded)?;
    if missing == 0 {
        return Ok(None);
    }
    let wanted = md.raid_disks.value().map(|count| format!(" of {count}")).unwrap_or_default();
    let rebuilding = matches!(md.sync_action.text(), Some("recover" | "resync"));
    let remedy = if rebuilding {
        "the rebuild is running; wait for it"
    } else {
        "replace the missing member: mdadm --manage --add"
    };
    let impact = if has_parity(md) == Some(true) { Impact::Large } else { Impact::Moderate };
    Ok(Some(
        Finding::new(Subject::device(&disk.name), format!("{level}: {missing}{wanted} members are missing"))
            .with(Evidence::of(&md.degraded).expected(0))
            .with(Evidence::of(&md.level))
            .with(Evidence::of(&md.sync_action))
            .impact(impact)
            .remedy(Remedy::Do(remedy.to_owned()))
            .because(format!("a {level} array is degraded")),
    ))
}

#[cfg(test)]
mod tests {
    use super::super::shared::worlds::{MD, fires, on};

    #[test]
    fn only_arrays_that_miss_something() {
        let files =
            |level, degraded| [("md/level", level), ("md/degraded", degraded), ("md/raid_disks", "3")];
        assert!(fires(&super::CHECK, MD, &files("raid5", "1")));
        assert!(!fires(&super::CHECK, MD, &files("raid5", "0")));
        let striped = on(&super::CHECK, MD, &[("md/level", "raid0")], None);
        assert!(striped.not_applicable.is_some() && striped.unjudged.is_empty());
    }
}
