//! A link below what its card can do.

use zenkai_facts::Facts;

use super::shared::{Card, wired};
use crate::checks::shared::work_on_device;
use crate::{
    Check, Context, Evidence, Finding, Impact, Judgement, Outcome, Remedy, Subject, Subsystem, need,
};

/// See the explanation.
pub(super) static CHECK: Check = Check {
    id: "net-link-slow",
    subsystem: Subsystem::Net,
    summary: "a network link is slower than the card",
    impact: Impact::Moderate,
    effect: "the ratio of the two speeds, for whatever the network limits",
    risk: "the link goes down for some seconds when it is negotiated again",
    source: "https://man7.org/linux/man-pages/man8/ethtool.8.html",
    explanation: include_str!("net_link_slow.md"),
    run,
};

fn run(facts: &Facts, _context: Context) -> Judgement {
    wired(facts).map(|cards| Judgement::each(&cards, |card| judge(facts, card))).into()
}

fn judge(facts: &Facts, card: &Card<'_>) -> Result<Option<Finding>, Outcome> {
    let reading = &card.hardware.ethtool.link;
    let link = need(reading)?;
    let (speed, Some(most)) = (*need(&card.interface.speed_mbps)?, link.max_supported_speed_mbps) else {
        return Err(Outcome::not_applicable("the driver does not say how fast the card can be"));
    };
    // 56 Gbit/s exists between cards of one maker only; such a card at 40 is as fast as anyone expects.
    let most = if most == 56_000 { 40_000 } else { most };
    if speed >= most {
        return Ok(None);
    }
    let offered = link.max_advertised_speed_mbps;
    let partner = link.max_partner_speed_mbps;
    let both = offered.unwrap_or(most).min(most).min(partner.unwrap_or(0));
    let (why, remedy) = if link.autonegotiation == Some(false) {
        (
            "negotiation is off",
            Remedy::Do(format!(
                "check that it is meant to be so, else `ethtool -s {} autoneg on`",
                card.name()
            )),
        )
    } else if offered.is_some_and(|offered| offered <= speed) {
        (
            "this end offers no more",
            Remedy::Do(format!("offer all modes again: `ethtool -s {} autoneg on advertise …`", card.name())),
        )
    } else if both > speed {
        ("both ends offer more", work_on_device(facts, "try another cable, then another switch port"))
    } else if partner.is_some() {
        (
            "the other end offers no more",
            work_on_device(facts, "use a faster switch port, if the work needs it"),
        )
    } else {
        (
            "the other end does not say what it can",
            work_on_device(facts, "check module, cable and switch port"),
        )
    };
    // A slow switch behind a fast card is how many networks are built; a cable that loses a step is not.
    let impact = match (both > speed, speed) {
        (_, ..=100) if most >= 1_000 => Impact::Large,
        (true, _) => Impact::Moderate,
        _ => Impact::Depends,
    };
    let mut finding = Finding::new(
        Subject::device(card.name()),
        format!("the link runs at {speed} of {most} Mbit/s; {why}"),
    )
    .with(Evidence::of(&card.interface.speed_mbps).expected(most))
    .impact(impact)
    .remedy(remedy)
    .because(format!("the network link runs at {speed} of {most} Mbit/s"));
    if let Some(partner) = partner {
        let source = format!("{} max_partner_speed_mbps", reading.source());
        finding = finding.with(Evidence::derived(source, partner));
    }
    Ok(Some(finding))
}

#[cfg(test)]
mod tests {
    use zenkai_host::{EthtoolRequest, FakeHost};

    use crate::{
        Impact, Remedy,
        checks::net::shared_testing::{ETH0, PCI, ask, driver, found, healthy, link, named},
    };

    fn at(speed: u64, supported: u64, advertised: u64, partner: u64) -> FakeHost {
        healthy()
            .file(&format!("{ETH0}/speed"), &format!("{speed}\n"))
            .reply(&ask(EthtoolRequest::Link), link(speed, supported, advertised, partner))
    }

    #[test]
    fn says_who_holds_the_link_down() {
        let cable = &found(&super::CHECK, at(100, 1_000, 1_000, 1_000))[0];
        assert_eq!(cable.what, "the link runs at 100 of 1000 Mbit/s; both ends offer more");
        assert_eq!(cable.impact, Some(Impact::Large));
        assert!(matches!(&cable.remedy, Remedy::Hardware(_)));
        let slow_switch = &found(&super::CHECK, at(1_000, 10_000, 10_000, 1_000))[0];
        assert_eq!(slow_switch.impact, Some(Impact::Depends));
        assert!(
            found(&super::CHECK, at(1_000, 10_000, 1_000, 10_000))[0]
                .what
                .ends_with("this end offers no more")
        );
    }

    #[test]
    fn silent_where_nothing_is_lost() {
        assert_eq!(found(&super::CHECK, at(10_000, 10_000, 10_000, 0)), []);
        assert_eq!(found(&super::CHECK, at(40_000, 56_000, 56_000, 0)), []);
        assert_eq!(found(&super::CHECK, driver(at(1_000, 10_000, 10_000, 0), "virtio_net")), []);
        let no_modes = named(&[("speed_mbps", 100), ("duplex", 1), ("autoneg", 0)]);
        assert_eq!(found(&super::CHECK, healthy().reply(&ask(EthtoolRequest::Link), no_modes)), []);
        let function = "/sys/devices/pci0000:00/0000:00:03.0/physfn";
        let parent = "/sys/devices/pci0000:00/0000:00:04.0";
        let virtual_function =
            at(1_000, 10_000, 10_000, 0).file(&format!("{parent}/class"), "x").link(function, parent);
        assert_eq!(found(&super::CHECK, virtual_function), []);
    }

    #[test]
    fn a_cloud_s_virtual_function_has_no_cable() {
        // Azure hands out functions of Mellanox cards; the guest sees no `physfn`, and no PCIe link either.
        let azure = || {
            driver(at(40_000, 100_000, 100_000, 0), "mlx5_core")
                .file("/proc/cpuinfo", "processor: 0\nflags: fpu hypervisor\n")
                .file("/sys/class/dmi/id/sys_vendor", "Microsoft Corporation\n")
                .file("/sys/class/dmi/id/product_name", "Virtual Machine\n")
                .file(&format!("{PCI}/current_link_width"), "0\n")
        };
        assert_eq!(found(&super::CHECK, azure()), []);
        let passed_through = azure().file(&format!("{PCI}/current_link_width"), "16\n");
        assert_eq!(found(&super::CHECK, passed_through).len(), 1);
    }
}
