//! Power and energy sensors (`Documentation/hwmon/sysfs-interface.rst`): power supplies, accelerators, the ACPI power
//! meter. Each has a channel of its own and they are never added up.

use std::{
    io,
    sync::{Arc, Mutex, PoisonError},
    time::Instant,
};

use zenkai_host::gauges::Gauge;

use crate::sampler::{
    Options,
    channel::Channels,
    source::{Cadence, Part, Source},
    template::{Digits, Lines},
};

use super::{
    entries,
    slowly::{APART, Slowly},
    word,
};

pub(in crate::sampler) static SOURCE: Source =
    Source { name: "hwmon", cadence: Cadence::Second, digits: Digits::Decimal, open, channels };

const DIR: &str = "/sys/class/hwmon";

/// Microwatts.
const POWER: &str = "power";
/// Microjoules since the driver was loaded.
const ENERGY: &str = "energy";

fn open(_: &Options) -> Result<Vec<Part>, String> {
    let (mut counters, mut sensors) = (Vec::new(), Vec::new());
    for device in entries(DIR)? {
        let dir = format!("{DIR}/{device}");
        // Drivers that register in the old way, as the ACPI power meter does before Linux 6.15, have all their files at
        // the device itself.
        for dir in [dir.clone(), format!("{dir}/device")] {
            for (sensor, file, label) in sensors_in(&dir) {
                let name = word(&format!("{dir}/name")).unwrap_or_else(|| device.clone());
                let found = (format!("{sensor}/{device}.{name}.{label}"), format!("{dir}/{file}"));
                if sensor.starts_with(ENERGY) { counters.push(found) } else { sensors.push(found) }
            }
        }
    }
    if counters.is_empty() && sensors.is_empty() {
        return Err(format!("{DIR}: no sensor for power"));
    }
    let mut parts = Part::files(counters);
    if !sensors.is_empty() {
        parts.extend(told(sensors).map_err(|error| format!("no thread for the sensors: {error}"))?);
    }
    Ok(parts)
}

/// The sensors of a directory: what it is called, its file, its label.
fn sensors_in(dir: &str) -> Vec<(String, String, String)> {
    let there = entries(dir).unwrap_or_default();
    let mut found = Vec::new();
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
            found.push((sensor.to_owned(), file.clone(), label));
        }
    }
    found
}

/// What a sensor last said, and when.
type Said = Option<(Instant, Result<Vec<u8>, String>)>;

/// Sensors of power in a thread of their own: power supplies are asked over a slow bus, and a power meter asks the
/// management controller (`drivers/acpi/acpi_ipmi.c`), which takes up to 100 ms and more.
fn told(sensors: Vec<(String, String)>) -> io::Result<Vec<Part>> {
    let (sections, paths): (Vec<String>, Vec<String>) = sensors.into_iter().unzip();
    let said: Arc<Mutex<Vec<Said>>> = Arc::new(Mutex::new(vec![None; paths.len()]));
    let theirs = Arc::clone(&said);
    let reading = Slowly::start("zenkai-power", move || {
        for (at, path) in paths.iter().enumerate() {
            let mut text = Vec::new();
            let read = Gauge::open(path).and_then(|gauge| gauge.read(&mut text));
            let now = (Instant::now(), read.map(|()| text).map_err(|error| error.to_string()));
            if let Some(said) = theirs.lock().unwrap_or_else(PoisonError::into_inner).get_mut(at) {
                *said = Some(now);
            }
        }
        true
    })?;
    let (reading, begun) = (Arc::new(reading), Instant::now());
    let part = |(at, section): (usize, &String)| {
        let (said, reading) = (Arc::clone(&said), Arc::clone(&reading));
        Part::told(section, move |text| {
            // The thread ends with the last part.
            let _ = &reading;
            let said = said.lock().unwrap_or_else(PoisonError::into_inner);
            tell(said.get(at).unwrap_or(&None), begun, text)
        })
    };
    Ok(sections.iter().enumerate().map(part).collect())
}

fn tell(said: &Said, begun: Instant, text: &mut Vec<u8>) -> io::Result<()> {
    let since = said.as_ref().map_or(begun, |(at, _)| *at);
    match said {
        _ if since.elapsed() > APART => Err(io::Error::other("the sensor gives no answer")),
        // Not a number, so not a value.
        None => {
            text.extend_from_slice(b"waiting");
            Ok(())
        }
        Some((_, Ok(number))) => {
            text.extend_from_slice(number);
            Ok(())
        }
        Some((_, Err(reason))) => Err(io::Error::other(reason.clone())),
    }
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
    fn a_sensor_that_said_nothing_yet_has_no_value() {
        let told = |said: Said| {
            let mut text = b"@power1/hwmon0.pmbus.power1\n".to_vec();
            let result = tell(&said, Instant::now(), &mut text).map_err(|error| error.to_string());
            result.map(|()| String::from_utf8(text).unwrap())
        };
        let waiting = told(None).unwrap();
        assert!(between(&SOURCE, &waiting, &waiting, 1.0).is_empty());
        let now = told(Some((Instant::now(), Ok(b"5000000\n".to_vec())))).unwrap();
        assert_eq!(between(&SOURCE, &now, &now, 1.0)["energy.hwmon0.pmbus.power1"], Some(5.0));
        assert_eq!(told(Some((Instant::now(), Err("no data".to_owned())))), Err("no data".to_owned()));
        if let Some(long_ago) = Instant::now().checked_sub(APART * 2) {
            assert!(told(Some((long_ago, Ok(b"5\n".to_vec())))).unwrap_err().contains("no answer"));
        }
    }

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
