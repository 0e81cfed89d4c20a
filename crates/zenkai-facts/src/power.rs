//! Power limits, platform profile, management controller.

mod bmc;
mod powercap;

use serde::Serialize;

use crate::{Observed, Reader, reader::join};

pub use bmc::{Bmc, PowerLimit, PowerReading};
pub use powercap::{Constraint, PowercapZone};

/// Power limits, platform profile, management controller.
#[derive(Debug, Clone, Serialize)]
pub struct Power {
    /// Power limits the kernel knows (`Documentation/power/powercap/powercap.rst`).
    pub zones: Observed<Vec<PowercapZone>>,
    /// The platform's own power profile (`Documentation/ABI/testing/sysfs-platform_profile`).
    pub platform_profile: Observed<String>,
    /// The profiles that could be chosen.
    pub platform_profile_choices: Observed<Vec<String>>,
    /// ACPI power meters, with the cap some of them can put on the machine (`Documentation/hwmon/acpi_power_meter.rst`).
    pub meters: Observed<Vec<PowerMeter>>,
    /// The baseboard management controller.
    pub bmc: Bmc,
}

/// One ACPI power meter.
#[derive(Debug, Clone, Serialize)]
pub struct PowerMeter {
    /// `hwmon3` …
    pub name: String,
    /// Average draw over the meter's interval, in µW.
    pub average_uw: Observed<u64>,
    /// The cap in force, in µW.
    pub cap_uw: Observed<u64>,
    /// The highest cap that could be set, in µW.
    pub cap_max_uw: Observed<u64>,
}

/// Reads this subsystem.
pub fn observe(reader: &Reader<'_>) -> Power {
    let acpi = |name: &str| join("/sys/firmware/acpi", name);
    Power {
        zones: powercap::observe(reader),
        platform_profile: reader.text(&acpi("platform_profile")),
        platform_profile_choices: reader.words(&acpi("platform_profile_choices")),
        meters: meters(reader),
        bmc: bmc::observe(reader),
    }
}

fn meters(reader: &Reader<'_>) -> Observed<Vec<PowerMeter>> {
    let dir = "/sys/class/hwmon";
    reader.numbered(dir, "hwmon").map(|numbers| {
        let names = numbers.into_iter().map(|number| format!("hwmon{number}"));
        let is_meter = |name: &String| {
            let of = |file: &str| reader.text(&join(dir, format_args!("{name}/{file}")));
            of("name").or_else(|| of("device/name")).text() == Some("power_meter")
        };
        names.filter(is_meter).map(|name| meter(reader, dir, name)).collect()
    })
}

/// The attributes belong to the hwmon device; of drivers that register in the old way, as this one before Linux 6.15,
/// they and the name are on its parent.
fn meter(reader: &Reader<'_>, dir: &str, name: String) -> PowerMeter {
    let microwatts = |file: &str| {
        reader
            .number(&join(dir, format_args!("{name}/{file}")))
            .or_else(|| reader.number(&join(dir, format_args!("{name}/device/{file}"))))
    };
    PowerMeter {
        average_uw: microwatts("power1_average"),
        cap_uw: microwatts("power1_cap"),
        cap_max_uw: microwatts("power1_cap_max"),
        name,
    }
}

#[cfg(test)]
mod tests {
    use zenkai_host::FakeHost;

    use super::*;

    #[test]
    fn a_meter_among_sensors() {
        let host = FakeHost::new(&[
            ("/sys/class/hwmon/hwmon0/name", "coretemp\n"),
            ("/sys/class/hwmon/hwmon1/device/name", "power_meter\n"),
            ("/sys/class/hwmon/hwmon1/device/power1_cap", "300000000\n"),
            ("/sys/firmware/acpi/platform_profile_choices", "low-power balanced performance\n"),
        ]);
        let power = observe(&Reader::new(&host));
        let meters = power.meters.get().unwrap();
        assert_eq!(meters.len(), 1);
        assert_eq!(meters[0].cap_uw.value(), Some(300_000_000));
        assert!(meters[0].average_uw.is_absent());
        assert_eq!(power.platform_profile_choices.get().unwrap().len(), 3);
        assert!(power.zones.is_absent());
    }
}
