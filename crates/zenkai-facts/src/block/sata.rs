//! The SATA link of a disk (`Documentation/ABI/testing/sysfs-ata`).

use serde::Serialize;

use crate::{Observed, Reader, Reason};

/// The link between a SATA port and its drive.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct SataLink {
    /// The port's number, as in `ata3` of kernel messages.
    pub port: u32,
    /// Speed now, in Mbit/s on the wire: 1500, 3000 or 6000.
    pub speed_mbps: Observed<u32>,
    /// The highest speed the kernel allows now; it lowers this after transfer errors.
    pub limit_mbps: Observed<u32>,
    /// The highest speed the port was set up for.
    pub hardware_limit_mbps: Observed<u32>,
    /// How often the kernel has slowed the link down because of errors.
    pub slowdowns: Observed<u32>,
}

pub(super) fn observe(reader: &Reader<'_>, port: u32) -> SataLink {
    let link = |name: &str| {
        reader.understood(&format!("/sys/class/ata_link/link{port}/{name}"), |text| speed_mbps(text, "bps"))
    };
    SataLink {
        port,
        speed_mbps: link("sata_spd"),
        limit_mbps: link("sata_spd_limit"),
        hardware_limit_mbps: link("hw_sata_spd_limit"),
        slowdowns: reader.number(&format!("/sys/class/ata_device/dev{port}.0/spdn_cnt")),
    }
}

/// `6.0 Gbps` or `12.0 Gbit` in Mbit/s; anything else of text means that no speed is known.
pub(super) fn speed_mbps(text: &str, unit_end: &str) -> Result<u32, Reason> {
    let none =
        || Reason::NotApplicable(format!("the kernel shows {}", text.chars().take(40).collect::<String>()));
    let (number, unit) = text.split_once(' ').ok_or_else(none)?;
    if unit.strip_prefix('G') != Some(unit_end) {
        return Err(none());
    }
    let (whole, tenths) = number.split_once('.').ok_or_else(none)?;
    let whole: u32 = whole.parse().map_err(|_| none())?;
    let tenths: u32 = tenths.parse().ok().filter(|tenths| *tenths < 10).ok_or_else(none)?;
    whole.checked_mul(1000).and_then(|mbps| mbps.checked_add(tenths * 100)).ok_or_else(none)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn speeds() {
        assert_eq!(speed_mbps("1.5 Gbps", "bps"), Ok(1_500));
        assert_eq!(speed_mbps("12.0 Gbit", "bit"), Ok(12_000));
        assert_eq!(speed_mbps("22.5 Gbit", "bit"), Ok(22_500));
        for none in ["<unknown>", "Unknown", "Phy disabled", "", "6 Gbps", "6.0 Gbit"] {
            assert!(matches!(speed_mbps(none, "bps"), Err(Reason::NotApplicable(_))), "{none}");
        }
    }

    proptest! {
        #[test]
        fn never_panics(text in "[0-9]{0,12}[.]?[0-9]{0,12} ?G?[a-z]{0,4}") {
            let _ = speed_mbps(&text, "bps");
        }
    }
}
