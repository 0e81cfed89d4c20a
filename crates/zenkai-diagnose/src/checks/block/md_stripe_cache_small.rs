//! A parity array with the smallest usual stripe cache.

use zenkai_facts::{
    Facts,
    block::{Disk, Md},
};
use zenkai_tune::Setting;

use super::shared::{each_array, has_parity};
use crate::{
    Check, Context, Evidence, Finding, Impact, Judgement, Outcome, Remedy, Subject, Subsystem, Workload, need,
};

/// See the explanation.
pub(super) static CHECK: Check = Check {
    id: "md-stripe-cache-small",
    subsystem: Subsystem::Block,
    summary: "a parity array collects writes in a very small cache",
    impact: Impact::Depends,
    effect: "estimate: up to 2 to 4 times the write speed for streams that fill whole stripes; nothing for reads",
    risk: "memory: one page per member and entry",
    source: "https://docs.kernel.org/admin-guide/md.html",
    explanation: include_str!("md_stripe_cache_small.md"),
    run,
};

/// The kernel's default (`NR_STRIPES` in drivers/md/raid5.h).
const DEFAULT: u64 = 256;
const BETTER: u64 = 4096;

fn run(facts: &Facts, context: Context) -> Judgement {
    each_array(facts, |disk, md| judge(disk, md, context))
}

fn judge(disk: &Disk, md: &Md, context: Context) -> Result<Option<Finding>, Outcome> {
    need(&md.level)?;
    if has_parity(md) != Some(true) {
        return Err(Outcome::not_applicable("only parity arrays have a stripe cache"));
    }
    let entries = *need(&md.stripe_cache_size)?;
    if entries > DEFAULT {
        return Ok(None);
    }
    // One page of 4 KiB per member and entry.
    let memory = md.raid_disks.value().map_or(String::new(), |members| {
        format!(
            " ({BETTER} would take {} MiB of memory)",
            BETTER.saturating_mul(4).saturating_mul(members) / 1024
        )
    });
    let impact = if context.works_as(&[Workload::Storage]) { Impact::Moderate } else { Impact::Depends };
    Ok(Some(
        Finding::new(
            Subject::device(&disk.name),
            format!("writes are collected in {entries} entries, the default{memory}"),
        )
        .with(Evidence::of(&md.stripe_cache_size).expected(format!("{BETTER} for streaming writes")))
        .with(Evidence::of(&md.level))
        .impact(impact)
        .remedy(Remedy::Set(vec![Setting::attribute(md.stripe_cache_size.source(), BETTER.to_string())])),
    ))
}

#[cfg(test)]
mod tests {
    use super::super::shared::worlds::{MD, on};
    use crate::{Impact, Workload};

    #[test]
    fn parity_arrays_at_the_default() {
        let judged = |level, entries, workload| {
            let files = [("md/level", level), ("md/stripe_cache_size", entries), ("md/raid_disks", "8")];
            on(&super::CHECK, MD, &files, workload).findings
        };
        assert_eq!(judged("raid6", "256", None)[0].impact, Some(Impact::Depends));
        assert!(judged("raid6", "256", None)[0].what.contains("128 MiB"));
        assert_eq!(judged("raid5", "256", Some(Workload::Storage))[0].impact, Some(Impact::Moderate));
        assert!(judged("raid5", "4096", None).is_empty());
        assert!(judged("raid1", "256", None).is_empty());
    }
}
