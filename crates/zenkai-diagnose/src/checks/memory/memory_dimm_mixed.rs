//! Unequal memory modules.

use std::collections::{BTreeMap, BTreeSet};

use zenkai_facts::{Facts, memory::Modules};

use crate::checks::shared::needs_hardware;
use crate::{
    Check, Context, Evidence, Finding, Impact, Judgement, Outcome, Remedy, Subject, Subsystem, need,
};

/// See the explanation.
pub(super) static CHECK: Check = Check {
    id: "memory-dimm-mixed",
    subsystem: Subsystem::Memory,
    summary: "memory modules are unequal",
    impact: Impact::Small,
    effect: "the part of memory that cannot be interleaved over all channels is slower (estimate 10 to 30 % there)",
    risk: "modules cost money; changing them needs downtime",
    source: "https://lenovopress.lenovo.com/lp1089-balanced-memory-configurations-xeon-scalable-gen-2",
    explanation: include_str!("memory_dimm_mixed.md"),
    run,
};

fn run(facts: &Facts, _context: Context) -> Judgement {
    judge(facts).into()
}

fn judge(facts: &Facts) -> Result<Option<Finding>, Outcome> {
    needs_hardware(facts)?;
    let reading = &facts.memory.modules;
    let modules = need(reading)?;
    let mut kinds: BTreeMap<(u64, Option<u32>), usize> = BTreeMap::new();
    for (_, module) in modules.installed() {
        *kinds.entry((module.size_mib, module.rated_mtps)).or_insert(0) += 1;
    }
    let sizes: BTreeSet<u64> = kinds.keys().map(|(size, _)| *size).collect();
    let speeds: BTreeSet<u32> = kinds.keys().filter_map(|(_, speed)| *speed).collect();
    let what = if sizes.len() > 1 && !channels_are_equal(modules) {
        format!("modules of {} sizes cannot be interleaved evenly", sizes.len())
    } else if let (true, Some(slowest)) = (speeds.len() > 1, speeds.first()) {
        format!("modules of {} speeds all run at the slowest, {slowest} MT/s at most", speeds.len())
    } else {
        return Ok(None);
    };
    let kind = |((size, speed), count): (&(u64, Option<u32>), &usize)| match speed {
        Some(speed) => format!("{count} of {size} MiB at {speed} MT/s"),
        None => format!("{count} of {size} MiB"),
    };
    let listed = kinds.iter().map(kind).collect::<Vec<_>>().join(", ");
    Ok(Some(
        Finding::new(Subject::Machine, what)
            .with(Evidence::derived(reading.source(), listed).expected("one kind"))
            .remedy(Remedy::Hardware("fit equal modules, at least the same set in every channel".to_owned())),
    ))
}

/// Whether every channel holds as much: a large and a small module in each is as good as equal ones.
fn channels_are_equal(modules: &Modules) -> bool {
    let mut totals: BTreeMap<&str, u64> = BTreeMap::new();
    for (slot, module) in modules.installed() {
        let Some(channel) = slot.channel.as_deref() else { return false };
        *totals.entry(channel).or_insert(0) += module.size_mib;
    }
    totals.values().collect::<BTreeSet<_>>().len() == 1
}

#[cfg(test)]
mod tests {
    use crate::{
        Context,
        checks::{memory::shared_table, testing::judge_host},
    };

    fn fires(slots: &[(&str, u16, u16)]) -> bool {
        let slots: Vec<_> =
            slots.iter().map(|(bank, size, speed)| shared_table::slot(bank, *size, *speed, 2400)).collect();
        !judge_host(&super::CHECK, shared_table::host("", &slots), Context::default()).findings.is_empty()
    }

    #[test]
    fn uneven_channels_or_speeds() {
        assert!(fires(&[("P0 CHANNEL A", 16_384, 2400), ("P0 CHANNEL B", 8192, 2400)]));
        assert!(fires(&[("P0 CHANNEL A", 16_384, 2400), ("P0 CHANNEL B", 16_384, 2133)]));
        assert!(!fires(&[
            ("P0 CHANNEL A", 16_384, 2400),
            ("P0 CHANNEL B", 16_384, 2400),
            ("P0 CHANNEL B", 0, 0)
        ]));
        let pairs = [
            ("P0 CHANNEL A", 16_384),
            ("P0 CHANNEL A", 8192),
            ("P0 CHANNEL B", 16_384),
            ("P0 CHANNEL B", 8192),
        ];
        assert!(!fires(&pairs.map(|(bank, size)| (bank, size, 2400))), "the same set in every channel");
    }
}
