//! A partition that starts in the middle of a block.

use zenkai_facts::{
    Facts,
    block::{Disk, Partition},
};

use super::shared::is_real_flash;
use crate::{
    Check, Context, Evidence, Finding, Impact, Judgement, Outcome, Remedy, Subject, Subsystem, need,
};

/// See the explanation.
pub(super) static CHECK: Check = Check {
    id: "block-partition-misaligned",
    subsystem: Subsystem::Block,
    summary: "a partition starts in the middle of a physical block",
    impact: Impact::Moderate,
    effect: "estimate: every small write touches two blocks, up to twice the work",
    risk: "the partition must be made anew and its data restored",
    source: "https://docs.kernel.org/admin-guide/abi-stable.html",
    explanation: include_str!("block_partition_misaligned.md"),
    run,
};

/// No flash works in smaller units, whatever it reports.
const FLASH_UNIT_BYTES: u64 = 4096;

/// Boot loader partitions and the frame of extended ones are smaller; nobody waits for them.
const SMALL_BYTES: u64 = 64 << 20;

fn run(facts: &Facts, _context: Context) -> Judgement {
    need(&facts.block.disks)
        .map(|disks| {
            let all =
                disks.iter().flat_map(|disk| disk.partitions.iter().map(move |partition| (disk, partition)));
            let large = all
                .filter(|(_, partition)| partition.size_bytes.value().is_none_or(|size| size > SMALL_BYTES));
            Judgement::each(large, |(disk, partition)| judge(disk, partition))
        })
        .into()
}

fn judge(disk: &Disk, partition: &Partition) -> Result<Option<Finding>, Outcome> {
    let start = *need(&partition.start_bytes)?;
    let flash = is_real_flash(disk) && start % FLASH_UNIT_BYTES != 0;
    let offset = *need(&partition.alignment_offset_bytes)?;
    if offset == 0 && !flash {
        return Ok(None);
    }
    let block = disk.queue.physical_block_size_bytes.value().unwrap_or(0);
    let unit = if flash { block.max(FLASH_UNIT_BYTES) } else { block.max(512) };
    // Aligned to blocks but not to the chunks of an array or controller: seldom felt.
    let only_chunk = start % unit.max(FLASH_UNIT_BYTES) == 0;
    let what = if only_chunk {
        "starts in the middle of a chunk of the array or controller below".to_owned()
    } else {
        format!("starts {} bytes into a block of {unit} bytes", start % unit.max(FLASH_UNIT_BYTES))
    };
    Ok(Some(
        Finding::new(Subject::device(&partition.name), what)
            .with(Evidence::of(&partition.start_bytes).expected("a multiple of 1 MiB"))
            .with(Evidence::of(&partition.alignment_offset_bytes).expected(0))
            .with(Evidence::of(&disk.queue.physical_block_size_bytes))
            .impact(if only_chunk { Impact::Small } else { Impact::Moderate })
            .remedy(Remedy::Do(
                "make the partition anew with its start at a multiple of 1 MiB, and restore".into(),
            )),
    ))
}

#[cfg(test)]
mod tests {
    use super::super::shared::worlds::{SATA, VIRTIO, fires};

    #[test]
    fn starts_that_cut_blocks() {
        let at = |start, offset, size, rotational| {
            [
                ("sda1/start", start),
                ("sda1/alignment_offset", offset),
                ("sda1/size", size),
                ("queue/rotational", rotational),
                ("queue/physical_block_size", "4096"),
            ]
        };
        assert!(fires(&super::CHECK, SATA, &at("63", "3584", "1000000", "1")));
        assert!(fires(&super::CHECK, SATA, &at("63", "0", "1000000", "0")), "flash that reports 512");
        assert!(!fires(&super::CHECK, SATA, &at("2048", "0", "1000000", "1")));
        assert!(!fires(&super::CHECK, SATA, &at("63", "0", "1000000", "1")), "blocks of 512 bytes");
        assert!(!fires(&super::CHECK, SATA, &at("34", "3584", "2014", "0")), "a boot loader's");
        assert!(!fires(&super::CHECK, VIRTIO, &at("63", "0", "1000000", "1")));
    }
}
