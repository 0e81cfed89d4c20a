//! Devices that a hypervisor imitates in software, where a paravirtual one would be faster.

use serde::Serialize;

use crate::{Observed, Reader, reader::join};

/// What an imitated device is used as.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum DeviceClass {
    /// A disk controller.
    Disk,
    /// A network card.
    Net,
}

/// One imitated device that carries a disk or a network interface.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct EmulatedDevice {
    /// Kernel name of the disk or interface, such as `sda` or `eth0`.
    pub name: String,
    /// Disk or network.
    pub class: DeviceClass,
    /// The driver, such as `e1000`.
    pub driver: String,
    /// PCI address of the imitated hardware.
    pub address: String,
}

/// Drivers of hardware that hypervisors imitate. `marked`: the hardware is also sold and could be passed through,
/// so that only the hypervisor's subsystem vendor proves the imitation.
struct Imitated {
    driver: &'static str,
    class: DeviceClass,
    marked: bool,
}

const IMITATED: [Imitated; 13] = {
    const fn net(driver: &'static str, marked: bool) -> Imitated {
        Imitated { driver, class: DeviceClass::Net, marked }
    }
    const fn disk(driver: &'static str, marked: bool) -> Imitated {
        Imitated { driver, class: DeviceClass::Disk, marked }
    }
    [
        net("e1000", false),
        net("e1000e", true),
        net("8139cp", false),
        net("8139too", false),
        net("pcnet32", false),
        net("ne2k-pci", false),
        net("tulip", true),
        disk("ata_piix", false),
        disk("ahci", true),
        disk("sym53c8xx", false),
        disk("mptspi", false),
        disk("mptsas", true),
        disk("megaraid_sas", true),
    ]
};

/// QEMU leaves Intel's name on its imitation of Intel's card, with a board number that no real board has
/// (`hw/net/e1000e.c`: `subsys_ven` 0x8086, `subsys` 0).
const UNTOLD_BOARD: (&str, &str) = ("0x8086", "0x0000");

/// PCI subsystem vendors of QEMU (Red Hat), VMware, VirtualBox and Xen.
const HYPERVISOR_VENDORS: [&str; 4] = ["0x1af4", "0x15ad", "0x80ee", "0x5853"];

/// The imitated devices that something depends on. A controller without a disk (the CD-ROM's, in most guests) and
/// a card without an interface are left out.
pub(super) fn observe(reader: &Reader<'_>) -> Observed<Vec<EmulatedDevice>> {
    let drivers = reader.names("/sys/bus/pci/drivers");
    let Some(present) = drivers.get() else { return drivers.map(|_| Vec::new()) };
    let mut found = Vec::new();
    let mut disks: Option<Vec<(String, String)>> = None;
    for imitated in IMITATED.iter().filter(|known| present.iter().any(|name| name == known.driver)) {
        let dir = join("/sys/bus/pci/drivers", imitated.driver);
        let names = reader.names(&dir);
        for address in names.get().into_iter().flatten().filter(|name| is_pci_address(name)) {
            if imitated.marked && !is_marked(reader, address) {
                continue;
            }
            let users = match imitated.class {
                DeviceClass::Net => interfaces(reader, address),
                DeviceClass::Disk => {
                    let disks = disks.get_or_insert_with(|| disk_paths(reader));
                    disks_behind(disks, address)
                }
            };
            found.extend(users.into_iter().map(|name| EmulatedDevice {
                name,
                class: imitated.class,
                driver: imitated.driver.to_owned(),
                address: address.clone(),
            }));
        }
    }
    drivers.map(|_| found)
}

fn is_marked(reader: &Reader<'_>, address: &str) -> bool {
    let id = |name: &str| reader.text(&format!("/sys/bus/pci/devices/{address}/subsystem_{name}"));
    let vendor = id("vendor");
    vendor.text().is_some_and(|vendor| {
        HYPERVISOR_VENDORS.contains(&vendor)
            || vendor == UNTOLD_BOARD.0 && id("device").text() == Some(UNTOLD_BOARD.1)
    })
}

fn interfaces(reader: &Reader<'_>, address: &str) -> Vec<String> {
    reader.names(&format!("/sys/bus/pci/devices/{address}/net")).get().cloned().unwrap_or_default()
}

