//! What the PCIe checks share: the links on a path, and words for them.

use zenkai_facts::{
    Facts,
    pcie::{Endpoint, Hop, link_mbps},
    virtualisation::Kind,
};

use crate::Outcome;

/// In a guest the port above a device is the hypervisor's, and its speed and width are made up; so is the speed of
/// most devices. QEMU without KVM is no place to work but a laboratory, in which they are what somebody set up.
pub(super) fn needs_real_ports(facts: &Facts) -> Result<(), Outcome> {
    match facts.virtualisation.kind.get() {
        Some(kind) if kind.is_guest() && *kind != Kind::Qemu => {
            Err(Outcome::not_applicable("the PCIe ports here are the hypervisor's"))
        }
        _ => Ok(()),
    }
}

/// One link: the end away from the root complex and the port it is plugged into.
#[derive(Clone, Copy)]
pub(super) struct Link<'f> {
    pub(super) device: &'f Hop,
    pub(super) port: &'f Hop,
}

impl Link<'_> {
    /// What the link does now, as the device sees it: mega-transfers per second and lanes.
    pub(super) fn current(&self) -> Option<(u32, u32)> {
        Some((self.device.current_speed_mtps.value()?, self.device.current_width.value()?))
    }

    /// What both ends could do.
    pub(super) fn possible(&self) -> Option<(u32, u32)> {
        let speed = self.device.max_speed_mtps.value()?.min(self.port.max_speed_mtps.value()?);
        Some((speed, self.device.max_width.value()?.min(self.port.max_width.value()?)))
    }
}

/// The links on a path from a device to its root port. Hops come in pairs: the device and the port above it, the
/// switch's upstream side and the port above that. Between the two sides of a switch there is no link.
pub(super) fn links(path: &[Hop]) -> impl Iterator<Item = Link<'_>> {
    path.chunks_exact(2).filter_map(|pair| match pair {
        [device, port] => Some(Link { device, port }),
        _ => None,
    })
}

/// `8 GT/s x4 (31 Gbit/s)`.
pub(super) fn words((speed, width): (u32, u32)) -> String {
    let gbit = link_mbps(speed, width) / 1000;
    let rest = speed % 1000 / 100;
    let tenths = if rest == 0 { String::new() } else { format!(".{rest}") };
    format!("{}{tenths} GT/s x{width} ({gbit} Gbit/s)", speed / 1000)
}

/// The device's address with what a person knows it by: its disks, or its driver.
pub(super) fn name(facts: &Facts, endpoint: &Endpoint) -> String {
    let disks = facts.block.disks.get().into_iter().flatten().filter(|disk| {
        disk.pcie.get().and_then(|path| path.first()).is_some_and(|first| *first == endpoint.address)
    });
    let disks: Vec<&str> = disks.map(|disk| disk.name.as_str()).collect();
    let driver = endpoint.path.get().and_then(|path| path.first()).and_then(|hop| hop.driver.text());
    match (disks.as_slice(), driver) {
        ([], None) => endpoint.address.clone(),
        ([], Some(driver)) => format!("{} ({driver})", endpoint.address),
        ([only], _) => format!("{} ({only})", endpoint.address),
        (many, driver) => format!("{} ({}{} disks)", endpoint.address, prefix(driver), many.len()),
    }
}

fn prefix(driver: Option<&str>) -> String {
    driver.map(|driver| format!("{driver}, ")).unwrap_or_default()
}

/// Whether this is a graphics or compute card: those lower the speed of their link whenever they are idle.
pub(super) fn is_display(hop: &Hop) -> bool {
    hop.class.text().is_some_and(|class| class.starts_with("0x03") || class.starts_with("0x12"))
}

#[cfg(test)]
pub(super) mod worlds {
    use zenkai_host::FakeHost;

    /// One function: class, then current and maximum `(speed, width)`.
    pub(in crate::checks::pcie) type Function<'f> = (&'f str, (&'f str, u32), (&'f str, u32));

    /// Adds a path of functions, the root port first; gives back the device's directory.
    pub(in crate::checks::pcie) fn add(
        host: FakeHost,
        bus: u32,
        path: &[Function<'_>],
    ) -> (FakeHost, String) {
        let mut dir = "/sys/devices/pci0000:00".to_owned();
        let mut host = host;
        for (depth, (class, now, max)) in path.iter().enumerate() {
            let address = format!("0000:{bus:02x}:{depth:02x}.0");
            dir = format!("{dir}/{address}");
            let files = [
                ("class", format!("0x{class}")),
                ("uevent", format!("PCI_CLASS={class}")),
                ("current_link_speed", format!("{} GT/s PCIe", now.0)),
                ("current_link_width", now.1.to_string()),
                ("max_link_speed", format!("{} GT/s PCIe", max.0)),
                ("max_link_width", max.1.to_string()),
                ("power/runtime_status", "active".to_owned()),
            ];
            for (name, content) in files {
                host = host.file(&format!("{dir}/{name}"), &format!("{content}\n"));
            }
            host = host.link(&format!("/sys/bus/pci/devices/{address}"), &dir);
        }
        (host, dir)
    }
}
