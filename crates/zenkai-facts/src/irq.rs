//! Interrupts: where they may go, and where they went.

mod devices;
mod table;

use serde::Serialize;

use crate::{CpuSet, Observed, Reader, net::Net};

pub use devices::{Class, DeviceInterrupt, DeviceInterrupts};
pub use table::{Interrupts, Line};

/// Interrupts: where they may go, and where they went.
#[derive(Debug, Clone, Serialize)]
pub struct Irq {
    /// CPUs that new interrupts may go to (`/proc/irq/default_smp_affinity`).
    pub default_affinity: Observed<CpuSet>,
    /// Hardware interrupts since boot, per line (`/proc/interrupts`).
    pub interrupts: Observed<Interrupts>,
    /// Software interrupts since boot, per kind (`/proc/softirqs`).
    pub softirqs: Observed<Interrupts>,
    /// Interrupts of network cards and NVMe drives.
    pub devices: Vec<DeviceInterrupts>,
    /// Whether irqbalance has its socket or process file in /run: it is running, or was killed.
    pub irqbalance_in_run: Observed<bool>,
}

/// Reads this subsystem.
pub fn observe(reader: &Reader<'_>, net: &Net) -> Irq {
    let interrupts = reader.bytes("/proc/interrupts").parse(|content| table::parse(&content));
    let lines = interrupts.get().map_or(&[][..], |table| table.lines.as_slice());
    Irq {
        default_affinity: reader
            .text("/proc/irq/default_smp_affinity")
            .parse(|text| CpuSet::from_mask(&text)),
        devices: devices::observe(reader, net, lines),
        softirqs: reader.bytes("/proc/softirqs").parse(|content| table::parse(&content)),
        irqbalance_in_run: irqbalance(reader),
        interrupts,
    }
}

/// irqbalance keeps `/run/irqbalance/irqbalance<pid>.sock`, and older versions `/run/irqbalance.pid`.
fn irqbalance(reader: &Reader<'_>) -> Observed<bool> {
    let sockets = reader.names("/run/irqbalance").map(|names| !names.is_empty());
    if sockets.value() == Some(true) {
        return sockets;
    }
    let old = reader.bytes("/run/irqbalance.pid").map(|_| true);
    if old.is_absent() { Observed::known("/run/irqbalance.pid", false) } else { old }
}
