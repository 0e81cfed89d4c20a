//! Idle states (`Documentation/admin-guide/pm/cpuidle.rst`): how long and how often CPUs were in which. The kernel adds
//! a stay when it ends, so a long one shows late.

use std::collections::BTreeMap;

use crate::sampler::{
    Options,
    channel::Channels,
    source::{Cadence, Part, Source},
    template::{Column, Digits, Lines},
};

use super::{CPUS, cpus, entries, word};

pub(in crate::sampler) static SOURCE: Source =
    Source { name: "idle", cadence: Cadence::Second, digits: Digits::Decimal, open, channels };

fn open(_: &Options) -> Result<Vec<Part>, String> {
    let mut files = Vec::new();
    for cpu in cpus()? {
        let dir = format!("{CPUS}/cpu{cpu}/cpuidle");
        for state in entries(&dir)? {
            let Some(name) = word(&format!("{dir}/{state}/name")) else { continue };
            for file in ["time", "usage"] {
                files.push((format!("{name}/{cpu}/{file}"), format!("{dir}/{state}/{file}")));
            }
        }
    }
    if files.is_empty() {
        return Err(format!("{CPUS}/cpu*/cpuidle: no idle states; a hypervisor or the firmware decides"));
    }
    Ok(Part::files(files))
}

fn channels(lines: &Lines, channels: &mut Channels) {
    let mut states: BTreeMap<&str, (Vec<Column>, Vec<Column>)> = BTreeMap::new();
    for line in &lines.lines {
        let mut section = line.section.rsplitn(3, '/');
        let (Some(file), Some(_), Some(name), Some(column)) =
            (section.next(), section.next(), section.next(), line.only())
        else {
            continue;
        };
        let (times, usages) = states.entry(name).or_default();
        if file == "time" { times.push(column) } else { usages.push(column) }
    }
    for (name, (times, usages)) in states {
        let time = format!("CPUs in idle state {name}, on average");
        channels.rate(format!("idle.{name}"), "1", time, times, 1e-6);
        let entered = format!("idle state {name} entered");
        channels.rate(format!("idle.{name}.entries"), "1/s", entered, usages, 1.0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sampler::sources::testing::between;

    #[test]
    fn summed_over_the_cpus() {
        let text = |time: u32, usage: u32| {
            format!("@C1/0/time\n{time}\n@C1/0/usage\n{usage}\n@C1/1/time\n{time}\n@C1/1/usage\n{usage}\n")
        };
        let values = between(&SOURCE, &text(0, 0), &text(1_500_000, 3), 2.0);
        assert_eq!((values["idle.C1"], values["idle.C1.entries"]), (Some(1.5), Some(3.0)));
    }
}
