//! A device in a slot that offers less than the device can use.

use zenkai_facts::{
    Facts,
    pcie::{Endpoint, link_mbps},
};

use super::shared::{is_display, links, name, needs_real_ports, words};
use crate::checks::shared::work_on_device;
use crate::{Check, Context, Evidence, Finding, Impact, Judgement, Outcome, Subject, Subsystem, need};

/// See the explanation.
pub(super) static CHECK: Check = Check {
    id: "pcie-slot-narrower",
    subsystem: Subsystem::Pcie,
    summary: "a device sits in a slot that offers less than it can use",
    impact: Impact::Small,
    effect: "the slot caps the device at its own bandwidth (arithmetic); it only shows when the device is that busy",
    risk: "the machine must be opened",
    source: "https://github.com/torvalds/linux/blob/master/drivers/pci/pci-sysfs.c",
    explanation: include_str!("pcie_slot_narrower.md"),
    run,
};

fn run(facts: &Facts, _context: Context) -> Judgement {
    if let Err(outcome) = needs_real_ports(facts) {
        return outcome.into();
    }
    need(&facts.pcie.endpoints)
        .map(|endpoints| Judgement::each(endpoints, |endpoint| judge(facts, endpoints, endpoint)))
        .into()
}

fn judge(facts: &Facts, all: &[Endpoint], endpoint: &Endpoint) -> Result<Option<Finding>, Outcome> {
    let path = need(&endpoint.path)?;
    let no_link = || Outcome::not_applicable("the device has no PCIe link");
    let device = path.first().ok_or_else(no_link)?;
    // The last link is the one that goes through a slot of the board; what a card does behind its own switch is
    // its maker's choice.
    let link = links(path).last().ok_or_else(no_link)?;
    let (Some(possible), Some(speed), Some(width)) =
        (link.possible(), link.device.max_speed_mtps.value(), link.device.max_width.value())
    else {
        return Err(no_link());
    };
    let narrower = possible.1 < width;
    // An older board is not a fault. It is worth a word only when the same board has a faster slot.
    let slower = possible.0 < speed && all.iter().any(|other| has_faster_port(other, possible));
    if !narrower && !slower || is_display(device) || link.current().is_none() {
        return Ok(None);
    }
    let percent = link_mbps(possible.0, possible.1) * 100 / link_mbps(speed, width).max(1);
    let network = device.class.text().is_some_and(|class| class.starts_with("0x02"));
    Ok(Some(
        Finding::new(
            Subject::device(name(facts, endpoint)),
            format!(
                "its port offers {}, {percent} % of the {} it can use",
                words(possible),
                words((speed, width))
            ),
        )
        .with(Evidence::of(&link.port.max_width).expected(width))
        .with(Evidence::of(&link.port.max_speed_mtps).expected(speed))
        .impact(if network { Impact::Depends } else { Impact::Small })
        .remedy(work_on_device(
            facts,
            "move it to a slot with more lanes or a newer generation, if one is free",
        )),
    ))
}

fn has_faster_port(endpoint: &Endpoint, (speed, width): (u32, u32)) -> bool {
    let port = endpoint.path.get().and_then(|path| path.last());
    port.is_some_and(|port| {
        port.max_speed_mtps.value().is_some_and(|other| other > speed)
            && port.max_width.value().is_some_and(|other| other >= width)
    })
}

#[cfg(test)]
mod tests {
    use zenkai_host::FakeHost;

    use super::super::shared::worlds::{Function, add};
    use crate::{Context, checks::testing::judge_host};

    fn fires(paths: &[&[Function<'_>]]) -> bool {
        let mut host = FakeHost::new(&[]);
        for (bus, path) in (1..).zip(paths) {
            (host, _) = add(host, bus, path);
        }
        !judge_host(&super::CHECK, host, Context::default()).findings.is_empty()
    }

    #[test]
    fn only_where_another_slot_would_be_better() {
        let narrow: &[Function<'_>] =
            &[("60400", ("8.0", 4), ("8.0", 4)), ("010700", ("8.0", 4), ("8.0", 8))];
        assert!(fires(&[narrow]));
        let older: &[Function<'_>] =
            &[("60400", ("8.0", 4), ("8.0", 16)), ("010802", ("8.0", 4), ("16.0", 4))];
        assert!(!fires(&[older]), "a newer drive in an older board");
        let faster: &[Function<'_>] =
            &[("60400", ("16.0", 4), ("16.0", 4)), ("010802", ("16.0", 4), ("16.0", 4))];
        assert!(fires(&[older, faster]));
        assert!(!fires(&[faster]));
    }

    #[test]
    fn the_ports_of_a_guest_are_made_up() {
        // A 100 Gbit/s card handed to a guest: QEMU before 4.0 shows the port above it as 2.5 GT/s x1.
        let port: &[Function<'_>] =
            &[("60400", ("2.5", 1), ("2.5", 1)), ("020000", ("16.0", 16), ("16.0", 16))];
        let world = || add(FakeHost::new(&[]), 1, port).0;
        let found = |host| judge_host(&super::CHECK, host, Context::default()).findings.len();
        assert_eq!(found(world()), 1);
        let guest = world()
            .file("/proc/cpuinfo", "processor: 0\nflags: fpu hypervisor\n")
            .file("/sys/class/dmi/id/sys_vendor", "QEMU\n");
        assert_eq!(found(guest), 0);
    }
}
