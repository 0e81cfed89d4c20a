//! The powercap framework (`Documentation/power/powercap/powercap.rst`).

use serde::Serialize;

use crate::{Observed, Reader, reader::join};

const DIR: &str = "/sys/class/powercap";

/// RAPL has three constraints at most: long term, short term, peak power (`drivers/powercap/intel_rapl_common.c`).
const CONSTRAINT_LIMIT: u32 = 4;

/// One zone whose power can be capped.
#[derive(Debug, Clone, Serialize)]
pub struct PowercapZone {
    /// The directory's name: `intel-rapl:0` for a package, `intel-rapl:0:1` for a part of it.
    pub id: String,
    /// `package-0`, `dram`, `psys` …
    pub name: Observed<String>,
    /// Whether the limits are in force.
    pub enabled: Observed<bool>,
    /// Its limits.
    pub constraints: Vec<Constraint>,
}

/// One limit of a zone.
#[derive(Debug, Clone, Serialize)]
pub struct Constraint {
    /// `long_term`, `short_term` or `peak_power`.
    pub name: Observed<String>,
    /// The limit, in µW.
    pub limit_uw: Observed<u64>,
    /// What the hardware is made for (for `long_term` its thermal design power), in µW.
    pub max_uw: Observed<u64>,
    /// The time over which the average must stay below the limit, in µs.
    pub window_us: Observed<u64>,
}

impl PowercapZone {
    /// The limit of this name.
    pub fn constraint(&self, name: &str) -> Option<&Constraint> {
        self.constraints.iter().find(|constraint| constraint.name.text() == Some(name))
    }
}

pub(super) fn observe(reader: &Reader<'_>) -> Observed<Vec<PowercapZone>> {
    reader.names(DIR).map(|names| {
        // A name without a colon is a control type, not a zone.
        names.into_iter().filter(|name| name.contains(':')).map(|name| zone(reader, name)).collect()
    })
}

fn zone(reader: &Reader<'_>, id: String) -> PowercapZone {
    let dir = join(DIR, &id);
    let constraints = (0..CONSTRAINT_LIMIT).map_while(|number| constraint(reader, &dir, number)).collect();
    PowercapZone {
        name: reader.text(&join(&dir, "name")),
        enabled: reader.flag(&join(&dir, "enabled")),
        constraints,
        id,
    }
}

fn constraint(reader: &Reader<'_>, dir: &str, number: u32) -> Option<Constraint> {
    let file = |name: &str| join(dir, format_args!("constraint_{number}_{name}"));
    let name = reader.text(&file("name"));
    if name.is_absent() {
        return None;
    }
    let max_uw = reader.number(&file("max_power_uw"));
    Some(Constraint {
        name,
        limit_uw: reader.number(&file("power_limit_uw")),
        max_uw: max_uw.unless(|value: &u64| *value == 0, "the hardware does not tell"),
        window_us: reader.number(&file("time_window_us")),
    })
}

#[cfg(test)]
mod tests {
    use zenkai_host::FakeHost;

    use super::*;

    #[test]
    fn a_package() {
        let host = FakeHost::new(&[
            ("/sys/class/powercap/intel-rapl/enabled", "1\n"),
            ("/sys/class/powercap/intel-rapl:0/name", "package-0\n"),
            ("/sys/class/powercap/intel-rapl:0/enabled", "1\n"),
            ("/sys/class/powercap/intel-rapl:0/constraint_0_name", "long_term\n"),
            ("/sys/class/powercap/intel-rapl:0/constraint_0_power_limit_uw", "130000000\n"),
            ("/sys/class/powercap/intel-rapl:0/constraint_0_max_power_uw", "0\n"),
        ]);
        let zones = observe(&Reader::new(&host));
        let [zone] = zones.get().unwrap().as_slice() else { panic!("one zone") };
        let long = zone.constraint("long_term").unwrap();
        assert_eq!(long.limit_uw.value(), Some(130_000_000));
        assert!(long.max_uw.reason().is_some());
        assert!(zone.constraint("short_term").is_none());
    }
}
