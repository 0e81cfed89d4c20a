//! The sources: one file each, registered here.

mod block;
mod cgroup;
mod clock;
mod cpu;
mod cstates;
mod hwmon;
mod interrupts;
mod ipmi;
mod memory;
mod net;
mod perf;
mod powercap;
mod pressure;
mod schedstat;
mod slowly;
mod softirqs;
mod softnet;
mod tcp;
mod throttle;
mod vmstat;

use zenkai_host::{Host as _, LiveHost};

use super::source::Source;

/// What is read, in this order. Recordings name a source by its `name`, which never changes its meaning.
pub(super) static SOURCES: [&Source; 20] = [
    &cpu::SOURCE,
    &schedstat::SOURCE,
    &pressure::SOURCE,
    &clock::SOURCE,
    &cstates::SOURCE,
    &throttle::SOURCE,
    &interrupts::SOURCE,
    &softirqs::SOURCE,
    &softnet::SOURCE,
    &memory::SOURCE,
    &vmstat::SOURCE,
    &block::SOURCE,
    &net::SOURCE,
    &tcp::SNMP,
    &tcp::NETSTAT,
    &powercap::SOURCE,
    &hwmon::SOURCE,
    &ipmi::SOURCE,
    &cgroup::SOURCE,
    &perf::SOURCE,
];

/// Whether a source belongs to the workload, so that it is opened anew for each recording.
pub(super) fn is_of_workload(source: &Source) -> bool {
    [cgroup::SOURCE.name, perf::SOURCE.name].contains(&source.name)
}

/// The entries of a directory of the live machine, sorted.
fn entries(dir: &str) -> Result<Vec<String>, String> {
    let mut names: Vec<String> = LiveHost
        .list(dir)
        .map_err(|error| format!("{dir}: {error}"))?
        .into_iter()
        .filter_map(|entry| String::from_utf8(entry.name.into()).ok())
        .collect();
    names.sort();
    Ok(names)
}

/// The numbers of the CPUs in `/sys/devices/system/cpu` that are online.
fn cpus() -> Result<Vec<usize>, String> {
    let names = entries(CPUS)?;
    let mut cpus: Vec<usize> =
        names.iter().filter_map(|name| name.strip_prefix("cpu")?.parse().ok()).collect();
    cpus.sort_unstable();
    // CPU 0 often has no such file: it cannot be taken offline.
    cpus.retain(|cpu| word(&format!("{CPUS}/cpu{cpu}/online")).is_none_or(|online| online != "0"));
    Ok(cpus)
}

const CPUS: &str = "/sys/devices/system/cpu";

/// What a small file of the live machine holds, in one word.
pub(super) fn word(path: &str) -> Option<String> {
    let text = String::from_utf8(LiveHost.read(path).ok()?).ok()?;
    let word: Vec<&str> = text.split_whitespace().collect();
    Some(word.join("_"))
}

#[cfg(test)]
pub(super) mod testing {
    //! A source tried on two texts.

    use std::collections::BTreeMap;

    use crate::sampler::{
        channel::{Channels, Derived, Part},
        source::Source,
        template::{lines, take_apart},
    };

    fn taken(source: &Source, text: &str) -> (Vec<Derived>, Vec<u64>) {
        let (mut template, mut numbers) = (Vec::new(), Vec::new());
        take_apart(text.as_bytes(), source.digits, &mut template, &mut numbers);
        let mut channels = Channels::default();
        (source.channels)(&lines(&template), &mut channels);
        (channels.list, numbers)
    }

    /// The names of the channels that a text gives.
    pub(crate) fn made_of(source: &Source, text: &str) -> Vec<String> {
        taken(source, text).0.into_iter().map(|derived| derived.channel.name).collect()
    }

    /// The values between two texts.
    pub(crate) fn between(
        source: &Source,
        before: &str,
        after: &str,
        seconds: f64,
    ) -> BTreeMap<String, Option<f64>> {
        let (first, old) = taken(source, before);
        let (second, new) = taken(source, after);
        assert_eq!(first, second, "both texts have the same template");
        let value = |derived: &Derived| {
            let of = |row: &[u64]| -> Vec<u64> {
                derived.rule.columns().iter().map(|column| row[column.at]).collect()
            };
            let part = derived.rule.part(&of(&old), &of(&new), seconds)?;
            Part { numerator: part.numerator * derived.factor, ..part }.value()
        };
        second.iter().map(|derived| (derived.channel.name.clone(), value(derived))).collect()
    }
}
