//! A PCIe link that came up narrower or slower than both of its ends can do.

use zenkai_facts::{
    Facts,
    pcie::{Endpoint, Hop, link_mbps},
};

use super::shared::{Link, is_display, links, name, needs_real_ports, words};
use crate::checks::shared::work_on_device;
use crate::{
    Check, Context, Evidence, Finding, Impact, Judgement, Outcome, Subject, Subsystem, need,
    need_or_not_applicable,
};

/// See the explanation.
pub(super) static CHECK: Check = Check {
    id: "pcie-link-degraded",
    subsystem: Subsystem::Pcie,
    summary: "a PCIe link runs below what both of its ends can do",
    impact: Impact::Large,
    effect: "bandwidth falls with lanes and speed: half the lanes carry half the data (arithmetic)",
    risk: "the machine must be opened or restarted",
    source: "https://github.com/torvalds/linux/blob/master/drivers/pci/pci-sysfs.c",
    explanation: include_str!("pcie_link_degraded.md"),
    run,
};

fn run(facts: &Facts, _context: Context) -> Judgement {
    if let Err(outcome) = needs_real_ports(facts) {
        return outcome.into();
    }
    need(&facts.pcie.endpoints)
        .map(|endpoints| Judgement::each(endpoints, |endpoint| judge(facts, endpoint)))
        .into()
}

fn judge(facts: &Facts, endpoint: &Endpoint) -> Result<Option<Finding>, Outcome> {
    let path = need(&endpoint.path)?;
    let device = path.first().ok_or_else(|| Outcome::not_applicable("the device is not on PCI"))?;
    // Functions inside the root complex and on conventional PCI have no link; that is no lack.
    need_or_not_applicable(&device.current_width, "the device has no PCIe link")?;
    need(&device.max_width)?;
    let worst = links(path)
        .enumerate()
        .filter_map(|(index, link)| lack(index, &link, device).map(|carried| (carried, index, link)))
        .min_by_key(|(carried, ..)| *carried);
    Ok(worst.and_then(|(percent, index, link)| finding(facts, endpoint, percent, index, &link)))
}

/// What the link carries in per cent of what it could, when that is less than all and means something.
fn lack(index: usize, link: &Link<'_>, endpoint: &Hop) -> Option<u64> {
    if link.device.is_asleep() || link.port.is_asleep() || endpoint.is_asleep() {
        return None;
    }
    let (speed, width) = link.current()?;
    let (possible_speed, possible_width) = link.possible()?;
    // A card that idles lowers its speed on purpose, never its width.
    let speed = if is_display(endpoint) && index == 0 { possible_speed } else { speed };
    if speed >= possible_speed && width >= possible_width {
        return None;
    }
    Some(link_mbps(speed, width) * 100 / link_mbps(possible_speed, possible_width).max(1))
}

fn finding(
    facts: &Facts,
    endpoint: &Endpoint,
    percent: u64,
    index: usize,
    link: &Link<'_>,
) -> Option<Finding> {
    let (now, possible) = (link.current()?, link.possible()?);
    let place = match index {
        0 => "its link to the port above".to_owned(),
        _ => format!("the link of the switch above it, {}, to {}", link.device.address, link.port.address),
    };
    let again = if now.0 < possible.0 {
        "look again while the device works, since some lower their speed when idle; if it stays, "
    } else {
        ""
    };
    let remedy = format!(
        "{again}reseat the card or drive, check riser, cable and slot, and the firmware's link speed and \
         bifurcation settings of this slot"
    );
    Some(
        Finding::new(
            Subject::device(name(facts, endpoint)),
            format!("{place} runs at {} where both ends can do {}", words(now), words(possible)),
        )
        .with(Evidence::of(&link.device.current_speed_mtps).expected(possible.0))
        .with(Evidence::of(&link.device.current_width).expected(possible.1))
        .with(Evidence::of(&link.device.max_speed_mtps))
        .with(Evidence::of(&link.device.max_width))
        .with(Evidence::of(&link.port.max_speed_mtps))
        .with(Evidence::of(&link.port.max_width))
        .impact(if percent <= 50 { Impact::Large } else { Impact::Moderate })
        .remedy(work_on_device(facts, remedy))
        .because(format!("a PCIe link runs at {}", words(now))),
    )
}

#[cfg(test)]
mod tests {
    use zenkai_host::FakeHost;

    use super::super::shared::worlds::{Function, add};
    use crate::{Context, Finding, Impact, checks::testing::judge_host};

    const PORT: Function<'static> = ("60400", ("8.0", 4), ("8.0", 16));
    const DISK: Function<'static> = ("010802", ("8.0", 4), ("8.0", 4));

    fn found(path: &[Function<'_>]) -> Vec<Finding> {
        let (host, _) = add(FakeHost::new(&[]), 1, path);
        judge_host(&super::CHECK, host, Context::default()).findings
    }

    #[test]
    fn narrow_or_slow_links_are_named() {
        let narrow = found(&[PORT, ("010802", ("8.0", 2), ("8.0", 4))]);
        assert!(narrow[0].what.contains("runs at 8 GT/s x2 (15 Gbit/s)"), "{}", narrow[0].what);
        assert_eq!(narrow[0].impact, Some(Impact::Large));
        let slow = found(&[PORT, ("010700", ("2.5", 8), ("8.0", 8))]);
        assert!(slow[0].what.contains("2.5 GT/s x8"), "{}", slow[0].what);
        let switch: [Function<'_>; 4] = [PORT, ("60400", ("8.0", 4), ("8.0", 16)), PORT, DISK];
        assert!(found(&switch)[0].what.contains("switch above it"), "{}", found(&switch)[0].what);
    }

    #[test]
    fn silent_on_the_healthy_and_the_idle() {
        assert!(found(&[PORT, DISK]).is_empty(), "an x4 card in an x16 port");
        assert!(found(&[PORT, ("010802", ("8.0", 4), ("16.0", 4))]).is_empty(), "the slot is older");
        assert!(found(&[("60400", ("2.5", 0), ("8.0", 16))]).is_empty(), "an empty port");
        assert!(found(&[PORT, ("030200", ("2.5", 16), ("8.0", 16))]).is_empty(), "an idle GPU");
        assert!(found(&[("010601", ("8.0", 0), ("8.0", 255))]).is_empty(), "inside the root complex");
        let (host, dir) = add(FakeHost::new(&[]), 1, &[PORT, ("010802", ("2.5", 4), ("8.0", 4))]);
        let asleep = host.file(&format!("{dir}/power/runtime_status"), "suspended\n");
        assert!(judge_host(&super::CHECK, asleep, Context::default()).findings.is_empty());
    }

    #[test]
    fn unknown_speeds_are_not_degraded_ones() {
        let (host, dir) = add(FakeHost::new(&[]), 1, &[PORT, DISK]);
        let unknown = host.file(&format!("{dir}/current_link_speed"), "Unknown\n");
        assert!(judge_host(&super::CHECK, unknown, Context::default()).findings.is_empty());
    }
}
