//! Requests that are cut smaller than need be.

use zenkai_facts::{Facts, block::Disk};
use zenkai_tune::Setting;

use super::shared::each_disk;
use crate::{
    Check, Context, Evidence, Finding, Impact, Judgement, Outcome, Remedy, Subject, Subsystem, need,
};

/// See the explanation.
pub(super) static CHECK: Check = Check {
    id: "block-requests-small",
    subsystem: Subsystem::Block,
    summary: "large reads and writes are cut into small requests",
    impact: Impact::Small,
    effect: "estimate: more requests and interrupts for the same bytes",
    risk: "some old drives misbehave with large requests",
    source: "https://docs.kernel.org/admin-guide/abi-stable.html",
    explanation: include_str!("block_requests_small.md"),
    run,
};

/// The smallest default the kernel ever had for hardware that takes it.
const USUAL_KB: u64 = 512;

fn run(facts: &Facts, _context: Context) -> Judgement {
    each_disk(facts, |disk| disk.is_real_hardware().then(|| judge(disk)))
}

fn judge(disk: &Disk) -> Result<Option<Finding>, Outcome> {
    let now = *need(&disk.queue.max_sectors_kb)?;
    let possible = (*need(&disk.queue.max_hw_sectors_kb)?).min(USUAL_KB);
    // The kernel cuts at the size that a device calls its best (`sd_revalidate_disk` in drivers/scsi/sd.c).
    let chosen = disk.queue.optimal_io_size_bytes.value().is_some_and(|best| best / 1024 == now);
    if now == 0 || now >= possible || chosen {
        return Ok(None);
    }
    Ok(Some(
        Finding::new(
            Subject::device(&disk.name),
            format!("requests are cut at {now} KiB where the hardware takes {possible} KiB or more"),
        )
        .with(Evidence::of(&disk.queue.max_sectors_kb).expected(possible))
        .with(Evidence::of(&disk.queue.max_hw_sectors_kb))
        .remedy(Remedy::Set(vec![Setting::attribute(
            disk.queue.max_sectors_kb.source(),
            possible.to_string(),
        )])),
    ))
}

#[cfg(test)]
mod tests {
    use super::super::shared::worlds::{NVME, SATA, fires};

    #[test]
    fn below_every_default() {
        let files = |now, possible| [("queue/max_sectors_kb", now), ("queue/max_hw_sectors_kb", possible)];
        assert!(fires(&super::CHECK, SATA, &files("64", "32767")));
        assert!(!fires(&super::CHECK, SATA, &files("1280", "32767")), "the kernel's own choice");
        assert!(!fires(&super::CHECK, NVME, &files("128", "128")), "the hardware takes no more");
        let volume = [files("256", "16384").as_slice(), &[("queue/optimal_io_size", "262144")]].concat();
        assert!(!fires(&super::CHECK, SATA, &volume), "a volume that asks for its stripe");
    }
}
