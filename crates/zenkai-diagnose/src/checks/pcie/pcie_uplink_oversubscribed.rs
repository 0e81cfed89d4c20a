//! Drives that together can deliver far more than the link they share.

use std::collections::BTreeMap;

use zenkai_facts::{
    Facts,
    block::{Disk, Transport},
    pcie::{Endpoint, Hop, link_mbps},
};

use super::shared::{Link, links, needs_real_ports, words};
use crate::checks::shared::work_on_device;
use crate::{Check, Context, Evidence, Finding, Impact, Judgement, Outcome, Subject, Subsystem, need};

/// See the explanation.
pub(super) static CHECK: Check = Check {
    id: "pcie-uplink-oversubscribed",
    subsystem: Subsystem::Pcie,
    summary: "drives share a PCIe link that carries far less than they can deliver",
    impact: Impact::Moderate,
    effect: "reading all drives at once stops at the link's bandwidth (arithmetic from link rates)",
    risk: "moving drives or adapters needs the machine open",
    source: "https://github.com/torvalds/linux/blob/master/drivers/pci/pci-sysfs.c",
    explanation: include_str!("pcie_uplink_oversubscribed.md"),
    run,
};

/// Some oversubscription is how storage is built: drives are rarely all busy. Beyond this factor it is worth
/// knowing.
const FACTOR: u64 = 2;

/// What a spinning disk delivers at its best, in Mbit/s: about 250 MB/s.
const SPINNING_MBPS: u64 = 2_000;

/// What shares one link.
struct Shared<'f> {
    link: Link<'f>,
    drives: u64,
    mbps: u64,
    sources: Vec<&'f Disk>,
}

fn run(facts: &Facts, _context: Context) -> Judgement {
    judge(facts).into()
}

fn judge(facts: &Facts) -> Result<Judgement, Outcome> {
    needs_real_ports(facts)?;
    let endpoints = need(&facts.pcie.endpoints)?;
    let disks = need(&facts.block.disks)?;
    let by_address: BTreeMap<&str, &Endpoint> =
        endpoints.iter().map(|endpoint| (endpoint.address.as_str(), endpoint)).collect();
    let mut shared: BTreeMap<&str, Shared<'_>> = BTreeMap::new();
    for disk in disks.iter().filter(|disk| disk.is_real_hardware()) {
        let endpoint =
            disk.pcie.get().and_then(|path| path.first()).and_then(|first| by_address.get(first.as_str()));
        let Some(path) = endpoint.and_then(|endpoint| endpoint.path.get()) else { continue };
        let Some(mbps) = rate(disk, path) else { continue };
        // An NVMe drive has its first link to itself.
        let own = usize::from(disk.transport.get() == Some(&Transport::Nvme));
        for link in links(path).skip(own) {
            let entry = shared.entry(link.device.address.as_str()).or_insert_with(|| Shared {
                link,
                drives: 0,
                mbps: 0,
                sources: Vec::new(),
            });
            entry.drives += 1;
            entry.mbps = entry.mbps.saturating_add(mbps);
            entry.sources.push(disk);
        }
    }
    Ok(Judgement::each(shared.values().filter(|shared| shared.drives > 1), |shared| {
        Ok(finding(facts, shared))
    }))
}

/// What a drive can deliver over its own link, in Mbit/s.
fn rate(disk: &Disk, path: &[Hop]) -> Option<u64> {
    if disk.queue.rotational.value()? {
        return Some(SPINNING_MBPS);
    }
    match disk.transport.get()? {
        Transport::Nvme => path.first()?.current_mbps(),
        // SATA and SAS up to 12 Gbit/s send eight bits of data in ten.
        Transport::Sata => Some(u64::from(disk.sata.as_ref()?.speed_mbps.value()?) * 8 / 10),
        Transport::Sas => Some(u64::from(disk.sas.as_ref()?.port.speed_mbps.value()?) * 8 / 10),
        _ => None,
    }
}

fn finding(facts: &Facts, shared: &Shared<'_>) -> Option<Finding> {
    let (now, possible) = (shared.link.current()?, shared.link.possible()?);
    let carried = link_mbps(now.0, now.1);
    let limit = |mbps: u64| mbps.saturating_mul(FACTOR);
    // When the link would do if it ran as it could, the degraded link is the finding.
    if shared.mbps <= limit(carried) || shared.mbps <= limit(link_mbps(possible.0, possible.1)) {
        return None;
    }
    let device = shared.link.device;
    let subject = match device.driver.text() {
        Some(driver) => format!("{} ({driver})", device.address),
        None => device.address.clone(),
    };
    let names: Vec<&str> = shared.sources.iter().take(4).map(|disk| disk.name.as_str()).collect();
    let more = if shared.sources.len() > names.len() { " …" } else { "" };
    Some(
        Finding::new(
            Subject::device(subject),
            format!(
                "{} drives that together can deliver {} Gbit/s share a link of {}",
                shared.drives,
                shared.mbps / 1000,
                words(now)
            ),
        )
        .with(Evidence::of(&device.current_speed_mtps))
        .with(Evidence::of(&device.current_width))
        .with(
            Evidence::derived(
                format!("link rates of {}{more}", names.join(", ")),
                format!("{} Mbit/s", shared.mbps),
            )
            .expected(format!("at most {} Mbit/s", limit(carried))),
        )
        .remedy(work_on_device(
            facts,
            "give the adapter a slot with more lanes, or spread the drives over more adapters",
        ))
        .because(format!("{} drives share a PCIe link of {}", shared.drives, words(now))),
    )
}

