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
        interrupts,
    }
}
