//! A SAS link below what it should be.

use zenkai_facts::{
    Facts,
    block::{Disk, SasLink},
};

use super::shared::each_disk;
use crate::checks::shared::work_on_device;
use crate::{Check, Context, Evidence, Finding, Impact, Judgement, Outcome, Subject, Subsystem, need};

/// See the explanation.
pub(super) static CHECK: Check = Check {
    id: "sas-link-slow",
    subsystem: Subsystem::Block,
    summary: "a SAS link runs below its port, its limit or its equals",
    impact: Impact::Moderate,
    effect: "the link is the ceiling of the drive: 3 Gbit/s carries 300 MB/s, 6 Gbit/s 600 MB/s (arithmetic)",
    risk: "cables and drives are touched; have a backup",
    source: "https://github.com/torvalds/linux/blob/master/drivers/scsi/scsi_transport_sas.c",
    explanation: include_str!("sas_link_slow.md"),
    run,
};

/// SATA drives and the older half of SAS drives go no faster.
const ORDINARY_MBPS: u32 = 6_000;

fn run(facts: &Facts, _context: Context) -> Judgement {
    each_disk(facts, |disk| disk.sas.as_ref().map(|link| judge(facts, disk, link)))
}

fn judge(facts: &Facts, disk: &Disk, link: &SasLink) -> Result<Option<Finding>, Outcome> {
    let port = &link.port;
    let speed = *need(&port.speed_mbps)?;
    let possible = port.hardware_limit_mbps.value().or_else(|| port.limit_mbps.value());
    // An equal drive on a faster adapter proves nothing about this port.
    let equal = best_of_equals(facts, disk).map(|best| best.min(possible.unwrap_or(best)));
    let (what, expected) = match (possible, equal) {
        (_, Some(best)) if speed < best => {
            (format!("linked at {} where drives of the same model reach {}", gbit(speed), gbit(best)), best)
        }
        (Some(possible), _) if speed < possible.min(ORDINARY_MBPS) => {
            let expected = possible.min(ORDINARY_MBPS);
            (format!("linked at {} on a port of {}", gbit(speed), gbit(possible)), expected)
        }
        _ => return Ok(None),
    };
    Ok(Some(
        Finding::new(Subject::device(&disk.name), what)
            .with(Evidence::of(&port.speed_mbps).expected(expected))
            .with(Evidence::of(&port.limit_mbps))
            .with(Evidence::of(&port.hardware_limit_mbps))
            .impact(if disk.queue.rotational.value() == Some(true) {
                Impact::Small
            } else {
                Impact::Moderate
            })
            .remedy(work_on_device(
                facts,
                "check cable, backplane and expander; try the drive in another slot",
            ))
            .because(format!("a SAS link runs at {}", gbit(speed))),
    ))
}

/// The fastest link among drives of the same model: proof of what the drive itself can do.
fn best_of_equals(facts: &Facts, disk: &Disk) -> Option<u32> {
    let model = disk.model.text()?;
    let equals = facts.block.disks.get()?.iter().filter(|other| other.model.text() == Some(model));
    equals.filter_map(|other| other.sas.as_ref()?.port.speed_mbps.value()).max()
}

fn gbit(mbps: u32) -> String {
    format!("{}.{} Gbit/s", mbps / 1000, mbps % 1000 / 100)
}

#[cfg(test)]
mod tests {
    use zenkai_host::FakeHost;

    use super::super::shared::worlds::{add, judged};

    fn found(drives: &[(&str, &str)]) -> Vec<String> {
        let all: Vec<_> = drives.iter().map(|(model, speed)| (*model, *speed, "12.0")).collect();
        found_on(&all)
    }

    fn found_on(drives: &[(&str, &str, &str)]) -> Vec<String> {
        let mut host = FakeHost::new(&[]);
        for (n, (model, speed, most)) in drives.iter().enumerate() {
            let port = format!("/sys/devices/pci0000:00/0000:01:00.0/host0/port-0:{n}");
            let disk = format!("{port}/end_device-0:{n}/target0:0:{n}/0:0:{n}:0/block/sd{n}");
            let phy = format!("/sys/class/sas_phy/phy-0:{n}");
            host = add(host, &disk, &[("device/model", model), ("queue/rotational", "0")])
                .file(&format!("{port}/phy-0:{n}"), "")
                .file(&format!("{phy}/negotiated_linkrate"), &format!("{speed} Gbit\n"))
                .file(&format!("{phy}/maximum_linkrate_hw"), &format!("{most} Gbit\n"))
                .file(&format!("{phy}/maximum_linkrate"), &format!("{most} Gbit\n"));
        }
        judged(&super::CHECK, host, None).findings.into_iter().map(|finding| finding.what).collect()
    }

    #[test]
    fn slower_than_it_must_be() {
        assert_eq!(found(&[("A", "3.0")]), ["linked at 3.0 Gbit/s on a port of 12.0 Gbit/s"]);
        assert_eq!(
            found(&[("A", "12.0"), ("A", "6.0")]),
            ["linked at 6.0 Gbit/s where drives of the same model reach 12.0 Gbit/s"]
        );
    }

    #[test]
    fn a_sata_drive_on_a_faster_port_is_healthy() {
        assert!(found(&[("A", "6.0"), ("B", "12.0")]).is_empty());
    }

    #[test]
    fn an_older_adapter_beside_a_newer_one_is_healthy() {
        assert!(found_on(&[("A", "12.0", "12.0"), ("A", "6.0", "6.0")]).is_empty());
    }
}
