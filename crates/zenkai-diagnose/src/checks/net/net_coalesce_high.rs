//! Interrupt coalescing on a machine that was built for latency.

use zenkai_facts::Facts;

use super::shared::{Card, wired};
use crate::{
    Check, Context, Evidence, Finding, Impact, Judgement, Outcome, Remedy, Subject, Subsystem, Workload, need,
};

/// See the explanation.
pub(super) static CHECK: Check = Check {
    id: "net-coalesce-high",
    subsystem: Subsystem::Net,
    summary: "the card holds interrupts back",
    impact: Impact::Small,
    effect: "up to the set time for each packet",
    risk: "more interrupts, and CPU time for them",
    source: "https://man7.org/linux/man-pages/man8/ethtool.8.html",
    explanation: include_str!("net_coalesce_high.md"),
    run,
};

/// Times below this are in the range of a wake-up anyway.
const LEAST_US: u64 = 20;

fn run(facts: &Facts, context: Context) -> Judgement {
    if !context.works_as(&[Workload::Latency]) {
        return Outcome::not_applicable("held-back interrupts only matter where latency is what counts")
            .into();
    }
    wired(facts).map(|cards| Judgement::each(&cards, judge)).into()
}

fn judge(card: &Card<'_>) -> Result<Option<Finding>, Outcome> {
    let reading = &card.hardware.ethtool.coalesce;
    let coalesce = need(reading)?;
    if coalesce.rx_us < LEAST_US {
        return Ok(None);
    }
    let adaptive = if coalesce.adaptive_rx { " (adaptive)" } else { "" };
    Ok(Some(
        Finding::new(
            Subject::device(card.name()),
            format!("receive interrupts are held back for {} µs{adaptive}", coalesce.rx_us),
        )
        .with(Evidence::derived(format!("{} rx_usecs", reading.source()), coalesce.rx_us).expected("0 to 10"))
        .remedy(Remedy::Do(format!("ethtool -C {} adaptive-rx off rx-usecs 5, then measure", card.name()))),
    ))
}

#[cfg(test)]
mod tests {
    use zenkai_host::EthtoolRequest;

    use crate::{
        Workload,
        checks::net::shared_testing::{ask, found, found_as, healthy, named},
    };

    #[test]
    fn only_for_latency() {
        let rest = ["rx_frames", "tx_usecs", "tx_frames", "adaptive_tx", "adaptive_rx"].map(|name| (name, 0));
        let reply = || named(&[rest.as_slice(), &[("rx_usecs", 50)]].concat());
        let host = || healthy().reply(&ask(EthtoolRequest::Coalesce), reply());
        assert!(found_as(&super::CHECK, host(), Workload::Latency)[0].what.ends_with("for 50 µs"));
        assert_eq!(found(&super::CHECK, host()), []);
    }
}
