//! NVMe controllers (`drivers/nvme/host/sysfs.c`).

use serde::Serialize;

use crate::{Observed, Reader, Reason, pcie::Paths, reader::join};

/// One NVMe controller.
#[derive(Debug, Clone, Serialize)]
pub struct Nvme {
    /// The kernel's name, such as `nvme0`.
    pub name: String,
    /// Model.
    pub model: Observed<String>,
    /// Firmware revision.
    pub firmware: Observed<String>,
    /// `pcie`, `tcp`, `rdma`, `fc`, `loop`.
    pub transport: Observed<String>,
    /// `live`, `resetting`, `connecting`, `dead` …
    pub state: Observed<String>,
    /// Queues in use, the administration queue included.
    pub queue_count: Observed<u64>,
    /// Entries of a submission queue.
    pub queue_entries: Observed<u64>,
    /// The NUMA node it hangs on.
    pub numa_node: Observed<u64>,
    /// Its way on PCIe by address, itself first and the root port last.
    pub pcie: Observed<Vec<String>>,
}

pub(super) fn observe(reader: &Reader<'_>, paths: &Paths<'_>) -> Observed<Vec<Nvme>> {
    const DIR: &str = "/sys/class/nvme";
    reader.names(DIR).map(|names| {
        let controllers = names.into_iter().filter(|name| name.starts_with("nvme"));
        controllers.map(|name| read(reader, paths, &join(DIR, &name), name)).collect()
    })
}

fn read(reader: &Reader<'_>, paths: &Paths<'_>, dir: &str, name: String) -> Nvme {
    let at = |name: &str| join(dir, name);
    Nvme {
        model: reader.text(&at("model")),
        firmware: reader.text(&at("firmware_rev")),
        transport: reader.text(&at("transport")),
        state: reader.text(&at("state")),
        queue_count: reader.number(&at("queue_count")),
        queue_entries: reader.number(&at("sqsize")),
        numa_node: reader.understood(&at("numa_node"), |text| match text.parse::<i64>() {
            Ok(-1) => Err(Reason::NotApplicable("the firmware names no NUMA node".into())),
            Ok(node) => u64::try_from(node).map_err(|_| Reason::Malformed(node.to_string())),
            Err(_) => Err(Reason::Malformed(text.chars().take(40).collect())),
        }),
        pcie: addresses(paths.path(dir)),
        name,
    }
}

/// Only the addresses: what the links do is told once, under `pcie`.
pub(super) fn addresses(path: Observed<Vec<crate::pcie::Hop>>) -> Observed<Vec<String>> {
    path.map(|hops| hops.into_iter().map(|hop| hop.address).collect())
}
