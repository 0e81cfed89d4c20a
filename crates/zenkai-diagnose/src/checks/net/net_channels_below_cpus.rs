//! One queue where there could be many.

use zenkai_facts::Facts;

use super::shared::{Card, cards};
use crate::{
    Check, Context, Evidence, Finding, Impact, Judgement, Outcome, Remedy, Subject, Subsystem, Workload, need,
};

/// See the explanation.
pub(super) static CHECK: Check = Check {
    id: "net-channels-below-cpus",
    subsystem: Subsystem::Net,
    summary: "a card uses one queue although it has more",
    impact: Impact::Small,
    effect: "one CPU receives all packets; its limit is the limit of the card (estimate)",
    risk: "the link goes down for a moment when the number of queues changes",
    source: "https://docs.kernel.org/networking/scaling.html",
    explanation: include_str!("net_channels_below_cpus.md"),
    run,
};

/// A card that moved fewer packets than this needs no second queue.
const LEAST_PACKETS: u64 = 1_000_000;

fn run(facts: &Facts, context: Context) -> Judgement {
    let judge = |cards: Vec<Card<'_>>| Judgement::each(&cards, |card| judge(facts, context, card));
    cards(facts).map(judge).into()
}

fn judge(facts: &Facts, context: Context, card: &Card<'_>) -> Result<Option<Finding>, Outcome> {
    let reading = &card.hardware.ethtool.channels;
    let channels = need(reading)?;
    let cpus = u64::try_from(need(&facts.cpu.online)?.len()).unwrap_or(u64::MAX);
    // Cards with separate receive queues count those; the rest pair them.
    let (name, now, most) = if channels.combined_max > 0 {
        ("combined", channels.combined, channels.combined_max)
    } else {
        ("rx", channels.rx, channels.rx_max)
    };
    let wanted = most.min(cpus);
    // Drivers choose a few queues on machines with many CPUs for good reasons; one of four or more is an accident.
    if now != 1
        || wanted < 4
        || card.is_slower_than(10_000)
        || card.interface.packets().unwrap_or(0) < LEAST_PACKETS
    {
        return Ok(None);
    }
    let work = context.works_as(&[Workload::Network, Workload::Storage, Workload::Web, Workload::Redis]);
    Ok(Some(
        Finding::new(Subject::device(card.name()), format!("1 of {most} queues is in use, with {cpus} CPUs"))
            .with(Evidence::derived(format!("{} {name}", reading.source()), now).expected(wanted))
            .with(Evidence::of(&facts.cpu.online))
            .impact(if work { Impact::Moderate } else { Impact::Small })
            .remedy(Remedy::Do(format!("ethtool -L {} {name} {wanted}", card.name())))
            .because("the network card uses one queue"),
    ))
}

#[cfg(test)]
mod tests {
    use zenkai_host::{EthtoolRequest, FakeHost};

    use crate::checks::net::shared_testing::{ETH0, ask, found, healthy, named};

    fn combined(now: u64, most: u64) -> FakeHost {
        let zero = ["rx", "rx_max", "tx", "tx_max"].map(|name| (name, 0));
        let channels = [zero.as_slice(), &[("combined", now), ("combined_max", most)]].concat();
        healthy().reply(&ask(EthtoolRequest::Channels), named(&channels))
    }

    #[test]
    fn one_of_many() {
        assert_eq!(found(&super::CHECK, combined(1, 16))[0].what, "1 of 16 queues is in use, with 8 CPUs");
        assert_eq!(found(&super::CHECK, combined(1, 1)), [], "the card has no more");
        assert_eq!(found(&super::CHECK, combined(4, 64)), [], "the driver's choice");
        assert_eq!(found(&super::CHECK, combined(1, 16).file(&format!("{ETH0}/speed"), "1000\n")), []);
        let idle = combined(1, 16)
            .file(&format!("{ETH0}/statistics/rx_packets"), "5\n")
            .file(&format!("{ETH0}/statistics/tx_packets"), "5\n");
        assert_eq!(found(&super::CHECK, idle), []);
    }
}
