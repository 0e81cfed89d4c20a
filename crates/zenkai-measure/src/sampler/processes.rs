//! Which processes used most CPU time. Looking at all of them costs much, so it is done near the start, at the end, and in
//! between only as often as it stays cheap; what began and ended between two looks is not seen.

use std::{collections::BTreeMap, time::Duration};

use serde::{Deserialize, Serialize};
use zenkai_host::gauges::{Moment, ProcessTable, thread_cpu_ns};

/// A process that used much CPU time during a recording.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Process {
    /// Its number.
    pub pid: u32,
    /// Its name, as the kernel keeps it: 15 bytes, unless it chose another.
    pub name: String,
    /// CPU time of all its threads while the recording ran, as far as it was seen, in seconds.
    pub cpu_s: f64,
}

/// How many are told.
const TOP: usize = 10;

/// From one look to the next, at least.
const LEAST_NS: u64 = 10_000_000_000;

/// A look may cost one part in so many of the time until the next: 0.02 ms a second.
const SPARING: u64 = 50_000;

/// When the first look is taken. Who ends before needs none: the kernel counts in hundredths of a second. Others lose what
/// those that ran before used up to then, and need not share the CPU with a look while they start.
const FIRST: Duration = Duration::from_millis(100);

/// A process by its number and when it began, since numbers come again.
type Key = (u32, u64);

struct Seen {
    name: String,
    first: u64,
    last: u64,
    /// At which look it was there.
    look: u64,
}

/// What was seen so far.
#[derive(Default)]
pub(super) struct Processes {
    table: Option<ProcessTable>,
    seen: BTreeMap<Key, Seen>,
    due_ns: u64,
    looks: u64,
    /// When the recording began: what is younger is counted from its own beginning.
    begun: u64,
}

impl Processes {
    /// A recording begins.
    pub(super) fn begin(&mut self, now: Moment) {
        self.seen.clear();
        (self.looks, self.due_ns) = (0, 0);
        self.begun = now.boot_ns / (1_000_000_000 / ticks_per_second()).max(1);
    }

    /// How long after the beginning there is a look to take, if there is one.
    pub(super) fn wanted(&self) -> Option<Duration> {
        (self.looks == 0).then_some(FIRST)
    }

    /// Takes the first look.
    pub(super) fn first(&mut self) {
        self.look(Moment::now());
    }

    /// Looks at all processes if it is time, or if it is the last time, and gives those that used most since the first
    /// look. Without one there are none to tell.
    pub(super) fn again(&mut self, now: Moment, last: bool) -> Option<Vec<Process>> {
        if self.looks == 0 || !last && now.monotonic_ns < self.due_ns {
            return None;
        }
        self.look(now);
        Some(self.top())
    }

    fn look(&mut self, now: Moment) {
        let before = thread_cpu_ns();
        self.scan();
        let cost = thread_cpu_ns().saturating_sub(before);
        self.due_ns = now.monotonic_ns.saturating_add(cost.saturating_mul(SPARING).max(LEAST_NS));
    }

    fn scan(&mut self) {
        self.looks += 1;
        if self.table.is_none() {
            self.table = ProcessTable::open().ok();
        }
        let Some(table) = &mut self.table else { return };
        let (seen, look, begun) = (&mut self.seen, self.looks, self.begun);
        let read = table.stats(&mut |pid, text| {
            let Some((name, ticks, start)) = parse(text) else { return };
            // What began after the recording is counted from its beginning.
            let first = if look > 1 || start >= begun { 0 } else { ticks };
            let new = || Seen { name: String::new(), first, last: 0, look };
            let seen = seen.entry((pid, start)).or_insert_with(new);
            (seen.last, seen.look) = (ticks, look);
            if seen.name.as_bytes() != name {
                seen.name = String::from_utf8_lossy(name).into_owned();
            }
        });
        if read.is_err() {
            // Who was not reached is not gone.
            return;
        }
        // Of those that ended only the ones that may still be told stay.
        let least = self.top().last().map_or(0.0, |process| process.cpu_s).max(0.01);
        self.seen.retain(|_, seen| seen.look == look || seen.cpu_s() >= least);
    }

    fn top(&self) -> Vec<Process> {
        let used = self.seen.iter().filter(|(_, seen)| seen.last > seen.first);
        let mut top: Vec<Process> = used
            .map(|((pid, _), seen)| Process { pid: *pid, name: seen.name.clone(), cpu_s: seen.cpu_s() })
            .collect();
        top.sort_by(|a, b| b.cpu_s.total_cmp(&a.cpu_s));
        top.truncate(TOP);
        top
    }
}

impl Seen {
    fn cpu_s(&self) -> f64 {
        crate::to_f64(self.last.saturating_sub(self.first)) / crate::to_f64(ticks_per_second())
    }
}

fn ticks_per_second() -> u64 {
    rustix::param::clock_ticks_per_second().max(1)
}

/// Name, user and system time together, and the start, of `/proc/PID/stat` (proc_pid_stat(5)). The name stands in
/// parentheses and may itself hold any character.
fn parse(text: &[u8]) -> Option<(&[u8], u64, u64)> {
    let open = text.iter().position(|&byte| byte == b'(')?;
    let close = text.iter().rposition(|&byte| byte == b')').filter(|close| *close > open)?;
    let mut fields = std::str::from_utf8(text.get(close + 1..)?).ok()?.split_ascii_whitespace();
    // Behind the name comes field 3; utime is 14, stime 15, starttime 22.
    let user: u64 = fields.nth(11)?.parse().ok()?;
    let system: u64 = fields.next()?.parse().ok()?;
    let start: u64 = fields.nth(6)?.parse().ok()?;
    Some((text.get(open + 1..close)?, user.checked_add(system)?, start))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_may_hold_anything() {
        let line = b"7 (a) R 1 (b) S 1 7 7 0 -1 4194560 1 2 3 4 50 60 0 0 20 0 1 0 999 5 6\n";
        assert_eq!(parse(line), Some((b"a) R 1 (b".as_slice(), 110, 999)));
        for wrong in
            ["", "7 (", "7 )(", "7 (x) S 1 2", "7 (x) S 1 7 7 0 -1 4194560 1 2 3 4 -5 60 0 0 20 0 1 0 9"]
        {
            assert_eq!(parse(wrong.as_bytes()), None, "{wrong}");
        }
    }

    #[test]
    fn a_process_that_works_is_told() {
        let mut processes = Processes::default();
        processes.begin(Moment::now());
        assert_eq!(processes.again(Moment::now(), true), None, "nobody looked before");
        processes.first();
        assert_eq!(processes.wanted(), None);
        assert_eq!(processes.again(Moment::now(), false), None, "it is not time yet");
        let before = thread_cpu_ns();
        while thread_cpu_ns() - before < 60_000_000 {}
        let top = processes.again(Moment::now(), true).unwrap();
        let us = std::process::id();
        // On a machine with ten busier processes we are not among them.
        assert!(top.len() == TOP || top.iter().any(|each| each.pid == us && each.cpu_s >= 0.04), "{top:?}");
    }

    #[test]
    fn what_began_after_the_recording_counts_from_its_beginning() {
        let mut processes = Processes::default();
        // As if it had begun before all of them.
        processes.begin(Moment { monotonic_ns: 0, boot_ns: 0 });
        let before = thread_cpu_ns();
        while thread_cpu_ns() - before < 60_000_000 {}
        processes.first();
        let us = processes.seen.iter().find(|((pid, _), _)| *pid == std::process::id()).unwrap().1;
        assert!(us.cpu_s() >= 0.04, "{}", us.cpu_s());
    }
}
