//! Performance counters of the workload: instructions, cycles, faults, migrations.
//!
//! Few enough that each has a register of the CPU to itself on all processors of the last ten years. Where one must
//! share, because somebody else counts too, it is not measured: scaling up a part would be a guess.

use zenkai_host::gauges::{Event, Subject};

use crate::sampler::{
    Options,
    channel::{Channels, Rule},
    source::{Cadence, Cpus, NOT_ASKED, Part, Source},
    template::{Digits, Lines, Word},
};

use super::cpus;

pub(in crate::sampler) static SOURCE: Source =
    Source { name: "perf", cadence: Cadence::Always, digits: Digits::Decimal, open, channels };

const EVENTS: [(Event, &str, &str, f64, &str); 9] = [
    (Event::Instructions, "instructions", "1/s", 1.0, "instructions of the workload"),
    (Event::Cycles, "cycles", "1/s", 1.0, "cycles of the workload at the actual clock"),
    (Event::ReferenceCycles, "ref_cycles", "1/s", 1.0, "cycles of the workload at a fixed clock"),
    (Event::CacheMisses, "cache_misses", "1/s", 1.0, "cache misses of the workload"),
    (Event::BranchMisses, "branch_misses", "1/s", 1.0, "branches of the workload guessed wrong"),
    (Event::TaskClock, "task_clock", "1", 1e-9, "CPUs that the workload used, on average"),
    (Event::ContextSwitches, "context_switches", "1/s", 1.0, "context switches of the workload"),
    (Event::Migrations, "migrations", "1/s", 1.0, "moves of the workload's threads to another CPU"),
    (Event::PageFaults, "page_faults", "1/s", 1.0, "page faults of the workload"),
];

fn open(options: &Options) -> Result<Vec<Part>, String> {
    let subjects: Vec<Subject> = match (&options.cgroup, options.pid) {
        (Some(dir), _) => cpus()?.into_iter().map(|cpu| Subject::Group { dir, cpu }).collect(),
        (None, Some(pid)) => vec![Subject::Process(pid)],
        (None, None) => return Err(NOT_ASKED.to_owned()),
    };
    let watched = match options.cgroup {
        Some(_) => Some(Cpus::now().map_err(|error| format!("the CPUs that are online: {error}"))?),
        None => None,
    };
    let part = |(event, name, ..): &(Event, &str, &str, f64, &str)| {
        Part::counter(name, *event, &subjects, watched.as_ref())
    };
    Ok(EVENTS.iter().map(part).collect())
}

fn channels(lines: &Lines, channels: &mut Channels) {
    for line in &lines.lines {
        let [Word::Number(value), Word::Number(enabled), Word::Number(running)] = line.words.as_slice()
        else {
            continue;
        };
        for (_, name, unit, factor, words) in EVENTS.iter().filter(|(_, name, ..)| *name == line.section) {
            let rule = Rule::Undivided { value: *value, enabled: *enabled, running: *running };
            channels.by(format!("perf.{name}"), unit, words, rule, *factor);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sampler::sources::testing::between;

    #[test]
    fn a_part_is_no_measurement() {
        let values = between(
            &SOURCE,
            "@cycles\n0 0 0\n@instructions\n0 0 0\n@ref_cycles\n!perf_event_open: No such file or directory\n",
            "@cycles\n900 10 10\n@instructions\n900 10 5\n@ref_cycles\n!perf_event_open: No such file or directory\n",
            3.0,
        );
        assert_eq!(values["perf.cycles"], Some(300.0));
        assert_eq!(values["perf.instructions"], None);
        assert!(!values.contains_key("perf.ref_cycles"));
    }
}
