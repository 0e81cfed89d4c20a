//! A SATA link below what port and drive can do.

use zenkai_facts::{
    Facts,
    block::{Disk, SataLink},
};

use super::shared::each_disk;
use crate::checks::shared::work_on_device;
use crate::{Check, Context, Evidence, Finding, Impact, Judgement, Outcome, Subject, Subsystem, need};

/// See the explanation.
pub(super) static CHECK: Check = Check {
    id: "sata-link-slow",
    subsystem: Subsystem::Block,
    summary: "a SATA link runs below the speed of its drive",
    impact: Impact::Moderate,
    effect: "the link is the ceiling of sequential speed: 1.5 Gbit/s carries 150 MB/s, 3 Gbit/s 300 MB/s (arithmetic)",
    risk: "cables and drives are touched; have a backup",
    source: "https://docs.kernel.org/admin-guide/abi-testing.html",
    explanation: include_str!("sata_link_slow.md"),
    run,
};

/// What every SATA SSD and port of the last decade can do.
const FULL_MBPS: u32 = 6_000;

fn run(facts: &Facts, _context: Context) -> Judgement {
    each_disk(facts, |disk| disk.sata.as_ref().map(|link| judge(facts, disk, link)))
}

fn judge(facts: &Facts, disk: &Disk, link: &SataLink) -> Result<Option<Finding>, Outcome> {
    // Emulated ports show any speed; no cable is behind them.
    if !disk.is_real_hardware() {
        return Err(Outcome::not_applicable("the SATA port is a hypervisor's"));
    }
    let speed = *need(&link.speed_mbps)?;
    let lowered =
        link.limit_mbps.value().zip(link.hardware_limit_mbps.value()).is_some_and(|(now, full)| now < full)
            || link.slowdowns.value().is_some_and(|count| count > 0);
    let flash = !*need(&disk.queue.rotational)?;
    let (what, impact, remedy) = if lowered {
        (
            format!("the kernel slowed the link down to {} after errors", gbit(speed)),
            if flash { Impact::Large } else { Impact::Moderate },
            "replace the cable or the drive's slot; look for ATA errors in the kernel log",
        )
    } else if flash
        && speed < FULL_MBPS
        && link.hardware_limit_mbps.value().is_some_and(|full| full < FULL_MBPS)
    {
        (
            format!("a drive without platters is on a port of {}", gbit(speed)),
            Impact::Moderate,
            "move it to a port of 6 Gbit/s",
        )
    } else if flash && speed < FULL_MBPS {
        (
            format!("a drive without platters is linked at {}", gbit(speed)),
            Impact::Moderate,
            "check cable, backplane and port; only drives from before 2010 or so are that slow themselves",
        )
    } else {
        return Ok(None);
    };
    Ok(Some(
        Finding::new(Subject::device(&disk.name), what)
            .with(Evidence::of(&link.speed_mbps).expected(FULL_MBPS))
            .with(Evidence::of(&link.limit_mbps))
            .with(Evidence::of(&link.hardware_limit_mbps))
            .with(Evidence::of(&link.slowdowns).expected(0))
            .impact(impact)
            .remedy(work_on_device(facts, remedy))
            .because(format!("a SATA link runs at {}", gbit(speed))),
    ))
}

fn gbit(mbps: u32) -> String {
    format!("{}.{} Gbit/s", mbps / 1000, mbps % 1000 / 100)
}

#[cfg(test)]
mod tests {
    use super::super::shared::worlds::{SATA, add, disk, judged};
    use crate::{Finding, Impact};
    use zenkai_host::FakeHost;

    fn found(rotational: &str, model: &str, speeds: [&str; 3]) -> Vec<Finding> {
        let host = disk(SATA, &[("queue/rotational", rotational), ("device/model", model)]);
        let names = ["sata_spd", "sata_spd_limit", "hw_sata_spd_limit"];
        let host = names.iter().zip(speeds).fold(host, |host: FakeHost, (name, speed)| {
            host.file(&format!("/sys/class/ata_link/link1/{name}"), &format!("{speed}\n"))
        });
        judged(&super::CHECK, add(host, SATA, &[]), None).findings
    }

    #[test]
    fn lowered_or_too_slow_for_flash() {
        let lowered = found("0", "FAST SSD", ["1.5 Gbps", "1.5 Gbps", "6.0 Gbps"]);
        assert!(lowered[0].what.contains("slowed the link down to 1.5 Gbit/s"));
        assert_eq!(lowered[0].impact, Some(Impact::Large));
        assert!(found("0", "SSD", ["3.0 Gbps", "3.0 Gbps", "3.0 Gbps"])[0].what.contains("on a port of 3.0"));
        assert!(!found("0", "SSD", ["3.0 Gbps", "<unknown>", "6.0 Gbps"]).is_empty());
    }

    #[test]
    fn silent_where_the_link_is_enough() {
        assert!(found("0", "SSD", ["6.0 Gbps", "6.0 Gbps", "6.0 Gbps"]).is_empty());
        assert!(
            found("1", "OLD HDD", ["3.0 Gbps", "6.0 Gbps", "6.0 Gbps"]).is_empty(),
            "platters are slower"
        );
        assert!(found("0", "QEMU HARDDISK", ["1.5 Gbps", "<unknown>", "<unknown>"]).is_empty());
    }
}
