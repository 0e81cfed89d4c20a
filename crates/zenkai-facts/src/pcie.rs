//! PCIe: the links from the devices that carry work (storage, network, accelerators) up to their root ports.
//!
//! The attributes are those of `Documentation/ABI/testing/sysfs-bus-pci` and `drivers/pci/pci-sysfs.c`.

mod link;

use std::{cell::RefCell, collections::BTreeMap};

use serde::Serialize;

use crate::{Choice, Observed, Reader, Reason, reader::join};

/// Deeper than any tree of switches; a longer path is cut here.
const DEPTH_LIMIT: usize = 32;

/// PCI base and sub classes whose link speed somebody waits for (PCI Code and ID Assignment Specification):
/// storage, network, display controllers, Fibre Channel, InfiniBand, accelerators.
const WORKING_CLASSES: [&str; 6] = ["0x01", "0x02", "0x03", "0x0c04", "0x0c06", "0x12"];

/// The PCIe links that work goes over.
#[derive(Debug, Clone, Serialize)]
pub struct Pcie {
    /// Power saving of links (ASPM) as chosen for the whole machine.
    pub aspm_policy: Observed<Choice>,
    /// Storage, network, display and accelerator functions, each with its way up to the root port.
    pub endpoints: Observed<Vec<Endpoint>>,
}

/// One PCI function that does work, with its way up.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Endpoint {
    /// Bus address, such as `0000:3b:00.0`.
    pub address: String,
    /// The function itself first, the root port last.
    pub path: Observed<Vec<Hop>>,
}

/// One PCIe function on the way from a device to the root complex.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Hop {
    /// Bus address, such as `0000:3b:00.0`.
    pub address: String,
    /// Class code as sysfs shows it, such as `0x010802`.
    pub class: Observed<String>,
    /// Vendor and device id in lower case, such as `144d:a804`.
    pub id: Observed<String>,
    /// The kernel driver bound to it.
    pub driver: Observed<String>,
    /// Link speed now, in mega-transfers per second (8 GT/s = 8000).
    pub current_speed_mtps: Observed<u32>,
    /// Highest link speed this function can do.
    pub max_speed_mtps: Observed<u32>,
    /// Lanes now; 0 and 255 are what functions without a link show and are given as unavailable.
    pub current_width: Observed<u32>,
    /// Most lanes this function can use.
    pub max_width: Observed<u32>,
    /// The NUMA node it hangs on; firmware that names none reads as not applicable.
    pub numa_node: Observed<u32>,
    /// Runtime power management: `active`, `suspended`, `unsupported` …
    pub runtime_status: Observed<String>,
    /// PCI power state: `D0` is on, `D3hot` and `D3cold` are asleep.
    pub power_state: Observed<String>,
}

impl Hop {
    /// Whether power management has put the function to sleep, so that its link says nothing about its speed.
    pub fn is_asleep(&self) -> bool {
        let suspended = self.runtime_status.text().is_some_and(|status| status.starts_with("suspend"));
        suspended || self.power_state.text().is_some_and(|state| state.starts_with("D3"))
    }

    /// What the link below or above this function carries now, in Mbit/s after line coding.
    pub fn current_mbps(&self) -> Option<u64> {
        Some(link_mbps(self.current_speed_mtps.value()?, self.current_width.value()?))
    }
}

/// What a link of this speed and width carries in one direction, in Mbit/s: up to 5 GT/s eight of ten bits are
/// data, up to 32 GT/s 128 of 130, beyond that (PAM4, flits) 242 of 256 (PCI Express Base Specification 6.0; the
/// same factors as `pcie_dev_speed_mbps` in `drivers/pci/pci.h`).
pub fn link_mbps(speed_mtps: u32, width: u32) -> u64 {
    let (data, coded) = match speed_mtps {
        0..=5_000 => (8, 10),
        5_001..=32_000 => (128, 130),
        _ => (242, 256),
    };
    u64::from(speed_mtps).saturating_mul(u64::from(width)).saturating_mul(data) / coded
}

