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
    /// Seconds since boot, to compare the counters with.
    pub uptime_seconds: Observed<u64>,
    /// Thermal zones.
    pub zones: Observed<Vec<Zone>>,
    /// Cooling devices; those of equal kind and state are told together.
    pub cooling: Observed<Vec<CoolingDevices>>,
}

/// Reads this subsystem.
pub fn observe(reader: &Reader<'_>, cpu: &Cpu, virtualisation: &Virtualisation) -> Thermal {
    Thermal {
        throttle: throttle::observe(reader, cpu, virtualisation),
        uptime_seconds: reader.text("/proc/uptime").parse(|text| uptime_seconds(&text)),
        zones: zones::zones(reader),
        cooling: zones::cooling(reader),
    }
}

/// `12345.67 54321.00`: time since boot, then idle time.
fn uptime_seconds(text: &str) -> Result<u64, String> {
    let seconds = text.split(['.', ' ']).next().and_then(|whole| whole.parse().ok());
    seconds.ok_or_else(|| "no seconds".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn uptime() {
        assert_eq!(uptime_seconds("12345.67 54321.00"), Ok(12345));
        assert!(uptime_seconds("").is_err());
    }
}
