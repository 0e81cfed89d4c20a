//! Memory channels without a module.

use std::collections::BTreeSet;

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
    let Some(mut channels) = modules.channels() else {
        return Err(Outcome::not_applicable("the names of the slots do not tell their channels"));
    };
    if modules.processors.iter().any(|processor| !processor.populated) {
        // The slots of a socket without a CPU must be empty.
        let filled: BTreeSet<&str> =
            channels.iter().filter(|(_, count)| **count > 0).map(|(name, _)| socket_of(name)).collect();
        channels.retain(|name, _| filled.contains(socket_of(name)));
    }
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

/// The name of a channel without its own number or letter: what the channels of one socket have in common.
fn socket_of(channel: &str) -> &str {
    let stem = channel.trim_end_matches(|letter: char| letter.is_ascii_digit());
    if stem.len() < channel.len() {
        stem
    } else {
        channel.get(..channel.len().saturating_sub(1)).unwrap_or("")
    }
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

    #[test]
    fn slots_of_a_socket_without_cpu_are_empty() {
        let with_empty_socket = |slots: &[(&str, u16)]| {
            let mut all: Vec<_> =
                slots.iter().map(|(bank, size)| shared_table::slot(bank, *size, 3200, 3200)).collect();
            // A central processor (type 4) that is not there: status 0.
            let mut absent = vec![0_u8; 0x32];
            absent[..2].copy_from_slice(&[4, 0x30]);
            absent[5] = 3;
            all.push(absent);
            judge_host(&super::CHECK, shared_table::host("", &all), Context::default()).findings.len()
        };
        let first = [("P0 CHANNEL A", 16_384), ("P0 CHANNEL B", 16_384)];
        let second = [("P1 CHANNEL A", 0), ("P1 CHANNEL B", 0)];
        assert!(fires(&[first, second].concat()), "both sockets have a CPU");
        assert_eq!(with_empty_socket(&[first, second].concat()), 0);
        let half = [("P0 CHANNEL A", 16_384), ("P0 CHANNEL B", 0)];
        assert_eq!(with_empty_socket(&[half, second].concat()), 1, "the CPU that is there lacks modules");
    }
}
