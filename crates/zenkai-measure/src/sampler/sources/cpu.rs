//! `/proc/stat` (proc_stat(5), `fs/proc/stat.c`): where CPU time went, context switches, processes.

use crate::sampler::{
    channel::Channels,
    source::{Cadence, Source, one_file},
    template::{Column, Digits, Line, Lines},
};

pub(in crate::sampler) static SOURCE: Source = Source {
    name: "cpu",
    cadence: Cadence::Always,
    digits: Digits::Decimal,
    open: |_| one_file("/proc/stat"),
    channels,
};

/// Parts of the time, and in which fields they stand, from 0. User time contains the guests' (`account_guest_time` in
/// `kernel/sched/cputime.c`), so the first eight fields make the whole.
const PARTS: [(&str, &[usize], &str); 7] = [
    ("usr", &[0, 1], "user time"),
    ("sys", &[2], "time in the kernel"),
    ("idle", &[3], "idle time"),
    ("iowait", &[4], "idle time with I/O waiting"),
    ("irq", &[5], "time in interrupts"),
    ("softirq", &[6], "time in software interrupts"),
    ("steal", &[7], "time that the hypervisor gave to others"),
];

/// Fields that together are all time.
const WHOLE: usize = 8;

/// Counters: their label, channel and meaning.
const COUNTS: [(&str, &str, &str); 3] = [
    ("ctxt", "sched.context_switches", "context switches"),
    ("processes", "sched.forks", "processes and threads started"),
    ("intr", "sched.interrupts", "interrupts in all"),
];

/// What is the case at the moment.
const LEVELS: [(&str, &str, &str); 2] = [
    ("procs_running", "sched.running", "threads running or waiting for a CPU"),
    ("procs_blocked", "sched.blocked", "threads waiting for I/O"),
];

fn channels(lines: &Lines, channels: &mut Channels) {
    for line in &lines.lines {
        let Some(label) = line.label() else { continue };
        if let Some(number) = label.strip_prefix("cpu") {
            times(label, number, line, channels);
            continue;
        }
        let Some(column) = line.words.get(1).and_then(|word| word.column()) else { continue };
        for (_, name, words) in COUNTS.iter().filter(|(known, ..)| *known == label) {
            channels.rate(name, "1/s", words, vec![column], 1.0);
        }
        for (_, name, words) in LEVELS.iter().filter(|(known, ..)| *known == label) {
            channels.level(name, "1", words, column, 1.0);
        }
    }
}

/// Shares of one CPU's time, or of all.
fn times(label: &str, number: &str, line: &Line, channels: &mut Channels) {
    let columns = line.columns();
    let whole = columns.get(..WHOLE).unwrap_or(&columns);
    let of_what = if number.is_empty() { "all CPUs".to_owned() } else { format!("CPU {number}") };
    for (part, fields, words) in PARTS {
        let of: Vec<Column> = fields.iter().filter_map(|&field| whole.get(field)).copied().collect();
        if of.len() == fields.len() {
            let (name, words) = (format!("{label}.{part}"), format!("{words}, share of {of_what}"));
            channels.share(name, "1", words, (of, whole.to_vec()), 1.0).falling();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sampler::sources::testing::{between, made_of};

    const BEFORE: &str = "cpu  100 0 50 800 50 0 0 0 0 0\ncpu0 100 0 50 800 50 0 0 0 0 0\nintr 10 5 5\nctxt 100\n\
                          processes 7\nprocs_running 2\nprocs_blocked 0\n";

    #[test]
    fn shares_of_time_and_counters() {
        let after = "cpu  150 10 70 860 49 0 5 5 0 0\ncpu0 150 10 70 860 49 0 5 5 0 0\nintr 30 9 9\nctxt 300\n\
                     processes 9\nprocs_running 1\nprocs_blocked 0\n";
        let values = between(&SOURCE, BEFORE, after, 2.0);
        // 50 + 10 user, 20 system, 60 idle, -1 I/O wait that counts as none, 5 and 5.
        assert_eq!(values["cpu.usr"], Some(60.0 / 150.0));
        assert_eq!(values["cpu0.sys"], Some(20.0 / 150.0));
        assert_eq!(values["cpu.iowait"], Some(0.0));
        assert_eq!(values["cpu.steal"], Some(5.0 / 150.0));
        assert_eq!(values["sched.context_switches"], Some(100.0));
        assert_eq!(values["sched.interrupts"], Some(10.0));
        assert_eq!(values["sched.running"], Some(1.0));
    }

    #[test]
    fn an_old_kernel_tells_less_and_a_strange_one_nothing() {
        assert!(!made_of(&SOURCE, "cpu 1 2 3 4\n").contains(&"cpu.steal".to_owned()));
        assert!(made_of(&SOURCE, "cpu\nctxt\nctxt x\n\nprocs_running -1\n").is_empty());
    }

    /// What a sample costs to take apart and to follow, counted in columns.
    #[test]
    fn the_work_grows_with_the_cpus_and_not_faster() {
        let work = |cpus: usize| {
            let mut text = String::from("cpu  1 2 3 4 5 6 7 8 9 10\n");
            for cpu in 0..cpus {
                text += &format!("cpu{cpu} 1 2 3 4 5 6 7 8 9 10\n");
            }
            let (mut template, mut numbers) = (Vec::new(), Vec::new());
            crate::sampler::template::take_apart(
                text.as_bytes(),
                Digits::Decimal,
                &mut template,
                &mut numbers,
            );
            let mut found = Channels::default();
            channels(&crate::sampler::template::lines(&template), &mut found);
            numbers.len() + found.list.iter().map(|derived| derived.rule.columns().len()).sum::<usize>()
        };
        let (of_64, of_128, of_256) = (work(64), work(128), work(256));
        assert_eq!(of_256 - of_128, 2 * (of_128 - of_64));
    }
}
