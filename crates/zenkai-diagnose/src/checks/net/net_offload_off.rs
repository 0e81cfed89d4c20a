//! Work that the card or a later stage could save.

use zenkai_facts::Facts;

use super::shared::{Card, cards};
use crate::{
    Check, Context, Evidence, Finding, Impact, Judgement, Outcome, Remedy, Subject, Subsystem, need,
};

/// See the explanation.
pub(super) static CHECK: Check = Check {
    id: "net-offload-off",
    subsystem: Subsystem::Net,
    summary: "an offload of the card is switched off",
    impact: Impact::Moderate,
    effect: "several times the CPU time for each byte (estimate)",
    risk: "some drivers have bugs in offloads; that may be why it is off",
    source: "https://docs.kernel.org/networking/segmentation-offloads.html",
    explanation: include_str!("net_offload_off.md"),
    run,
};

/// What every server gains from, with a name that people know.
const WANTED: [(&str, &str, &str); 8] = [
    ("rx-checksum", "receive checksums", "rx"),
    ("tx-checksum-ip-generic", "transmit checksums", "tx"),
    ("tx-checksum-ipv4", "transmit checksums", "tx"),
    ("tx-scatter-gather", "scatter-gather", "sg"),
    ("tx-tcp-segmentation", "TCP segmentation (TSO)", "tso"),
    ("tx-generic-segmentation", "segmentation in software (GSO)", "gso"),
    ("rx-gro", "merging of received packets (GRO)", "gro"),
    ("rx-hashing", "receive hashing", "rxhash"),
];
/// Drivers that ship with some of them off because chips or firmware fail with it; `e1000`, which only hypervisors
/// still show, leaves receive checksums off, and `nfp` segmentation.
const CAUTIOUS: [&str; 5] = ["r8169", "r8125", "forcedeth", "e1000", "nfp"];

fn run(facts: &Facts, _context: Context) -> Judgement {
    let judge = |cards: Vec<Card<'_>>| Judgement::each(&cards, |card| judge(facts, card));
    cards(facts).map(judge).into()
}

fn judge(facts: &Facts, card: &Card<'_>) -> Result<Option<Finding>, Outcome> {
    let features = &card.hardware.ethtool.features;
    let bridged = card.interface.master.as_deref().and_then(|master| facts.net.interface(master));
    if bridged.is_some_and(|master| master.kind == zenkai_facts::net::Kind::Bridge) {
        return Err(Outcome::not_applicable("the card is a port of a bridge"));
    }
    if CAUTIOUS.contains(&card.driver()) || card.is_slower_than(1_000) {
        return Ok(None);
    }
    let features = need(features)?;
    let off: Vec<_> = WANTED
        .iter()
        .filter(|(name, ..)| {
            // What was asked for and is off lacks another feature, which is in this list itself.
            features
                .iter()
                .any(|known| known.name == *name && known.changeable && !known.active && !known.requested)
        })
        .collect();
    if off.is_empty() {
        return Ok(None);
    }
    let names: Vec<&str> = off.iter().map(|(_, name, _)| *name).collect();
    let switches: Vec<String> = off.iter().map(|(.., switch)| format!("{switch} on")).collect();
    let mut finding =
        Finding::new(Subject::device(card.name()), format!("switched off: {}", names.join(", ")));
    for (name, ..) in &off {
        let source = format!("{} {name}", card.hardware.ethtool.features.source());
        finding = finding.with(Evidence::derived(source, "off").expected("on"));
    }
    // A router may have its reasons.
    let impact = match off.as_slice() {
        _ if facts.net.settings.forwards() => Impact::Depends,
        [("rx-hashing", ..)] => Impact::Small,
        _ => Impact::Moderate,
    };
    Ok(Some(
        finding
            .impact(impact)
            .remedy(Remedy::Do(format!("ethtool -K {} {}", card.name(), switches.join(" "))))
            .because("offloads of the network card are off"),
    ))
}

#[cfg(test)]
mod tests {
    use zenkai_host::{EthtoolRequest, FakeHost};

    use crate::{
        Impact,
        checks::net::shared_testing::{ETH0, ask, driver, found, healthy, named},
    };

    fn with(features: &[(&str, u64)]) -> FakeHost {
        healthy().reply(&ask(EthtoolRequest::Features), named(features))
    }

    #[test]
    fn only_what_someone_switched_off() {
        let finding = &found(&super::CHECK, with(&[("tx-tcp-segmentation", 1), ("rx-gro", 1)]))[0];
        assert_eq!(finding.what, "switched off: TCP segmentation (TSO), merging of received packets (GRO)");
        assert_eq!(found(&super::CHECK, with(&[("tx-tcp-segmentation", 0), ("rx-gro", 4)])), [], "not there");
        let fallen = with(&[("tx-scatter-gather", 1), ("tx-tcp-segmentation", 9)]);
        assert_eq!(found(&super::CHECK, fallen)[0].what, "switched off: scatter-gather");
    }

    #[test]
    fn those_with_reasons() {
        let off = || with(&[("tx-tcp-segmentation", 1)]);
        assert_eq!(found(&super::CHECK, driver(off(), "r8169")), []);
        assert_eq!(found(&super::CHECK, driver(with(&[("rx-checksum", 1)]), "e1000")), []);
        let bridge = off()
            .link(&format!("{ETH0}/master"), "/sys/class/net/br0")
            .file("/sys/class/net/br0/bridge/x", "");
        assert_eq!(found(&super::CHECK, bridge), []);
        let router = off().file("/proc/sys/net/ipv4/ip_forward", "1\n");
        assert_eq!(found(&super::CHECK, router)[0].impact, Some(Impact::Depends));
    }
}
