//! A link that sleeps between packets.

use zenkai_facts::Facts;

use super::shared::{Card, wired};
use crate::{
    Check, Context, Evidence, Finding, Impact, Judgement, Outcome, Remedy, Subject, Subsystem, Workload, need,
};

/// See the explanation.
pub(super) static CHECK: Check = Check {
    id: "net-eee-on",
    subsystem: Subsystem::Net,
    summary: "energy-efficient Ethernet puts the link to sleep",
    impact: Impact::Small,
    effect: "some microseconds to wake the link for the first packet after a pause (estimate)",
    risk: "a little more power; the link goes down for a moment",
    source: "https://man7.org/linux/man-pages/man8/ethtool.8.html",
    explanation: include_str!("net_eee_on.md"),
    run,
};

fn run(facts: &Facts, context: Context) -> Judgement {
    if !context.works_as(&[Workload::Latency, Workload::Hpc, Workload::Hana]) {
        return Outcome::not_applicable(
            "a link that sleeps between packets only matters where latency counts",
        )
        .into();
    }
    wired(facts).map(|cards| Judgement::each(&cards, judge)).into()
}

fn judge(card: &Card<'_>) -> Result<Option<Finding>, Outcome> {
    let reading = &card.hardware.ethtool.eee;
    let eee = need(reading)?;
    if !eee.active || !eee.enabled {
        return Ok(None);
    }
    Ok(Some(
        Finding::new(
            Subject::device(card.name()),
            "energy-efficient Ethernet is on and agreed with the other end",
        )
        .with(Evidence::derived(format!("{} active", reading.source()), 1).expected(0))
        .with(Evidence::derived(format!("{} tx_lpi_timer_us", reading.source()), eee.tx_lpi_timer_us))
        .remedy(Remedy::Do(format!("ethtool --set-eee {} eee off", card.name()))),
    ))
}

#[cfg(test)]
mod tests {
    use zenkai_host::{EthtoolRequest, FakeHost};

    use crate::{
        Workload,
        checks::net::shared_testing::{ask, found, found_as, healthy, named},
    };

    fn with(active: u64) -> FakeHost {
        let pairs = [("active", active), ("enabled", 1), ("tx_lpi_enabled", 1), ("tx_lpi_timer_us", 17)];
        healthy().reply(&ask(EthtoolRequest::Eee), named(&pairs))
    }

    #[test]
    fn only_for_latency_and_in_force() {
        assert_eq!(found_as(&super::CHECK, with(1), Workload::Latency).len(), 1);
        assert_eq!(found_as(&super::CHECK, with(0), Workload::Latency), []);
        assert_eq!(found(&super::CHECK, with(1)), []);
    }
}
