//! Memory channels without a module.

use zenkai_facts::Facts;

use crate::checks::shared::needs_hardware;
use crate::{
    Check, Context, Evidence, Finding, Impact, Judgement, Outcome, Remedy, Subject, Subsystem, Workload, need,
};

/// See the explanation.
pub(super) static CHECK: Check = Check {
    id: "memory-channels-empty",
    subsystem: Subsystem::Memory,
    summary: "memory channels hold no module",
    impact: Impact::Moderate,
    effect: "memory bandwidth in proportion to the populated channels (Lenovo measures such configurations)",
    risk: "modules cost money; adding them needs downtime",
    source: "https://lenovopress.lenovo.com/lp1089-balanced-memory-configurations-xeon-scalable-gen-2",
    explanation: include_str!("memory_channels_empty.md"),
    run,
};

fn run(facts: &Facts, context: Context) -> Judgement {
    judge(facts, context).into()
}

fn judge(facts: &Facts, context: Context) -> Result<Option<Finding>, Outcome> {
    needs_hardware(facts)?;
    let reading = &facts.memory.modules;
    let modules = need(reading)?;
    let Some(channels) = modules.channels() else {
        return Err(Outcome::not_applicable("the names of the slots do not tell their channels"));
    };
    let empty: Vec<&str> = channels.iter().filter(|(_, count)| **count == 0).map(|(name, _)| *name).collect();
    if empty.is_empty() || empty.len() == channels.len() {
        return Ok(None);
    }
    let listed =
        channels.iter().map(|(name, count)| format!("{name}: {count}")).collect::<Vec<_>>().join(", ");
    let what = format!("{} of {} memory channels hold no module", empty.len(), channels.len());
    let half = empty.len() * 2 >= channels.len()
        && context.works_as(&[Workload::Hpc, Workload::Database, Workload::Hana]);
    let advice = format!("put equal modules into {}", empty.join(", "));
    Ok(Some(
        Finding::new(Subject::Machine, what)
            .with(Evidence::derived(reading.source(), listed).expected("the same number in every channel"))
            .impact(if half { Impact::Large } else { Impact::Moderate })
            .remedy(Remedy::Hardware(advice)),
    ))
}

#[cfg(test)]
mod tests {
    use crate::{
        Context,
        checks::{memory::shared_table, testing::judge_host},
    };

    fn fires(slots: &[(&str, u16)]) -> bool {
        let slots: Vec<_> =
            slots.iter().map(|(bank, size)| shared_table::slot(bank, *size, 3200, 3200)).collect();
        !judge_host(&super::CHECK, shared_table::host("", &slots), Context::default()).findings.is_empty()
    }

    #[test]
    fn slots_without_modules_in_named_channels() {
        assert!(fires(&[("P0 CHANNEL A", 16_384), ("P0 CHANNEL B", 0)]));
        assert!(
            !fires(&[("P0 CHANNEL A", 16_384), ("P0 CHANNEL A", 0), ("P0 CHANNEL B", 16_384)]),
            "second slots may be empty"
        );
        assert!(!fires(&[("BANK 0", 16_384), ("BANK 1", 0)]), "names that tell nothing");
    }
}
