//! The workload's cgroup (`Documentation/admin-guide/cgroup-v2.rst`): its own CPU time, I/O, memory and pressure.

use crate::sampler::{
    Options,
    channel::{Channels, Rule},
    source::{Cadence, NOT_ASKED, Part, Source},
    template::{Column, Digits, Lines},
};

use super::pressure;

pub(in crate::sampler) static SOURCE: Source =
    Source { name: "cgroup", cadence: Cadence::Always, digits: Digits::Decimal, open, channels };

/// Only the first is in every group; the others need their controller.
const FILES: [&str; 8] = [
    "cpu.stat",
    "io.stat",
    "memory.current",
    "memory.peak",
    "memory.events",
    "cpu.pressure",
    "io.pressure",
    "memory.pressure",
];

/// File, line, channel, unit, worth, meaning.
const COUNTS: [(&str, &str, &str, &str, f64, &str); 7] = [
    ("cpu.stat", "usage_usec", "cpu", "1", 1e-6, "CPUs that the workload used, on average"),
    ("cpu.stat", "user_usec", "usr", "1", 1e-6, "of that, user time"),
    ("cpu.stat", "system_usec", "sys", "1", 1e-6, "of that, time in the kernel"),
    (
        "cpu.stat",
        "nr_throttled",
        "throttled_periods",
        "1/s",
        1.0,
        "periods in which cpu.max held the workload back",
    ),
    ("cpu.stat", "throttled_usec", "throttled", "1", 1e-6, "threads held back by cpu.max, on average"),
    ("memory.events", "high", "memory_high", "1/s", 1.0, "times the workload was held back at memory.high"),
    (
        "memory.events",
        "oom_kill",
        "oom_kills",
        "1/s",
        1.0,
        "processes of the workload killed for want of memory",
    ),
];

/// Keys of `io.stat`, summed over the devices.
const IO: [(&str, &str, &str, &str); 6] = [
    ("rbytes", "read_bytes", "B/s", "read by the workload"),
    ("wbytes", "write_bytes", "B/s", "written by the workload"),
    ("rios", "reads", "1/s", "read requests of the workload"),
    ("wios", "writes", "1/s", "write requests of the workload"),
    ("dbytes", "discard_bytes", "B/s", "discarded by the workload"),
    ("dios", "discards", "1/s", "discard requests of the workload"),
];

fn open(options: &Options) -> Result<Vec<Part>, String> {
    let Some(dir) = &options.cgroup else {
        let why =
            options.no_cgroup.as_ref().map(|why| format!("the command has no cgroup of its own: {why}"));
        return Err(why.unwrap_or_else(|| NOT_ASKED.to_owned()));
    };
    // A directory that is no group of version 2 has no such file.
    Part::file("", &format!("{dir}/cpu.stat"))?;
    Ok(Part::files(FILES.iter().map(|file| ((*file).to_owned(), format!("{dir}/{file}"))).collect()))
}

fn channels(lines: &Lines, channels: &mut Channels) {
    for line in &lines.lines {
        for (_, label, name, unit, factor, words) in COUNTS.iter().filter(|(file, ..)| *file == line.section)
        {
            if line.label() == Some(label)
                && let Some(column) = line.named(label)
            {
                channels.rate(format!("cgroup.{name}"), unit, words, vec![column], *factor);
            }
        }
        if let Some(column) = line.only() {
            match line.section {
                "memory.current" => channels.level(
                    "cgroup.memory",
                    "B",
                    "memory of the workload, with its page cache",
                    column,
                    1.0,
                ),
                "memory.peak" => channels.level(
                    "cgroup.memory_peak",
                    "B",
                    "most memory of the workload so far",
                    column,
                    1.0,
                ),
                _ => {}
            }
        }
    }
    // Without the io controller there is no such file. With it, a device has a line from its first request of the group
    // on (block/blk-cgroup.c, `blkcg_print_one_stat`), and what it counted before was nothing.
    if lines.sections.contains(&"io.stat") {
        for (key, name, unit, words) in IO {
            let of = lines.lines.iter().filter(|line| line.section == "io.stat");
            let columns: Vec<Column> = of.filter_map(|line| line.named(key)).collect();
            channels.by(format!("cgroup.{name}"), unit, words, Rule::Sum { columns }, 1.0);
        }
    }
    pressure::channels_of(lines, "cgroup.pressure", "threads of the workload", channels);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sampler::sources::testing::{between, made_of};

    #[test]
    fn time_io_memory_and_pressure() {
        let text = |count: u64| {
            format!(
                "@cpu.stat\nusage_usec {count}000000\nuser_usec {count}000000\nsystem_usec 0\n\
                 @io.stat\n254:0 rbytes={count} wbytes=0 rios=1 wios=0 dbytes=0 dios=0\n254:16 rbytes=0 wbytes={count} rios=1 wios=0 dbytes=0 dios=0\n\
                 @memory.current\n4096\n@memory.peak\n!No such file or directory (os error 2)\n\
                 @cpu.pressure\nsome avg10=0.00 avg60=0.00 avg300=0.00 total={count}000000\nfull avg10=0.00 avg60=0.00 avg300=0.00 total=0\n"
            )
        };
        let values = between(&SOURCE, &text(2), &text(8), 4.0);
        assert_eq!(values["cgroup.cpu"], Some(1.5));
        assert_eq!(values["cgroup.read_bytes"], Some(1.5));
        assert_eq!(values["cgroup.write_bytes"], Some(1.5));
        assert_eq!(values["cgroup.memory"], Some(4096.0));
        assert!(!values.contains_key("cgroup.memory_peak"));
        assert_eq!(values["cgroup.pressure.cpu.some"], Some(1.5));
        let without = "@io.stat\n!No such file or directory (os error 2)\n@memory.current\n4096\n";
        assert_eq!(made_of(&SOURCE, without), ["cgroup.memory"]);
    }
}
