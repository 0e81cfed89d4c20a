//! Power and energy sensors (`Documentation/hwmon/sysfs-interface.rst`): power supplies, accelerators, the ACPI power
//! meter. Each has a channel of its own and they are never added up.

use crate::sampler::{
    Options,
    channel::Channels,
    source::{Cadence, Part, Source},
    template::{Digits, Lines},
};

use super::{entries, word};

pub(in crate::sampler) static SOURCE: Source = Source {
    name: "hwmon",
    // Some sensors are asked over a slow bus.
    cadence: Cadence::Second,
    digits: Digits::Decimal,
    open,
    channels,
};

const DIR: &str = "/sys/class/hwmon";

/// Microwatts.
const POWER: &str = "power";
/// Microjoules since the driver was loaded.
const ENERGY: &str = "energy";

fn open(_: &Options) -> Result<Vec<Part>, String> {
    let mut files = Vec::new();
    for device in entries(DIR)? {
        let dir = format!("{DIR}/{device}");
        let name = word(&format!("{dir}/name")).unwrap_or_else(|| device.clone());
        let there = entries(&dir)?;
        for file in &there {
            let Some((sensor, kind)) = file.split_once('_') else { continue };
            let wanted = match kind {
                "average" => sensor.starts_with(POWER),
                // Where there is an average it says more.
                "input" => {
                    sensor.starts_with(ENERGY)
                        || sensor.starts_with(POWER) && !there.contains(&format!("{sensor}_average"))
                }
                _ => false,
            };
            if wanted {
                let label = word(&format!("{dir}/{sensor}_label")).unwrap_or_else(|| sensor.to_owned());
                files.push((format!("{sensor}/{device}.{name}.{label}"), format!("{dir}/{file}")));
            }
        }
    }
    if files.is_empty() { Err(format!("{DIR}: no sensor for power")) } else { Ok(Part::files(files)) }
}

fn channels(lines: &Lines, channels: &mut Channels) {
    for line in &lines.lines {
        let (Some((sensor, name)), Some(column)) = (line.section.split_once('/'), line.only()) else {
            continue;
        };
        let (name, words) = (format!("energy.{name}"), format!("power of {name}"));
        if sensor.starts_with(ENERGY) {
            channels.rate(name, "W", words, vec![column], 1e-6);
        } else {
            channels.level(name, "W", words, column, 1e-6);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sampler::sources::testing::between;

    #[test]
    fn power_now_and_energy_counted() {
        let text = |energy: u64| {
            format!("@power1/hwmon0.power_meter.power1\n183000000\n@energy2/hwmon1.xe.card\n{energy}\n")
        };
        let values = between(&SOURCE, &text(1_000_000), &text(9_000_000), 2.0);
        assert_eq!(values["energy.hwmon0.power_meter.power1"], Some(183.0));
        assert_eq!(values["energy.hwmon1.xe.card"], Some(4.0));
    }
}
