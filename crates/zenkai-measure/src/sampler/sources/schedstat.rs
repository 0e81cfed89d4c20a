//! `/proc/schedstat` (`Documentation/scheduler/sched-stats.rst`, `kernel/sched/stats.c`): how long threads waited for
//! a CPU. Kernels without CONFIG_SCHEDSTATS do not have it.

use crate::sampler::{
    channel::Channels,
    source::{Cadence, Source, one_file},
    template::{Column, Digits, Lines},
};

pub(in crate::sampler) static SOURCE: Source = Source {
    name: "schedstat",
    cadence: Cadence::Second,
    digits: Digits::Decimal,
    open: |_| one_file("/proc/schedstat"),
    channels,
};

/// Fields of a CPU's line, which versions 15 to 17 share: nanoseconds run, nanoseconds waited, turns.
const RUN: usize = 6;
const WAITED: usize = 7;
const TURNS: usize = 8;

fn channels(lines: &Lines, channels: &mut Channels) {
    let cpus =
        || lines.lines.iter().filter(|line| line.label().is_some_and(|label| label.starts_with("cpu")));
    let of = |field: usize| -> Vec<Column> {
        cpus().filter_map(|line| line.words.get(field + 1)?.column()).collect()
    };
    let (run, waited, turns) = (of(RUN), of(WAITED), of(TURNS));
    if turns.is_empty() {
        return;
    }
    channels.rate("sched.on_cpu", "1", "threads on a CPU, on average", run, 1e-9);
    channels.rate("sched.run_delay", "1", "threads waiting for a CPU, on average", waited.clone(), 1e-9);
    channels.share("sched.delay_per_turn", "s", "wait for a CPU before each turn", (waited, turns), 1e-9);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sampler::sources::testing::{between, made_of};

    #[test]
    fn waiting_is_summed_over_the_cpus() {
        let values = between(
            &SOURCE,
            "version 17\ntimestamp 5\ncpu0 0 0 0 0 0 0 10 0 0\ndomain0 MC 3 1 2\ncpu1 0 0 0 0 0 0 10 0 0\n",
            "version 17\ntimestamp 6\ncpu0 0 0 0 0 0 0 11 2000000000 3\ndomain0 MC 3 9 9\ncpu1 0 0 0 0 0 0 10 1000000000 3\n",
            2.0,
        );
        assert_eq!(values["sched.run_delay"], Some(1.5));
        assert_eq!(values["sched.delay_per_turn"], Some(0.5));
    }

    #[test]
    fn another_layout_gives_nothing() {
        assert!(made_of(&SOURCE, "version 99\ncpu0 1 2\n").is_empty());
    }
}
