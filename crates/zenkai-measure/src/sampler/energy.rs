//! The energy that a recording saw, of the widest domain that was counted without gaps.
//!
//! The power meter and the management controller see the whole machine, `psys` the board.
//! `psys` contains the packages, and a package its cores, so that only domains beside each other are added up: the
//! packages, and the memory, which is counted apart from them (Intel SDM volume 3, 16.10; powercap.rst).

use super::{Recording, Summary};

/// Share of the time without readings above which energy is not known.
const MOST_GAPS: f64 = 0.01;
/// A sensor that shows power is read at least so often during a run, or its mean says nothing.
const LEAST_READINGS: usize = 5;

/// The domain of the management controller, which is read seldom.
const BMC: &str = "bmc";
/// In the names of ACPI power meters (`Documentation/hwmon/acpi_power_meter.rst`).
const METER: &str = ".power_meter.";

/// The energy of a domain.
#[derive(Debug, Clone, PartialEq)]
pub struct Energy {
    /// In joules.
    pub joules: f64,
    /// Which domain: `bmc`, `psys`, `package-0 + package-0.dram`, or a sensor.
    pub domain: String,
}

impl Energy {
    /// A domain in words: what it contains, who measures it, and how finely.
    pub fn words(domain: &str) -> String {
        match domain {
            BMC => "BMC, whole machine, 1 s".to_owned(),
            "psys" => "psys, the board, as RAPL counts".to_owned(),
            _ if domain.contains(METER) => format!("{domain}, whole machine, 1 s"),
            _ => domain.to_owned(),
        }
    }
}

impl Recording {
    /// The energy of the widest domain, or of `domain` if one is named, as a trial before had it: energies of
    /// different domains cannot be compared.
    ///
    /// Errors: what is missing.
    pub fn energy(&self, domain: Option<&str>) -> Result<Energy, String> {
        of(&self.summaries(), self.duration_s(), domain).map_err(|mut why| {
            let sources = ["powercap", "hwmon", "ipmi", "energy."];
            for (what, reason) in self.missing() {
                if sources.iter().any(|source| what.starts_with(source)) {
                    why = format!("{why}; {what}: {reason}");
                }
            }
            why
        })
    }
}

fn of(summaries: &[Summary], duration_s: f64, domain: Option<&str>) -> Result<Energy, String> {
    let energies: Vec<(&str, &Summary)> = summaries
        .iter()
        .filter_map(|summary| Some((summary.channel.name.strip_prefix("energy.")?, summary)))
        .collect();
    if energies.is_empty() {
        return Err("no energy counter of this machine could be read".to_owned());
    }
    let mut found = Vec::new();
    for parts in candidates(&energies) {
        let names: Vec<&str> = parts.iter().map(|(name, _)| *name).collect();
        let joules: Result<f64, String> =
            parts.iter().map(|(name, summary)| joules(name, summary, duration_s)).sum();
        found.push((names.join(" + "), joules));
    }
    if let Some(domain) = domain {
        let there: Vec<String> = found.iter().map(|(name, _)| name.clone()).collect();
        let same = found.into_iter().find(|(name, _)| name == domain).map(|(_, joules)| joules);
        // One domain by its own name may also be a part of others.
        let alone = energies.iter().find(|(name, _)| *name == domain);
        let alone = || alone.map(|(name, summary)| joules(name, summary, duration_s));
        let there = || format!("{domain} was not there, but {}", there.join(", "));
        return Ok(Energy { joules: same.or_else(alone).ok_or_else(there)??, domain: domain.to_owned() });
    }
    let mut why = Vec::new();
    for (domain, joules) in found {
        match joules {
            Ok(joules) if joules > 0.0 => return Ok(Energy { joules, domain }),
            Ok(_) => why.push(format!("{domain} stood still")),
            Err(reason) => why.push(reason),
        }
    }
    Err(why.join("; "))
}

/// Domains that contain nothing twice, the widest first.
fn candidates<'a>(all: &[(&'a str, &'a Summary)]) -> Vec<Vec<(&'a str, &'a Summary)>> {
    let of = |wanted: &dyn Fn(&str) -> bool| -> Vec<(&'a str, &'a Summary)> {
        all.iter().copied().filter(|(name, _)| wanted(name)).collect()
    };
    let is_package = |name: &str| name.starts_with("package-");
    let is_outer = |name: &str| matches!(name.split_once('.'), None | Some((_, "dram")));
    let packages = of(&|name| is_package(name) && is_outer(name) || name == "dram");
    let mut found = Vec::new();
    // The whole machine, as its power meter (ACPI 6.5, 10.4) or its management controller sees it, then the board.
    found.extend(of(&|name| name.contains(METER)).into_iter().map(|one| vec![one]).take(1));
    found.extend(of(&|name| name == BMC).into_iter().map(|one| vec![one]));
    let watts = |parts: &[(&str, &Summary)]| parts.iter().map(|(_, summary)| summary.mean).sum::<f64>();
    // Some boards have a `psys` that counts next to nothing.
    let board = of(&|name| name == "psys").into_iter().filter(|one| one.1.mean >= watts(&packages));
    found.extend(board.map(|one| vec![one]));
    found.push(packages);
    found.retain(|parts| !parts.is_empty());
    found
}

