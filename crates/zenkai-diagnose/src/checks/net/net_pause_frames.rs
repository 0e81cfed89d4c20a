//! Pause frames in numbers.

use zenkai_facts::Facts;

use super::shared::{Card, at_least, percent, wired};
use crate::{
    Check, Context, Evidence, Finding, Impact, Judgement, Outcome, Remedy, Subject, Subsystem, need,
};

/// See the explanation.
pub(super) static CHECK: Check = Check {
    id: "net-pause-frames",
    subsystem: Subsystem::Net,
    summary: "flow control stops the network again and again",
    impact: Impact::Moderate,
    effect: "everything behind the stopped link waits, also traffic for others (estimate)",
    risk: "without flow control the same packets may be lost instead",
    source: "https://man7.org/linux/man-pages/man8/ethtool.8.html",
    explanation: include_str!("net_pause_frames.md"),
    run,
};

/// Fewer pauses than this are noise.
const LEAST: u64 = 10_000;
/// One pause for a thousand packets.
const SHARE: u64 = 1_000;
/// "The other end told us to stop", in the words of different drivers.
const RECEIVED: [&str; 7] = [
    "rx_pause_ctrl_phy",
    "rx_pause_frames",
    "rx_pause",
    "rx_flow_control_xoff",
    "link_xoff_rx",
    "link_xoff_rx.nic",
    "port.link_xoff_rx",
];
/// "We told the other end to stop."
const SENT: [&str; 5] =
    ["tx_pause_ctrl_phy", "tx_pause_frames", "tx_pause", "tx_flow_control_xoff", "link_xoff_tx.nic"];

fn run(facts: &Facts, _context: Context) -> Judgement {
    wired(facts).map(|cards| Judgement::each(&cards, judge)).into()
}

fn judge(card: &Card<'_>) -> Result<Option<Finding>, Outcome> {
    let reading = &card.hardware.ethtool.statistics;
    need(reading)?;
    let Some(statistics) = &card.interface.statistics else { return Ok(None) };
    let sent = (card.largest(&SENT), *need(&statistics.rx_packets)?);
    let received = (card.largest(&RECEIVED), *need(&statistics.tx_packets)?);
    let often = |counted: (Option<(&'static str, u64)>, u64)| {
        let (name, count) = counted.0?;
        (count >= LEAST && at_least(count, counted.1, SHARE)).then_some((name, count, counted.1))
    };
    let (what, (name, count, _), remedy) = if let Some(counter) = often(sent) {
        let what = format!(
            "this machine told the switch {} times ({} of packets) to stop sending",
            counter.1,
            percent(counter.1, counter.2)
        );
        (
            what,
            counter,
            "find out why this machine cannot take the packets: ring size, a busy CPU, the PCIe link",
        )
    } else if let Some(counter) = often(received) {
        let what = format!(
            "the switch told this machine {} times ({} of packets) to stop sending",
            counter.1,
            percent(counter.1, counter.2)
        );
        (
            what,
            counter,
            "find the receiver that is too slow, or an uplink that is too small, behind the switch",
        )
    } else {
        return Ok(None);
    };
    Ok(Some(
        Finding::new(Subject::device(card.name()), what)
            .with(Evidence::derived(format!("{} {name}", reading.source()), count))
            .with(Evidence::of(&statistics.rx_packets))
            .with(Evidence::of(&statistics.tx_packets))
            .remedy(Remedy::Do(remedy.into()))
            .because("flow control stops the link"),
    ))
}

#[cfg(test)]
mod tests {
    use zenkai_host::EthtoolRequest;

    use crate::checks::net::shared_testing::{ask, found, healthy, named};

    #[test]
    fn tells_who_stops_whom() {
        let with = |name: &str, count: u64| {
            healthy().reply(&ask(EthtoolRequest::Statistics), named(&[(name, count)]))
        };
        assert!(found(&super::CHECK, with("tx_pause", 2_000_000))[0].what.starts_with("this machine told"));
        assert!(
            found(&super::CHECK, with("rx_pause_ctrl_phy", 2_000_000))[0].what.starts_with("the switch told")
        );
        assert_eq!(
            found(&super::CHECK, with("rx_pause_ctrl_phy", 50_000)),
            [],
            "a pause in two thousand packets"
        );
    }
}
