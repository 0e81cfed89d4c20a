//! Thermal throttling (`Documentation/driver-api/thermal/sysfs-api.rst`; the counters of x86 CPUs:
//! `arch/x86` therm_throt.c, `Documentation/ABI/testing/sysfs-devices-system-cpu`).

mod throttle;
mod zones;

use serde::Serialize;

use crate::{Observed, Reader, cpu::Cpu, virtualisation::Virtualisation};

pub use throttle::{PackageThrottle, Throttle};
pub use zones::{CoolingDevices, Zone};

/// Thermal throttling.
#[derive(Debug, Clone, Serialize)]
pub struct Thermal {
    /// What the CPUs counted since boot; only Intel CPUs count.
    pub throttle: Observed<Throttle>,
    /// Thermal zones.
    pub zones: Observed<Vec<Zone>>,
    /// Cooling devices; those of equal kind and state are told together.
    pub cooling: Observed<Vec<CoolingDevices>>,
}

/// Reads this subsystem.
pub fn observe(reader: &Reader<'_>, cpu: &Cpu, virtualisation: &Virtualisation) -> Thermal {
    Thermal {
        throttle: throttle::observe(reader, cpu, virtualisation),
        zones: zones::zones(reader),
        cooling: zones::cooling(reader),
    }
}
