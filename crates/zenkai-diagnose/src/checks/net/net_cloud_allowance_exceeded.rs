//! Limits of the instance that the network card tells about.

use zenkai_facts::Facts;

use super::shared::{Card, at_least, cards};
use crate::{
    Check, Context, Evidence, Finding, Impact, Judgement, Outcome, Remedy, Subject, Subsystem, need,
};

/// See the explanation.
pub(super) static CHECK: Check = Check {
    id: "net-cloud-allowance-exceeded",
    subsystem: Subsystem::Net,
    summary: "the cloud held packets back at a limit of the instance",
    impact: Impact::Moderate,
    effect: "packets queued or dropped by the cloud, as counted",
    risk: "a larger instance costs more",
    source: "https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/monitoring-network-performance-ena.html",
    explanation: include_str!("net_cloud_allowance_exceeded.md"),
    run,
};

/// Fewer packets than this since the driver started are noise.
const LEAST: u64 = 100;

fn run(facts: &Facts, _context: Context) -> Judgement {
    cards(facts).map(|cards| Judgement::each(&cards, judge)).into()
}

fn judge(card: &Card<'_>) -> Result<Option<Finding>, Outcome> {
    let reading = &card.hardware.ethtool.statistics;
    let limits: Vec<(&str, u64)> = need(reading)?
        .iter()
        .filter_map(|(name, count)| Some((name.strip_suffix("_allowance_exceeded")?, *count)))
        .collect();
    if limits.is_empty() {
        return Err(Outcome::not_applicable("the driver counts no limits of a cloud"));
    }
    let all = card.interface.packets().unwrap_or(0);
    let hit: Vec<_> =
        limits.into_iter().filter(|(_, count)| *count >= LEAST && at_least(*count, all, 1)).collect();
    if hit.is_empty() {
        return Ok(None);
    }
    let told: Vec<String> = hit.iter().map(|(name, count)| format!("{count} at {}", words(name))).collect();
    let mut finding = Finding::new(
        Subject::device(card.name()),
        format!("packets held back or dropped by the cloud: {}", told.join(", ")),
    );
    for (name, count) in hit {
        let source = format!("{} {name}_allowance_exceeded", reading.source());
        finding = finding.with(Evidence::derived(source, count).expected(0));
    }
    Ok(Some(
        finding
            .remedy(Remedy::Hypervisor(
                "an instance with a higher limit, or traffic with fewer bursts, packets or connections"
                    .into(),
            ))
            .because("the cloud limits the network"),
    ))
}

fn words(limit: &str) -> &str {
    match limit {
        "bw_in" => "the limit of incoming bandwidth",
        "bw_out" => "the limit of outgoing bandwidth",
        "pps" => "the packet rate limit",
        "conntrack" => "the limit of tracked connections",
        "linklocal" => "the limit of local services (DNS, metadata, time)",
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use zenkai_host::{EthtoolRequest, FakeHost};

    use crate::checks::net::shared_testing::{ask, driver, found, healthy, named};

    fn ena(pps: u64) -> FakeHost {
        let counters = named(&[("bw_in_allowance_exceeded", 0), ("pps_allowance_exceeded", pps)]);
        driver(healthy(), "ena").reply(&ask(EthtoolRequest::Statistics), counters)
    }

    #[test]
    fn names_the_limit() {
        let finding = &found(&super::CHECK, ena(70_000))[0];
        assert!(finding.what.ends_with("70000 at the packet rate limit"), "{}", finding.what);
        assert_eq!(found(&super::CHECK, ena(0)), []);
        assert_eq!(found(&super::CHECK, ena(150)), [], "one in a million");
    }
}
