//! A single queue, and software that does not spread its packets either.

use zenkai_facts::Facts;

use super::shared::{Card, at_least, cards, mask, percent};
use crate::{
    Check, Context, Evidence, Finding, Impact, Judgement, Outcome, Remedy, Subject, Subsystem, Workload, need,
};

/// See the explanation.
pub(super) static CHECK: Check = Check {
    id: "net-rps-missing",
    subsystem: Subsystem::Net,
    summary: "one CPU does the receive work of a single-queue card",
    impact: Impact::Depends,
    effect: "the receive rate of one CPU is the limit (estimate)",
    risk: "packets visit two CPUs, which costs some time for each of them",
    source: "https://docs.kernel.org/networking/scaling.html",
    explanation: include_str!("net_rps_missing.md"),
    run,
};

/// A machine that received less than this has no need.
const LEAST_PACKETS: u64 = 50_000_000;
/// The share on one CPU that shows that nothing spreads.
const ONE_CPU: u64 = 800_000;

fn run(facts: &Facts, context: Context) -> Judgement {
    let judge = |cards: Vec<Card<'_>>| Judgement::each(&cards, |card| judge(facts, context, card));
    cards(facts).map(judge).into()
}

fn judge(facts: &Facts, context: Context, card: &Card<'_>) -> Result<Option<Finding>, Outcome> {
    let queues = &card.hardware.queues;
    let online = need(&facts.cpu.online)?;
    let single = *need(&queues.rx_count)? == 1;
    let more = card.hardware.ethtool.channels.get().is_some_and(|channels| channels.combined_max > 1);
    let Some(queue) = queues.rx.first().filter(|_| single && !more && online.len() >= 4) else {
        return Ok(None);
    };
    if !need(&queue.cpus)?.is_empty() || card.is_slower_than(10_000) {
        return Ok(None);
    }
    let softnet = need(&facts.net.softnet)?;
    let all = softnet.iter().fold(0_u64, |sum, row| sum.saturating_add(row.processed));
    let most = softnet.iter().map(|row| row.processed).max().unwrap_or(0);
    if all < LEAST_PACKETS || !at_least(most, all, ONE_CPU) {
        return Ok(None);
    }
    let work = context.works_as(&[Workload::Network, Workload::Web, Workload::Storage]);
    Ok(Some(
        Finding::new(
            Subject::device(card.name()),
            format!(
                "one receive queue, and one CPU of {} did {} of the receive work",
                online.len(),
                percent(most, all)
            ),
        )
        .with(Evidence::of(&queue.cpus).expected("a set of CPUs"))
        .with(Evidence::derived(facts.net.softnet.source(), format!("{most} of {all} packets on one CPU")))
        .impact(if work { Impact::Moderate } else { Impact::Depends })
        .remedy(Remedy::Do(format!("echo {} > {}", mask(online), queue.cpus.source()))),
    ))
}

#[cfg(test)]
mod tests {
    use zenkai_host::{EthtoolRequest, FakeHost};

    use crate::checks::net::shared_testing::{ETH0, ask, driver, found, healthy, named};

    fn single(rps: &str, second: &str) -> FakeHost {
        let zero = ["rx", "rx_max", "tx", "tx_max"].map(|name| (name, 0));
        let channels = [zero.as_slice(), &[("combined", 1), ("combined_max", 1)]].concat();
        let softnet = format!("0fffffff 0 0\n{second} 0 0\n");
        let dir = "/sys/class/net/eth9";
        driver(healthy(), "virtio_net")
            .file(&format!("{ETH0}/carrier"), "0\n")
            .file(&format!("{dir}/carrier"), "1\n")
            .link(&format!("{dir}/device"), "/sys/devices/pci0000:00/0000:00:03.0")
            .file(&format!("{dir}/queues/rx-0/rps_cpus"), rps)
            .file("/proc/net/softnet_stat", &softnet)
            .reply(&ask(EthtoolRequest::Channels), named(&channels))
    }

    #[test]
    fn only_when_one_cpu_has_all_the_work() {
        assert_eq!(found(&super::CHECK, single("00\n", "1000")).len(), 1);
        assert_eq!(found(&super::CHECK, single("ff\n", "1000")), []);
        assert_eq!(found(&super::CHECK, single("00\n", "0fffffff")), []);
    }
}