/// Reads PCIe paths; what several devices share on their way up is read once.
pub struct Paths<'r> {
    reader: Reader<'r>,
    hops: RefCell<BTreeMap<String, Hop>>,
}

impl<'r> Paths<'r> {
    /// Nothing is read yet.
    pub fn new(reader: &Reader<'r>) -> Self {
        Self { reader: *reader, hops: RefCell::default() }
    }

    /// The hops of the device whose sysfs directory (or a link to it) is `device`, the device itself first and the
    /// root port last. Not applicable when the device is not on PCI at all.
    pub fn path(&self, device: &str) -> Observed<Vec<Hop>> {
        self.of_canonical(device, &self.reader.resolve(device))
    }

    /// The hops of a device whose canonical directory is known already.
    pub fn of_canonical(&self, device: &str, canonical: &Observed<String>) -> Observed<Vec<Hop>> {
        let canonical = match canonical.outcome() {
            Ok(canonical) => canonical,
            Err(reason) => return Observed::unavailable(device, reason.clone()),
        };
        let dirs = link::function_dirs(canonical, DEPTH_LIMIT);
        if dirs.is_empty() {
            return Observed::unavailable(device, Reason::NotApplicable("the device is not on PCI".into()));
        }
        Observed::known(device, dirs.into_iter().map(|dir| self.hop(dir)).collect())
    }

    fn hop(&self, dir: &str) -> Hop {
        let known = self.hops.borrow().get(dir).cloned();
        known.unwrap_or_else(|| {
            let hop = read_hop(&self.reader, dir);
            self.hops.borrow_mut().insert(dir.to_owned(), hop.clone());
            hop
        })
    }
}

/// Reads this subsystem.
pub fn observe(reader: &Reader<'_>, paths: &Paths<'_>) -> Pcie {
    const DEVICES: &str = "/sys/bus/pci/devices";
    let endpoint = |address: String| {
        let device = join(DEVICES, &address);
        let class = reader.text(&join(&device, "class"));
        let works =
            class.text().is_some_and(|class| WORKING_CLASSES.iter().any(|known| class.starts_with(known)));
        works.then(|| Endpoint { path: paths.path(&device), address })
    };
    Pcie {
        aspm_policy: reader.choice("/sys/module/pcie_aspm/parameters/policy"),
        endpoints: reader.names(DEVICES).map(|names| names.into_iter().filter_map(endpoint).collect()),
    }
}

fn read_hop(reader: &Reader<'_>, dir: &str) -> Hop {
    // One read tells class, ids and driver (`pci_uevent` in drivers/pci/pci-driver.c).
    let uevent = reader.text(&join(dir, "uevent"));
    let field = |name: &str| match uevent.outcome() {
        Ok(text) => match link::uevent_field(text, name) {
            Some(value) => Observed::known(uevent.source(), value.to_owned()),
            None => Observed::unavailable(uevent.source(), Reason::Absent),
        },
        Err(reason) => Observed::unavailable(uevent.source(), reason.clone()),
    };
    let number =
        |name: &str, parse: fn(&str) -> Result<u32, Reason>| reader.understood(&join(dir, name), parse);
    Hop {
        address: dir.rsplit('/').next().unwrap_or(dir).to_owned(),
        class: field("PCI_CLASS").parse(|class| link::class_code(&class)),
        id: field("PCI_ID").map(|id| id.to_ascii_lowercase()),
        driver: field("DRIVER"),
        current_speed_mtps: number("current_link_speed", link::speed_mtps),
        max_speed_mtps: number("max_link_speed", link::speed_mtps),
        current_width: number("current_link_width", link::width),
        max_width: number("max_link_width", link::width),
        numa_node: number("numa_node", link::numa_node),
        runtime_status: reader.text(&join(dir, "power/runtime_status")),
        power_state: reader.text(&join(dir, "power_state")),
    }
}

#[cfg(test)]
mod tests {
    use zenkai_host::FakeHost;

    use super::*;

