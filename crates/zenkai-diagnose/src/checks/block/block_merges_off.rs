//! A spinning disk whose neighbouring requests are not joined.

use zenkai_facts::{Facts, block::Disk};
use zenkai_tune::Setting;

use super::shared::{each_disk, is_spinning_drive};
use crate::{
    Check, Context, Evidence, Finding, Impact, Judgement, Outcome, Remedy, Subject, Subsystem, need,
};

/// See the explanation.
pub(super) static CHECK: Check = Check {
    id: "block-merges-off",
    subsystem: Subsystem::Block,
    summary: "neighbouring requests to a spinning disk are not joined",
    impact: Impact::Small,
    effect: "estimate: small sequential writes reach the disk one by one",
    risk: "none known",
    source: "https://docs.kernel.org/admin-guide/abi-stable.html",
    explanation: include_str!("block_merges_off.md"),
    run,
};

fn run(facts: &Facts, _context: Context) -> Judgement {
    // On flash it is a deliberate saving of CPU time.
    each_disk(facts, |disk| is_spinning_drive(disk).then(|| judge(disk)))
}

fn judge(disk: &Disk) -> Result<Option<Finding>, Outcome> {
    let nomerges = *need(&disk.queue.nomerges)?;
    if nomerges < 2 {
        return Ok(None);
    }
    Ok(Some(
        Finding::new(Subject::device(&disk.name), "requests to a spinning disk are never merged")
            .with(Evidence::of(&disk.queue.nomerges).expected(0))
            .with(Evidence::of(&disk.queue.rotational))
            .remedy(Remedy::Set(vec![Setting::attribute(disk.queue.nomerges.source(), "0")])),
    ))
}

#[cfg(test)]
mod tests {
    use super::super::shared::worlds::{NVME, SATA, fires};

    #[test]
    fn only_platters() {
        let files = |rotational, nomerges| [("queue/rotational", rotational), ("queue/nomerges", nomerges)];
        assert!(fires(&super::CHECK, SATA, &files("1", "2")));
        assert!(!fires(&super::CHECK, SATA, &files("1", "0")));
        assert!(!fires(&super::CHECK, NVME, &files("0", "2")));
    }
}
