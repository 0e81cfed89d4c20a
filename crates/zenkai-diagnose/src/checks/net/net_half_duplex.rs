//! A link on which only one side may talk at a time.

use zenkai_facts::Facts;

use super::shared::{Card, wired};
use crate::checks::shared::work_on_device;
use crate::{Check, Context, Evidence, Finding, Impact, Judgement, Outcome, Subject, Subsystem, need};

/// See the explanation.
pub(super) static CHECK: Check = Check {
    id: "net-half-duplex",
    subsystem: Subsystem::Net,
    summary: "a network link runs in half duplex",
    impact: Impact::Large,
    effect: "one direction at a time, and collisions: less than half of the link (estimate)",
    risk: "the link goes down for some seconds when it is negotiated again",
    source: "https://man7.org/linux/man-pages/man8/ethtool.8.html",
    explanation: include_str!("net_half_duplex.md"),
    run,
};

fn run(facts: &Facts, _context: Context) -> Judgement {
    wired(facts).map(|cards| Judgement::each(&cards, |card| judge(facts, card))).into()
}

fn judge(facts: &Facts, card: &Card<'_>) -> Result<Option<Finding>, Outcome> {
    if need(&card.interface.duplex)? != "half" {
        return Ok(None);
    }
    let what = match card.speed_mbps() {
        Some(speed) => format!("the link runs at {speed} Mbit/s in half duplex"),
        None => "the link runs in half duplex".to_owned(),
    };
    let mut finding = Finding::new(Subject::device(card.name()), what)
        .with(Evidence::of(&card.interface.duplex).expected("full"))
        .with(Evidence::of(&card.interface.speed_mbps))
        .remedy(work_on_device(
            facts,
            "let both ends negotiate: a switch port fixed to a speed without negotiation makes this end fall \
             back to half duplex; then try another cable and port",
        ))
        .because("the network link is half duplex");
    if let Some(statistics) = &card.interface.statistics {
        finding = finding.with(Evidence::of(&statistics.collisions));
    }
    Ok(Some(finding))
}

#[cfg(test)]
mod tests {
    use crate::checks::net::shared_testing::{ETH0, driver, found, healthy};

    #[test]
    fn only_on_a_real_wire() {
        let half =
            || healthy().file(&format!("{ETH0}/duplex"), "half\n").file(&format!("{ETH0}/speed"), "100\n");
        assert_eq!(found(&super::CHECK, half())[0].what, "the link runs at 100 Mbit/s in half duplex");
        assert_eq!(found(&super::CHECK, driver(half(), "virtio_net")), []);
        // The way to the management controller of a Dell, HPE or Lenovo server shows "half" and means nothing.
        assert_eq!(found(&super::CHECK, driver(half(), "cdc_ether")), []);
        assert_eq!(found(&super::CHECK, driver(half(), "cdc_ncm")), []);
    }
}
