//! No interrupt coalescing on a machine that moves bulk data.

use zenkai_facts::Facts;

use super::shared::{Card, wired};
use crate::{
    Check, Context, Evidence, Finding, Impact, Judgement, Outcome, Remedy, Subject, Subsystem, Workload, need,
};

/// See the explanation.
pub(super) static CHECK: Check = Check {
    id: "net-coalesce-zero",
    subsystem: Subsystem::Net,
    summary: "the card interrupts for nearly every packet",
    impact: Impact::Small,
    effect: "CPU time per packet (estimate)",
    risk: "packets wait some microseconds longer for their interrupt",
    source: "https://man7.org/linux/man-pages/man8/ethtool.8.html",
    explanation: include_str!("net_coalesce_zero.md"),
    run,
};

fn run(facts: &Facts, context: Context) -> Judgement {
    if !context.works_as(&[Workload::Network, Workload::Storage, Workload::Hpc]) {
        return Outcome::not_applicable(
            "interrupts for each packet only cost where throughput is what counts",
        )
        .into();
    }
    wired(facts).map(|cards| Judgement::each(&cards, judge)).into()
}

fn judge(card: &Card<'_>) -> Result<Option<Finding>, Outcome> {
    let reading = &card.hardware.ethtool.coalesce;
    let coalesce = need(reading)?;
    if coalesce.adaptive_rx || coalesce.rx_us > 0 || coalesce.rx_frames > 1 || card.is_slower_than(10_000) {
        return Ok(None);
    }
    Ok(Some(
        Finding::new(Subject::device(card.name()), "receive interrupts are not held back at all")
            .with(Evidence::derived(format!("{} rx_usecs", reading.source()), coalesce.rx_us).expected("some"))
            .with(Evidence::derived(format!("{} adaptive_rx", reading.source()), "off").expected("on"))
            .remedy(Remedy::Do(format!(
                "ethtool -C {0} adaptive-rx on, or where the driver has no such thing ethtool -C {0} rx-usecs 20",
                card.name()
            ))),
    ))
}

#[cfg(test)]
mod tests {
    use zenkai_host::{EthtoolRequest, FakeHost};

    use crate::{
        Workload,
        checks::net::shared_testing::{ask, found, found_as, healthy, named},
    };

    fn with(microseconds: u64, adaptive: u64) -> FakeHost {
        let rest = ["rx_frames", "tx_usecs", "tx_frames", "adaptive_tx"].map(|name| (name, 0));
        let own = [("rx_usecs", microseconds), ("adaptive_rx", adaptive)];
        healthy().reply(&ask(EthtoolRequest::Coalesce), named(&[rest.as_slice(), &own].concat()))
    }

    #[test]
    fn only_where_throughput_counts() {
        assert_eq!(found_as(&super::CHECK, with(0, 0), Workload::Network).len(), 1);
        assert_eq!(found_as(&super::CHECK, with(0, 1), Workload::Network), []);
        assert_eq!(found_as(&super::CHECK, with(8, 0), Workload::Network), []);
        assert_eq!(found_as(&super::CHECK, with(0, 0), Workload::Latency), []);
        assert_eq!(found(&super::CHECK, with(0, 0)), []);
    }
}
