//! Thermal zones with their critical trip, and the devices that cool them.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::{Observed, Reader, Reason, reader::join};

const DIR: &str = "/sys/class/thermal";

/// More trips than the kernel has had room for (`THERMAL_MAX_TRIPS` was 12).
const TRIP_LIMIT: u32 = 16;

/// One thermal zone.
#[derive(Debug, Clone, Serialize)]
pub struct Zone {
    /// `thermal_zone0` …
    pub name: String,
    /// What it measures: `x86_pkg_temp`, `acpitz` …
    pub kind: Observed<String>,
    /// Temperature now, in thousandths of a degree Celsius.
    pub temperature_millidegrees: Observed<i64>,
    /// Where the kernel shuts the machine down, in thousandths of a degree Celsius.
    pub critical_millidegrees: Observed<i64>,
}

/// Cooling devices of one kind in one state.
#[derive(Debug, Clone, Serialize)]
pub struct CoolingDevices {
    /// `Processor`, `intel_powerclamp`, `Fan` …
    pub kind: Observed<String>,
    /// How hard they cool, from 0 to `max_state`; `intel_powerclamp` shows -1 on some kernels while it rests.
    pub state: Observed<i64>,
    /// The hardest.
    pub max_state: Observed<i64>,
    /// How many show this.
    pub count: usize,
}

fn list(reader: &Reader<'_>, prefix: &'static str) -> Observed<Vec<String>> {
    reader.numbered(DIR, prefix).map(|numbers| {
        numbers.into_iter().map(|number| join(DIR, format_args!("{prefix}{number}"))).collect()
    })
}

pub(super) fn zones(reader: &Reader<'_>) -> Observed<Vec<Zone>> {
    list(reader, "thermal_zone").map(|dirs| dirs.iter().map(|dir| zone(reader, dir)).collect())
}

fn zone(reader: &Reader<'_>, dir: &str) -> Zone {
    Zone {
        name: dir.rsplit('/').next().unwrap_or(dir).to_owned(),
        kind: reader.text(&join(dir, "type")),
        temperature_millidegrees: reader.number(&join(dir, "temp")),
        critical_millidegrees: critical(reader, dir),
    }
}

fn critical(reader: &Reader<'_>, dir: &str) -> Observed<i64> {
    for trip in 0..TRIP_LIMIT {
        let kind = reader.text(&join(dir, format_args!("trip_point_{trip}_type")));
        match kind.text() {
            Some("critical") => return reader.number(&join(dir, format_args!("trip_point_{trip}_temp"))),
            Some(_) => {}
            None => break,
        }
    }
    let why = Reason::NotApplicable("the zone has no critical trip".to_owned());
    Observed::unavailable(join(dir, "trip_point_*_type"), why)
}

pub(super) fn cooling(reader: &Reader<'_>) -> Observed<Vec<CoolingDevices>> {
    list(reader, "cooling_device").map(|dirs| {
        let mut groups: Vec<CoolingDevices> = Vec::new();
        let mut places = BTreeMap::new();
        for dir in dirs {
            let kind = reader.text(&join(&dir, "type"));
            let state = reader.number::<i64>(&join(&dir, "cur_state"));
            let max_state = reader.number::<i64>(&join(&dir, "max_state"));
            let shown = |number: &Observed<i64>| number.outcome().copied().map_err(Clone::clone);
            let alike = (kind.outcome().cloned().map_err(Clone::clone), shown(&state), shown(&max_state));
            let place = *places.entry(alike).or_insert(groups.len());
            match groups.get_mut(place) {
                Some(group) => group.count += 1,
                None => groups.push(CoolingDevices { kind, state, max_state, count: 1 }),
            }
        }
        groups
    })
}

#[cfg(test)]
mod tests {
    use zenkai_host::FakeHost;

    use super::*;

    #[test]
    fn zones_and_cooling() {
        let host = FakeHost::new(&[
            ("/sys/class/thermal/thermal_zone0/type", "acpitz\n"),
            ("/sys/class/thermal/thermal_zone0/temp", "27800\n"),
            ("/sys/class/thermal/thermal_zone0/trip_point_0_type", "passive\n"),
            ("/sys/class/thermal/thermal_zone0/trip_point_1_type", "critical\n"),
            ("/sys/class/thermal/thermal_zone0/trip_point_1_temp", "119000\n"),
            ("/sys/class/thermal/thermal_zone1/type", "x86_pkg_temp\n"),
            ("/sys/class/thermal/cooling_device0/type", "Processor\n"),
            ("/sys/class/thermal/cooling_device0/cur_state", "0\n"),
            ("/sys/class/thermal/cooling_device1/type", "Processor\n"),
            ("/sys/class/thermal/cooling_device1/cur_state", "0\n"),
            ("/sys/class/thermal/cooling_device2/type", "intel_powerclamp\n"),
            ("/sys/class/thermal/cooling_device2/cur_state", "-1\n"),
        ]);
        let reader = Reader::new(&host);
        let zones = zones(&reader);
        let zones = zones.get().unwrap();
        assert_eq!(zones[0].critical_millidegrees.value(), Some(119_000));
        assert!(zones[1].critical_millidegrees.reason().is_some());
        let cooling = cooling(&reader);
        let cooling = cooling.get().unwrap();
        assert_eq!((cooling.len(), cooling[0].count), (2, 2));
        assert_eq!(cooling[1].state.value(), Some(-1));
    }
}
