//! Many fast drives behind an expander with a thin way to the adapter.

use std::collections::BTreeMap;

use zenkai_facts::{
    Facts,
    block::{Disk, SasPort},
};

use crate::checks::shared::work_on_device;
use crate::{Check, Context, Evidence, Finding, Impact, Judgement, Subject, Subsystem, need};

/// See the explanation.
pub(super) static CHECK: Check = Check {
    id: "sas-uplink-oversubscribed",
    subsystem: Subsystem::Block,
    summary: "drives behind an expander can deliver far more than its way to the adapter carries",
    impact: Impact::Moderate,
    effect: "reading all drives at once stops at lanes × rate of the adapter's port (arithmetic)",
    risk: "cabling is touched",
    source: "https://github.com/torvalds/linux/blob/master/drivers/scsi/scsi_transport_sas.c",
    explanation: include_str!("sas_uplink_oversubscribed.md"),
    run,
};

/// As for PCIe: up to this factor it is how storage is built.
const FACTOR: u64 = 2;

/// What a spinning disk delivers at its best, in Mbit/s on a SAS link: about 250 MB/s.
const SPINNING_MBPS: u64 = 2_500;

fn run(facts: &Facts, _context: Context) -> Judgement {
    need(&facts.block.disks).map(|disks| judge(facts, disks)).into()
}

fn judge(facts: &Facts, disks: &[Disk]) -> Judgement {
    let mut ports: BTreeMap<&str, (&SasPort, u64, u64)> = BTreeMap::new();
    for disk in disks {
        let Some(link) = &disk.sas else { continue };
        let (Some(host), Some(speed)) = (&link.host_port, link.port.speed_mbps.value()) else { continue };
        let Some(rotational) = disk.queue.rotational.value() else { continue };
        let entry = ports.entry(&host.name).or_insert((host, 0, 0));
        entry.1 += 1;
        entry.2 += if rotational { u64::from(speed).min(SPINNING_MBPS) } else { u64::from(speed) };
    }
    Judgement::each(ports.values(), |(port, drives, mbps)| {
        let carried = need(&port.lanes)?.saturating_mul(u64::from(*need(&port.speed_mbps)?));
        if carried == 0 || *mbps <= carried.saturating_mul(FACTOR) {
            return Ok(None);
        }
        let (wanted, carried) = (mbps / 1000, carried / 1000);
        Ok(Some(
            Finding::new(
                Subject::device(&port.name),
                format!("{drives} drives that together can deliver {wanted} Gbit/s share {carried} Gbit/s"),
            )
            .with(Evidence::of(&port.lanes))
            .with(Evidence::of(&port.speed_mbps))
            .with(
                Evidence::derived("link rates of the drives", format!("{mbps} Mbit/s"))
                    .expected(format!("at most {} Gbit/s", carried * FACTOR)),
            )
            .remedy(work_on_device(
                facts,
                "connect the expander with more lanes, or spread the drives over more ports",
            )),
        ))
    })
}

#[cfg(test)]
mod tests {
    use zenkai_host::FakeHost;

    use super::super::shared::worlds::{add, judged};

    fn found(drives: u32, rotational: &str) -> usize {
        let host_dir = "/sys/devices/pci0000:00/0000:01:00.0/host0";
        let mut host = FakeHost::new(&[("/sys/class/sas_phy/phy-0:0/negotiated_linkrate", "6.0 Gbit\n")]);
        for lane in 0..4 {
            host = host.file(&format!("{host_dir}/port-0:0/phy-0:{lane}"), "");
        }
        for n in 0..drives {
            let port = format!("{host_dir}/port-0:0/expander-0:0/port-0:0:{n}");
            let disk = format!("{port}/end_device-0:0:{n}/target0:0:{n}/0:0:{n}:0/block/sd{n}");
            host = add(host, &disk, &[("queue/rotational", rotational)])
                .file(&format!("{port}/phy-0:0:{n}"), "")
                .file(&format!("/sys/class/sas_phy/phy-0:0:{n}/negotiated_linkrate"), "6.0 Gbit\n");
        }
        judged(&super::CHECK, host, None).findings.len()
    }

    #[test]
    fn flash_fills_the_way_platters_do_not() {
        assert_eq!(found(20, "0"), 1);
        assert_eq!(found(8, "0"), 0);
        assert_eq!(found(16, "1"), 0);
    }
}
