//! Lost packets while the ring could be larger.

use zenkai_facts::Facts;

use super::shared::{Card, at_least, cards, percent};
use crate::{
    Check, Context, Evidence, Finding, Impact, Judgement, Outcome, Remedy, Subject, Subsystem, need,
};

/// See the explanation.
pub(super) static CHECK: Check = Check {
    id: "net-ring-small",
    subsystem: Subsystem::Net,
    summary: "packets are lost because the receive ring is too small",
    impact: Impact::Moderate,
    effect: "each lost packet is sent again; TCP slows down each time (estimate)",
    risk: "more memory, and packets may wait longer in a burst; the link goes down for a moment when the ring changes",
    source: "https://docs.kernel.org/networking/statistics.html",
    explanation: include_str!("net_ring_small.md"),
    run,
};

/// Fewer lost packets than this since the interface exists are noise.
const LEAST: u64 = 1_000;
/// The same as a share of all packets, in millionths.
const SHARE: u64 = 10;
/// What drivers call packets for which the host had no buffer.
const NO_BUFFER: [&str; 6] = [
    "rx_no_dma_resources",
    "rx_no_buffer_count",
    "rx_out_of_buffer",
    "rx_missed_errors",
    "rx_discards_phy",
    "rx_total_ring_discards",
];

fn run(facts: &Facts, _context: Context) -> Judgement {
    cards(facts).map(|cards| Judgement::each(&cards, judge)).into()
}

fn judge(card: &Card<'_>) -> Result<Option<Finding>, Outcome> {
    let reading = &card.hardware.ethtool.rings;
    let rings = need(reading)?;
    if rings.rx == 0 || rings.rx >= rings.rx_max {
        return Ok(None);
    }
    let Some(statistics) = &card.interface.statistics else { return Ok(None) };
    let received = *need(&statistics.rx_packets)?;
    let missed = *need(&statistics.rx_missed_errors)?;
    let own = card.largest(&NO_BUFFER);
    let lost = own.map_or(0, |(_, count)| count).max(missed);
    if lost < LEAST || !at_least(lost, received, SHARE) {
        return Ok(None);
    }
    let evidence = match own {
        Some((name, count)) if count > missed => {
            Evidence::derived(format!("{} {name}", card.hardware.ethtool.statistics.source()), count)
        }
        _ => Evidence::of(&statistics.rx_missed_errors),
    };
    Ok(Some(
        Finding::new(
            Subject::device(card.name()),
            format!(
                "{lost} packets ({}) found no buffer, with a receive ring of {} of {} entries",
                percent(lost, received),
                rings.rx,
                rings.rx_max
            ),
        )
        .with(evidence.expected(0))
        .with(Evidence::derived(format!("{} rx", reading.source()), rings.rx).expected(rings.rx_max))
        .with(Evidence::of(&statistics.rx_packets))
        .remedy(Remedy::Do(format!("ethtool -G {} rx {}", card.name(), rings.rx_max)))
        .because("the receive ring overflows"),
    ))
}

#[cfg(test)]
mod tests {
    use zenkai_host::EthtoolRequest;

    use crate::checks::net::shared_testing::{ETH0, ask, found, healthy, named};

    #[test]
    fn only_with_losses_and_room_to_grow() {
        let lossy = || healthy().file(&format!("{ETH0}/statistics/rx_missed_errors"), "50000\n");
        let finding = &found(&super::CHECK, lossy())[0];
        assert_eq!(
            finding.what,
            "50000 packets (0.05 %) found no buffer, with a receive ring of 512 of 4096 entries"
        );
        let full = named(&[("rx", 4096), ("rx_max", 4096), ("tx", 512), ("tx_max", 4096)]);
        assert_eq!(found(&super::CHECK, lossy().reply(&ask(EthtoolRequest::Rings), full)), []);
        let own = named(&[("rx_out_of_buffer", 9_000)]);
        assert_eq!(found(&super::CHECK, healthy().reply(&ask(EthtoolRequest::Statistics), own)).len(), 1);
    }
}