    const PORT: &str = "/sys/devices/pci0000:3a/0000:3a:00.0";
    const DISK: &str = "/sys/devices/pci0000:3a/0000:3a:00.0/0000:3b:00.0";

    fn world() -> FakeHost {
        let host = FakeHost::new(&[
            ("/sys/devices/pci0000:3a/0000:3a:00.0/0000:3b:00.0/nvme/nvme0/nvme0n1/size", "1\n"),
            ("/sys/devices/virtual/block/zram0/size", "1\n"),
        ]);
        let files = [
            (DISK, "uevent", "DRIVER=nvme\nPCI_CLASS=10802\nPCI_ID=144D:A804\n"),
            (DISK, "class", "0x010802\n"),
            (DISK, "current_link_speed", "8.0 GT/s PCIe\n"),
            (DISK, "max_link_speed", "16.0 GT/s PCIe\n"),
            (DISK, "current_link_width", "2\n"),
            (DISK, "max_link_width", "4\n"),
            (DISK, "numa_node", "1\n"),
            (DISK, "power/runtime_status", "active\n"),
            (PORT, "uevent", "DRIVER=pcieport\nPCI_CLASS=60400\nPCI_ID=8086:2030\n"),
            (PORT, "class", "0x060400\n"),
            (PORT, "current_link_speed", "Unknown\n"),
            (PORT, "max_link_width", "255\n"),
            (PORT, "numa_node", "-1\n"),
        ];
        files
            .iter()
            .fold(host, |host, (dir, name, content)| host.file(&join(dir, name), content))
            .link("/sys/block/nvme0n1", &join(DISK, "nvme/nvme0/nvme0n1"))
            .link("/sys/block/zram0", "/sys/devices/virtual/block/zram0")
            .link("/sys/bus/pci/devices/0000:3b:00.0", DISK)
            .link("/sys/bus/pci/devices/0000:3a:00.0", PORT)
    }

    #[test]
    fn from_the_device_up_to_the_root_port() {
        let host = world();
        let reader = Reader::new(&host);
        let hops = Paths::new(&reader).path("/sys/block/nvme0n1");
        let [device, port] = hops.get().unwrap().as_slice() else { panic!("{hops:?}") };
        assert_eq!(device.address, "0000:3b:00.0");
        assert_eq!(device.class.text(), Some("0x010802"));
        assert_eq!(device.id.text(), Some("144d:a804"));
        assert_eq!(device.driver.text(), Some("nvme"));
        assert_eq!(device.current_mbps(), Some(15_753));
        assert_eq!(device.max_speed_mtps.value(), Some(16_000));
        assert_eq!(device.numa_node.value(), Some(1));
        assert!(!device.is_asleep());
        assert_eq!(port.address, "0000:3a:00.0");
        assert!(matches!(port.current_speed_mtps.reason(), Some(Reason::NotApplicable(_))));
        assert!(matches!(port.max_width.reason(), Some(Reason::NotApplicable(_))));
        assert!(matches!(port.numa_node.reason(), Some(Reason::NotApplicable(_))));
        assert!(port.max_speed_mtps.is_absent());
        assert!(matches!(
            Paths::new(&reader).path("/sys/block/zram0").reason(),
            Some(Reason::NotApplicable(_))
        ));
        assert!(Paths::new(&reader).path("/sys/block/sdz").is_absent());
    }

    #[test]
    fn only_what_works_is_an_endpoint() {
        let host = world();
        let reader = Reader::new(&host);
        let pcie = observe(&reader, &Paths::new(&reader));
        let endpoints = pcie.endpoints.get().unwrap();
        assert_eq!(endpoints.len(), 1);
        assert_eq!(endpoints[0].path.get().unwrap().len(), 2);
    }

    #[test]
    fn what_a_link_carries() {
        assert_eq!(link_mbps(2_500, 1), 2_000);
        assert_eq!(link_mbps(5_000, 8), 32_000);
        assert_eq!(link_mbps(8_000, 4), 31_507);
        assert!(link_mbps(u32::MAX, u32::MAX) > 0);
    }
}