#[cfg(test)]
mod tests {
    use zenkai_host::FakeHost;

    use super::super::shared::worlds::{Function, add};
    use crate::{Context, Finding, checks::testing::judge_host};

    /// SATA drives behind a SAS adapter of eight lanes.
    fn behind_adapter(drives: u32, now: (&str, u32), port_lanes: u32, rotational: &str) -> Vec<Finding> {
        let path: [Function<'_>; 2] = [("60400", now, ("8.0", port_lanes)), ("010700", now, ("8.0", 8))];
        let (mut host, adapter) = add(FakeHost::new(&[]), 3, &path);
        for n in 0..drives {
            let port = format!("{adapter}/host0/port-0:{n}");
            let disk = format!("{port}/end_device-0:{n}/target0:0:{n}/0:0:{n}:0/block/sd{n}");
            host = host
                .file(&format!("{port}/phy-0:{n}"), "")
                .file(&format!("/sys/class/sas_phy/phy-0:{n}/negotiated_linkrate"), "6.0 Gbit\n")
                .file(&format!("{disk}/queue/rotational"), rotational)
                .link(&format!("/sys/block/sd{n}"), &disk);
        }
        judge_host(&super::CHECK, host, Context::default()).findings
    }

    #[test]
    fn twenty_ssds_behind_four_lanes() {
        let found = behind_adapter(20, ("8.0", 4), 4, "0\n");
        assert_eq!(
            found[0].what,
            "20 drives that together can deliver 96 Gbit/s share a link of 8 GT/s x4 (31 Gbit/s)"
        );
    }

    #[test]
    fn ordinary_sharing_is_no_fault() {
        assert!(behind_adapter(20, ("8.0", 8), 8, "0\n").is_empty());
        assert!(behind_adapter(24, ("8.0", 4), 4, "1\n").is_empty(), "spinning disks do not fill it");
        assert!(behind_adapter(20, ("8.0", 4), 16, "0\n").is_empty(), "the degraded link is the finding");
        assert!(behind_adapter(1, ("2.5", 1), 1, "0\n").is_empty());
    }

    #[test]
    fn nvme_behind_a_switch() {
        let port: Function<'_> = ("60400", ("8.0", 4), ("8.0", 4));
        let mut host = FakeHost::new(&[]);
        for n in 0..4 {
            let path = [port, port, ("60400", ("8.0", 4), ("8.0", 4)), ("010802", ("8.0", 4), ("8.0", 4))];
            // All four share root port and switch; only port and drive are their own.
            let dir = "/sys/devices/pci0000:00/0000:01:00.0/0000:01:01.0".to_owned();
            (host, _) = add(host, 1, &path[..2]);
            let own = [(format!("0000:02:{n:02x}.0"), "60400"), (format!("0000:1{n}:00.0"), "010802")];
            let mut below = dir;
            for (address, class) in own {
                below = format!("{below}/{address}");
                for (name, content) in [
                    ("class", format!("0x{class}")),
                    ("uevent", format!("PCI_CLASS={class}")),
                    ("current_link_speed", "8.0 GT/s PCIe".to_owned()),
                    ("max_link_speed", "8.0 GT/s PCIe".to_owned()),
                    ("current_link_width", "4".to_owned()),
                    ("max_link_width", "4".to_owned()),
                ] {
                    host = host.file(&format!("{below}/{name}"), &format!("{content}\n"));
                }
                host = host.link(&format!("/sys/bus/pci/devices/{address}"), &below);
            }
            let disk = format!("{below}/nvme/nvme{n}/nvme{n}n1");
            host = host
                .file(&format!("{disk}/queue/rotational"), "0\n")
                .link(&format!("/sys/class/nvme/nvme{n}"), &format!("{below}/nvme/nvme{n}"))
                .link(&format!("/sys/block/nvme{n}n1"), &disk);
        }
        let found = judge_host(&super::CHECK, host, Context::default()).findings;
        assert_eq!(found.len(), 1);
        assert!(
            found[0].what.starts_with("4 drives that together can deliver 126 Gbit/s"),
            "{}",
            found[0].what
        );
    }
}
