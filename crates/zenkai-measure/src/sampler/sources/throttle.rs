//! Thermal throttling (`Documentation/ABI/testing/sysfs-devices-system-cpu`, `arch/x86/kernel/cpu/mce/therm_throt.c`):
//! how often CPUs slowed down because of heat. Intel only.

use crate::sampler::{
    Options,
    channel::Channels,
    source::{Cadence, Part, Source},
    template::{Column, Digits, Line, Lines},
};

use super::{CPUS, cpus, entries, word};

pub(in crate::sampler) static SOURCE: Source =
    Source { name: "throttle", cadence: Cadence::Slow, digits: Digits::Decimal, open, channels };

/// Files and channels.
const FILES: [(&str, &str, &str, &str, f64); 4] = [
    ("core_throttle_count", "core_events", "1/s", "times a core was slowed down by heat", 1.0),
    ("package_throttle_count", "package_events", "1/s", "times a package was slowed down by heat", 1.0),
    ("core_throttle_total_time_ms", "core_time", "1", "cores slowed down by heat, on average", 1e-3),
    ("package_throttle_total_time_ms", "package_time", "1", "packages slowed down by heat, on average", 1e-3),
];

fn open(_: &Options) -> Result<Vec<Part>, String> {
    let mut files = Vec::new();
    let (mut packages, mut cores) = (Vec::new(), Vec::new());
    for cpu in cpus()? {
        let dir = format!("{CPUS}/cpu{cpu}/thermal_throttle");
        let there = entries(&dir)?;
        // All CPUs of a core or package show the same counters.
        let of = |file: &str| word(&format!("{CPUS}/cpu{cpu}/topology/{file}"));
        let package = of("physical_package_id");
        let core = (package.clone(), of("core_id"));
        for (file, ..) in FILES.iter().filter(|(file, ..)| there.iter().any(|name| name == file)) {
            let known =
                if file.starts_with("core") { cores.contains(&core) } else { packages.contains(&package) };
            if !known {
                files.push((format!("{file}/{cpu}"), format!("{dir}/{file}")));
            }
        }
        cores.push(core);
        packages.push(package);
    }
    if files.is_empty() { Err("the CPUs do not count it".to_owned()) } else { Ok(Part::files(files)) }
}

fn channels(lines: &Lines, channels: &mut Channels) {
    for (file, name, unit, words, factor) in FILES {
        let of = lines.lines.iter().filter(|line| line.section.split('/').next() == Some(file));
        let columns: Vec<Column> = of.filter_map(Line::only).collect();
        if !columns.is_empty() {
            channels.rate(format!("throttle.{name}"), unit, words, columns, factor);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sampler::sources::testing::between;

    #[test]
    fn events_are_counted() {
        let text = |count: u32| format!("@core_throttle_count/0\n{count}\n@core_throttle_count/1\n5\n");
        assert_eq!(between(&SOURCE, &text(1), &text(9), 4.0)["throttle.core_events"], Some(2.0));
    }
}
