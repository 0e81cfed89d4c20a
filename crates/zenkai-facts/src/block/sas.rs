//! The SAS link of a disk (`drivers/scsi/scsi_transport_sas.c`).

use std::{cell::RefCell, collections::BTreeMap};

use serde::Serialize;

use super::sata::speed_mbps;
use crate::{Observed, Reader, Reason};

/// The links between a SAS host adapter and a drive.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct SasLink {
    /// The port the drive is plugged into, of the adapter or of an expander.
    pub port: SasPort,
    /// The adapter's port that leads to the expander, shared by all drives behind it; none when the drive is
    /// connected to the adapter directly.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub host_port: Option<SasPort>,
}

/// A SAS port: one or several lanes ("phys") to one partner.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct SasPort {
    /// The kernel's name, such as `port-0:3`.
    pub name: String,
    /// Number of lanes.
    pub lanes: Observed<u64>,
    /// Speed of a lane now, in Mbit/s on the wire.
    pub speed_mbps: Observed<u32>,
    /// Highest speed the lane is allowed.
    pub limit_mbps: Observed<u32>,
    /// Highest speed the lane's hardware can do.
    pub hardware_limit_mbps: Observed<u32>,
}

/// Reads SAS ports; the port towards an expander is read once for all drives behind it.
#[derive(Default)]
pub(super) struct Ports(RefCell<BTreeMap<String, SasPort>>);

impl Ports {
    /// The link of the disk with this canonical path, when it is a SAS one.
    pub(super) fn link(&self, reader: &Reader<'_>, canonical: &str) -> Option<SasLink> {
        let dirs = port_dirs(canonical);
        let (nearest, first) = (dirs.last()?, dirs.first()?);
        let host_port = (dirs.len() > 1).then(|| self.port(reader, first));
        Some(SasLink { port: self.port(reader, nearest), host_port })
    }

    fn port(&self, reader: &Reader<'_>, dir: &str) -> SasPort {
        if let Some(port) = self.0.borrow().get(dir) {
            return port.clone();
        }
        let port = read_port(reader, dir);
        self.0.borrow_mut().insert(dir.to_owned(), port.clone());
        port
    }
}

/// The directories of the SAS ports on a path, the adapter's first.
fn port_dirs(canonical: &str) -> Vec<&str> {
    let ends = canonical.match_indices("/port-").map(|(start, _)| {
        canonical
            .get(start + 1..)
            .and_then(|rest| rest.find('/'))
            .map_or(canonical.len(), |at| start + 1 + at)
    });
    ends.filter_map(|end| canonical.get(..end)).collect()
}

fn read_port(reader: &Reader<'_>, dir: &str) -> SasPort {
    let phys = reader
        .names(dir)
        .map(|names| names.into_iter().filter(|name| name.starts_with("phy-")).collect::<Vec<_>>());
    let first = phys.get().and_then(|phys| phys.first().cloned());
    let rate = |name: &str| match &first {
        Some(phy) => {
            reader.understood(&format!("/sys/class/sas_phy/{phy}/{name}"), |text| speed_mbps(text, "bit"))
        }
        None => Observed::unavailable(dir, Reason::Absent),
    };
    SasPort {
        name: dir.rsplit('/').next().unwrap_or(dir).to_owned(),
        speed_mbps: rate("negotiated_linkrate"),
        limit_mbps: rate("maximum_linkrate"),
        hardware_limit_mbps: rate("maximum_linkrate_hw"),
        lanes: phys.map(|phys| phys.len() as u64),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ports_on_a_path() {
        let path =
            "/sys/devices/pci0000:00/0000:01:00.0/host0/port-0:0/expander-0:0/port-0:0:3/end_device-0:0:3/x";
        let dirs = port_dirs(path);
        assert_eq!(dirs.len(), 2);
        assert!(dirs[0].ends_with("host0/port-0:0"));
        assert!(dirs[1].ends_with("expander-0:0/port-0:0:3"));
        assert!(port_dirs("/sys/devices/virtual/block/loop0").is_empty());
        assert_eq!(port_dirs("/a/port-1"), ["/a/port-1"]);
    }
}