fn joules(name: &str, summary: &Summary, duration_s: f64) -> Result<f64, String> {
    let sensor = name == BMC || summary.total.is_none();
    if sensor && summary.intervals < LEAST_READINGS {
        let there = summary.intervals;
        return Err(format!(
            "{name} gave {there} of the {LEAST_READINGS} readings it takes: the run is too short"
        ));
    }
    let Some(total) = summary.total else { return Ok(summary.mean * duration_s) };
    if summary.mean <= 0.0 {
        return Ok(0.0);
    }
    let counted_s = total / summary.mean;
    // Before the first and behind the last of two readings of a sensor nothing was lost: it is told at the next one.
    let edges_s = if sensor {
        2.0 * counted_s / crate::to_f64(u64::try_from(summary.intervals).unwrap_or(1))
    } else {
        0.0
    };
    let gap = (duration_s - counted_s - edges_s) / duration_s;
    if gap > MOST_GAPS {
        let whole_gap = 1.0 - counted_s / duration_s;
        return Err(format!("{name} was not counted for {:.0} % of the time", 100.0 * whole_gap));
    }
    Ok(if sensor { summary.mean * duration_s } else { total })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sampler::Channel;

    fn counter(name: &str, watts: f64, seconds: f64) -> Summary {
        let name = format!("energy.{name}");
        let channel = Channel { name, unit: "W".into(), words: String::new(), group: "energy".into() };
        let total = Some(watts * seconds);
        Summary { channel, mean: watts, min: watts, max: watts, total, intervals: 10 }
    }

    #[test]
    fn nothing_is_counted_twice() {
        let all = [
            counter("package-0", 50.0, 10.0),
            counter("package-0.core", 30.0, 10.0),
            counter("package-0.dram", 5.0, 10.0),
            counter("package-1", 40.0, 10.0),
        ];
        let found = of(&all, 10.0, None).unwrap();
        assert_eq!((found.joules, found.domain.as_str()), (950.0, "package-0 + package-0.dram + package-1"));
        let with_board = [&all[..], &[counter("psys", 120.0, 10.0)]].concat();
        assert_eq!(of(&with_board, 10.0, None).unwrap().domain, "psys");
        assert_eq!(of(&with_board, 10.0, Some(&found.domain)).unwrap(), found);
        let cores = of(&with_board, 10.0, Some("package-0.core")).unwrap().joules;
        assert!((cores - 300.0).abs() < 1e-9, "one that is named may be a part: {cores}");
        let broken_board = [&all[..], &[counter("psys", 1.0, 10.0)]].concat();
        assert_eq!(of(&broken_board, 10.0, None).unwrap(), found);
        assert!(of(&all[..1], 10.0, Some("psys")).unwrap_err().contains("psys was not there"));
    }

    #[test]
    fn gaps_are_no_energy() {
        let gap = of(&[counter("package-0", 50.0, 9.8)], 10.0, None).unwrap_err();
        assert_eq!(gap, "package-0 was not counted for 2 % of the time");
        assert!(of(&[counter("package-0", 50.0, 9.95)], 10.0, None).is_ok());
        assert!(of(&[counter("package-0", 0.0, 10.0)], 10.0, None).unwrap_err().contains("stood still"));
        assert!(of(&[], 10.0, None).unwrap_err().contains("no energy counter"));
    }

    #[test]
    fn a_power_sensor_must_be_read_often_enough() {
        let meter = Summary { total: None, ..counter("hwmon0.power_meter.power1", 200.0, 10.0) };
        let joules = of(std::slice::from_ref(&meter), 10.0, None).unwrap().joules;
        assert!((joules - 2000.0).abs() < 1e-9, "{joules}");
        let seldom = Summary { intervals: 2, ..meter };
        assert!(of(&[seldom], 1.0, None).unwrap_err().contains("too short"));
    }

    #[test]
    fn the_controller_s_readings_begin_and_end_inside() {
        let package = counter("package-0", 50.0, 10.0);
        let all = |seconds: f64, readings: usize| {
            [package.clone(), Summary { intervals: readings, ..counter(BMC, 200.0, seconds) }]
        };
        let whole = of(&all(9.2, 9), 10.0, None).unwrap();
        assert_eq!((whole.joules, whole.domain.as_str()), (2000.0, BMC));
        assert!(Energy::words(&whole.domain).contains("whole machine"));
        // Too few readings, or too long without any: the next domain is better.
        assert_eq!(of(&all(7.0, 7), 10.0, None).unwrap().domain, "package-0");
        let gap = of(&all(7.0, 7), 10.0, Some(BMC)).unwrap_err();
        assert_eq!(gap, "bmc was not counted for 30 % of the time");
        assert!(of(&all(4.0, 4), 10.0, Some(BMC)).unwrap_err().contains("too short"));
    }
}
