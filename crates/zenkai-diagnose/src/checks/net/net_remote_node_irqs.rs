//! Interrupts far from their card.

use zenkai_facts::{
    Facts,
    irq::{Class, DeviceInterrupts},
};

use super::shared::at_least;
use crate::{
    Check, Context, Evidence, Finding, Impact, Judgement, Outcome, Remedy, Subject, Subsystem, Workload, need,
};

/// See the explanation.
pub(super) static CHECK: Check = Check {
    id: "net-remote-node-irqs",
    subsystem: Subsystem::Net,
    summary: "a card's interrupts go to another NUMA node",
    impact: Impact::Small,
    effect: "packets and their descriptors cross the link between the sockets (estimate)",
    risk: "the CPUs of the near node get more to do",
    source: "https://docs.kernel.org/core-api/irq/irq-affinity.html",
    explanation: include_str!("net_remote_node_irqs.md"),
    run,
};

/// Fewer interrupts than this tell nothing.
const LEAST: u64 = 1_000_000;
/// Queues over all CPUs of two nodes put one half on the far node, of four nodes three quarters.
const FAR: u64 = 950_000;

fn run(facts: &Facts, context: Context) -> Judgement {
    let cards = facts.irq.devices.iter().filter(|device| device.class == Class::Net);
    Judgement::each(cards, |device| judge(facts, context, device))
}

fn judge(facts: &Facts, context: Context, device: &DeviceInterrupts) -> Result<Option<Finding>, Outcome> {
    let Some(hardware) =
        facts.net.interface(&device.device).and_then(|interface| interface.hardware.as_ref())
    else {
        return Ok(None);
    };
    need(&hardware.numa_node)?;
    let near = need(&hardware.local_cpus)?;
    if near.is_empty() || need(&facts.cpu.online)?.is_subset(near) {
        return Err(Outcome::not_applicable("all CPUs are near the card"));
    }
    let sum = |far_only: bool| {
        let counted = device
            .interrupts
            .iter()
            .filter(|one| !far_only || one.top_cpu.is_some_and(|cpu| !near.contains(cpu)));
        counted.fold(0_u64, |sum, one| sum.saturating_add(one.total))
    };
    let (far, all) = (sum(true), sum(false));
    if all < LEAST || !at_least(far, all, FAR) {
        return Ok(None);
    }
    let work = context.works_as(&[Workload::Network, Workload::Latency, Workload::Storage]);
    Ok(Some(
        Finding::new(
            Subject::device(&device.device),
            format!("{far} of {all} interrupts went to CPUs far from the card, which is near CPUs {near}"),
        )
        .with(Evidence::of(&hardware.numa_node))
        .with(Evidence::of(&hardware.local_cpus))
        .with(Evidence::derived(facts.irq.interrupts.source(), format!("{far} of {all}")))
        .impact(if work { Impact::Moderate } else { Impact::Small })
        .remedy(Remedy::Do(format!("write {near} into the smp_affinity_list of the card's interrupts, and keep irqbalance from undoing it"))),
    ))
}

#[cfg(test)]
mod tests {
    use crate::checks::net::shared_testing::{PCI, found, healthy, interrupts};

    #[test]
    fn only_when_all_are_far() {
        let far = || healthy().file("/proc/interrupts", &interrupts(|queue| 4 + queue % 4));
        assert_eq!(found(&super::CHECK, far()).len(), 1);
        assert_eq!(found(&super::CHECK, healthy()), [], "one half is what spreading gives");
        assert_eq!(found(&super::CHECK, far().file(&format!("{PCI}/numa_node"), "-1\n")), []);
        assert_eq!(found(&super::CHECK, far().file(&format!("{PCI}/local_cpulist"), "0-7\n")), []);
    }
}