/// SCSI and ATA disks with the place of each in the device tree.
fn disk_paths(reader: &Reader<'_>) -> Vec<(String, String)> {
    let names = reader.names("/sys/block");
    let disks = names.get().into_iter().flatten().filter(|name| name.starts_with("sd"));
    disks
        .filter_map(|name| Some((name.clone(), reader.resolve(&join("/sys/block", name)).get()?.clone())))
        .collect()
}

fn disks_behind(disks: &[(String, String)], address: &str) -> Vec<String> {
    let behind = disks.iter().filter(|(_, path)| path.split('/').any(|part| part == address));
    behind.map(|(name, _)| name.clone()).collect()
}

/// `dddd:bb:dd.f`, domain first.
fn is_pci_address(name: &str) -> bool {
    let digits = |text: &str| !text.is_empty() && text.chars().all(|letter| letter.is_ascii_hexdigit());
    let mut parts = name.split([':', '.']);
    let shape = [parts.next(), parts.next(), parts.next(), parts.next()];
    shape.iter().all(|part| part.is_some_and(digits)) && parts.next().is_none()
}

#[cfg(test)]
mod tests {
    use zenkai_host::FakeHost;

    use super::*;

    fn guest() -> FakeHost {
        FakeHost::new(&[
            ("/sys/devices/pci0000:00/0000:00:03.0/net/ens3/mtu", "1500\n"),
            ("/sys/devices/pci0000:00/0000:00:01.1/ata1/sda/size", "1\n"),
            ("/sys/devices/pci0000:00/0000:00:1f.2/subsystem_vendor", "0x1028\n"),
            ("/sys/devices/pci0000:00/0000:00:1f.2/ata3/sdb/size", "1\n"),
        ])
        .link("/sys/bus/pci/devices/0000:00:03.0", "/sys/devices/pci0000:00/0000:00:03.0")
        .link("/sys/bus/pci/devices/0000:00:1f.2", "/sys/devices/pci0000:00/0000:00:1f.2")
        .link("/sys/bus/pci/drivers/e1000/0000:00:03.0", "/sys/devices/pci0000:00/0000:00:03.0")
        .link("/sys/bus/pci/drivers/ata_piix/0000:00:01.1", "/sys/devices/pci0000:00/0000:00:01.1")
        .link("/sys/bus/pci/drivers/ahci/0000:00:1f.2", "/sys/devices/pci0000:00/0000:00:1f.2")
        .link("/sys/block/sda", "/sys/devices/pci0000:00/0000:00:01.1/ata1/sda")
        .link("/sys/block/sdb", "/sys/devices/pci0000:00/0000:00:1f.2/ata3/sdb")
    }

    #[test]
    fn only_what_carries_something_and_is_an_imitation() {
        let host = guest();
        let found = observe(&Reader::new(&host));
        let names: Vec<_> = found
            .get()
            .unwrap()
            .iter()
            .map(|device| (device.name.as_str(), device.driver.as_str()))
            .collect();
        assert_eq!(
            names,
            [("ens3", "e1000"), ("sda", "ata_piix")],
            "a passed-through AHCI controller is real"
        );
    }

    #[test]
    fn an_imitation_under_its_makers_name() {
        let card = |device: &str| {
            let dir = "/sys/devices/pci0000:00/0000:00:04.0";
            let host = FakeHost::new(&[(&format!("{dir}/net/ens4/mtu") as &str, "1500\n")])
                .file(&format!("{dir}/subsystem_vendor"), "0x8086\n")
                .file(&format!("{dir}/subsystem_device"), device)
                .link("/sys/bus/pci/devices/0000:00:04.0", dir)
                .link("/sys/bus/pci/drivers/e1000e/0000:00:04.0", dir);
            observe(&Reader::new(&host)).get().unwrap().len()
        };
        assert_eq!(card("0x0000\n"), 1);
        assert_eq!(card("0xa01f\n"), 0, "a passed-through PRO/1000 CT");
    }

    #[test]
    fn addresses() {
        assert!(is_pci_address("0000:00:1f.2"));
        assert!(is_pci_address("10000:e1:00.0"), "VMD domains are longer");
        assert!(!is_pci_address("module") && !is_pci_address("new_id") && !is_pci_address("0000:00:1f"));
    }
}
