//! Processors: model, topology, clock, and the policies that steer the clock.

mod frequency;

use serde::Serialize;

use crate::{CpuSet, Observed, Reader, reader::join};

pub use frequency::{Frequency, Policy};

/// Where the kernel keeps everything about CPUs.
pub(crate) const CPU_DIR: &str = "/sys/devices/system/cpu";

/// The processors of a machine.
#[derive(Debug, Clone, Serialize)]
pub struct Cpu {
    /// CPUs that take work now.
    pub online: Observed<CpuSet>,
    /// CPUs that exist in this machine.
    pub present: Observed<CpuSet>,
    /// CPUs the scheduler keeps ordinary work away from (`isolcpus=`, cpuset partitions).
    pub isolated: Observed<CpuSet>,
    /// The clock and who steers it.
    pub frequency: Frequency,
}

/// Reads the processors.
pub fn observe(reader: &Reader<'_>) -> Cpu {
    Cpu {
        online: reader.cpu_set(&join(CPU_DIR, "online")),
        present: reader.cpu_set(&join(CPU_DIR, "present")),
        isolated: reader.cpu_set(&join(CPU_DIR, "isolated")),
        frequency: frequency::observe(reader),
    }
}
