//! Who built the machine and its firmware, as DMI tells. Serial numbers, UUIDs and asset tags are never read.

use serde::Serialize;

use crate::{Observed, Reader, Reason, reader::join};

/// The machine's make and its firmware (`Documentation/ABI/testing/sysfs-firmware-dmi-entries`,
/// `/sys/class/dmi/id`).
#[derive(Debug, Clone, Serialize)]
pub struct Firmware {
    /// Who sells the machine.
    pub vendor: Observed<String>,
    /// Its model.
    pub product: Observed<String>,
    /// Its line of models.
    pub product_family: Observed<String>,
    /// Revision or marketing name of the model.
    pub product_version: Observed<String>,
    /// Who made the board.
    pub board_vendor: Observed<String>,
    /// The board's model.
    pub board: Observed<String>,
    /// The board's revision.
    pub board_version: Observed<String>,
    /// SMBIOS number of the enclosure's kind: 17 main server chassis, 23 rack mount, 9 laptop …
    pub chassis_type: Observed<u32>,
    /// Who wrote the firmware.
    pub bios_vendor: Observed<String>,
    /// Its version.
    pub bios_version: Observed<String>,
    /// Its date, as the maker writes it (usually month/day/year).
    pub bios_date: Observed<String>,
    /// Its release number.
    pub bios_release: Observed<String>,
    /// Release number of the embedded controller; on some servers of the management controller.
    pub controller_release: Observed<String>,
    /// Whether the machine was started by UEFI.
    pub uefi: Observed<bool>,
}

/// Reads this subsystem.
pub fn observe(reader: &Reader<'_>) -> Firmware {
    let id = |name: &str| named(reader.text(&join("/sys/class/dmi/id", name)));
    let efi = reader.names("/sys/firmware/efi");
    let uefi = match efi.reason() {
        Some(Reason::Absent) => Observed::known(efi.source(), false),
        _ => efi.map(|_| true),
    };
    Firmware {
        vendor: id("sys_vendor"),
        product: id("product_name"),
        product_family: id("product_family"),
        product_version: id("product_version"),
        board_vendor: id("board_vendor"),
        board: id("board_name"),
        board_version: id("board_version"),
        chassis_type: reader.number("/sys/class/dmi/id/chassis_type"),
        bios_vendor: id("bios_vendor"),
        bios_version: id("bios_version"),
        bios_date: id("bios_date"),
        bios_release: id("bios_release"),
        controller_release: id("ec_firmware_release"),
        uefi,
    }
}

/// What board makers leave in fields they should have filled.
const FILLERS: [&str; 8] = [
    "to be filled by o.e.m.",
    "default string",
    "not specified",
    "system manufacturer",
    "system product name",
    "system version",
    "not applicable",
    "none",
];

fn named(text: Observed<String>) -> Observed<String> {
    let filler = text.text().is_some_and(|text| {
        text.trim_matches(['.', 'x', 'X', '0', ' ']).is_empty()
            || FILLERS.contains(&text.to_ascii_lowercase().as_str())
    });
    if filler {
        return Observed::unavailable(
            text.source(),
            Reason::NotApplicable("the maker left it blank".to_owned()),
        );
    }
    text
}

#[cfg(test)]
mod tests {
    use zenkai_host::FakeHost;

    use super::*;

    #[test]
    fn names_and_fillers() {
        let host = FakeHost::new(&[
            ("/sys/class/dmi/id/sys_vendor", "Dell Inc.\n"),
            ("/sys/class/dmi/id/product_version", "To be filled by O.E.M.\n"),
            ("/sys/class/dmi/id/board_version", "0123456789\n"),
            ("/sys/class/dmi/id/product_family", " \n"),
            ("/sys/firmware/efi/fw_platform_size", "64\n"),
        ]);
        let firmware = observe(&Reader::new(&host));
        assert_eq!(firmware.vendor.text(), Some("Dell Inc."));
        assert_eq!(firmware.board_version.text(), Some("0123456789"));
        assert!(matches!(firmware.product_version.reason(), Some(Reason::NotApplicable(_))));
        assert!(matches!(firmware.product_family.reason(), Some(Reason::NotApplicable(_))));
        assert!(firmware.product.is_absent());
        assert_eq!(firmware.uefi.value(), Some(true));
    }
}
