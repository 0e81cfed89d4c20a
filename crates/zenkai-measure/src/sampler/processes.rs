//! Which processes used most CPU time. Looking at all of them costs much, so it is done at both ends and in between only
//! as often as it stays cheap; what began and ended between two looks is not seen.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use zenkai_host::{
    Host as _, LiveHost,
    gauges::{Gauge, Moment, thread_cpu_ns},
};

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

/// A look may cost one part in so many of the time until the next: 0.05 ms a second.
const SPARING: u64 = 20_000;

/// A process by its number and when it began, since numbers come again.
type Key = (u32, u64);

struct Seen {
    name: String,
    first: u64,
    last: u64,
}

/// What was seen so far.
#[derive(Default)]
pub(super) struct Processes {
    seen: BTreeMap<Key, Seen>,
    due_ns: u64,
    begun: bool,
}

impl Processes {
    /// Looks at all processes if it is time, or if told to, and gives those that used most.
    pub(super) fn look(&mut self, now: Moment, must: bool) -> Option<Vec<Process>> {
        if !must && now.monotonic_ns < self.due_ns {
            return None;
        }
        let before = thread_cpu_ns();
        self.scan();
        let cost = thread_cpu_ns().saturating_sub(before);
        self.due_ns = now.monotonic_ns.saturating_add(cost.saturating_mul(SPARING).max(LEAST_NS));
        Some(self.top())
    }

    fn scan(&mut self) {
        let Ok(entries) = LiveHost.list("/proc") else { return };
        let pids = entries.iter().filter_map(|entry| entry.name.parse::<u32>().ok());
        let mut alive = Vec::new();
        let mut text = Vec::new();
        for pid in pids {
            text.clear();
            // It may end at any moment.
            let read = Gauge::open(&format!("/proc/{pid}/stat")).and_then(|file| file.read(&mut text));
            let Some((name, ticks, start)) = read.ok().and_then(|()| parse(&text)) else { continue };
            // What began after the first look is counted from its beginning.
            let first = if self.begun { 0 } else { ticks };
            let seen = self.seen.entry((pid, start)).or_insert(Seen { name: String::new(), first, last: 0 });
            seen.last = ticks;
            if seen.name != name {
                seen.name = name;
            }
            alive.push((pid, start));
        }
        self.begun = true;
        // Of those that ended only the ones that may still be told stay.
        let least = self.top().last().map_or(0.0, |process| process.cpu_s);
        alive.sort_unstable();
        self.seen.retain(|key, seen| alive.binary_search(key).is_ok() || seen.cpu_s() >= least.max(0.01));
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
        let ticks = crate::to_f64(self.last.saturating_sub(self.first));
        ticks / crate::to_f64(rustix::param::clock_ticks_per_second().max(1))
    }
}

/// Name, user and system time together, and the start, of `/proc/PID/stat` (proc_pid_stat(5)). The name stands in
/// parentheses and may itself hold any character.
fn parse(text: &[u8]) -> Option<(String, u64, u64)> {
    let text = String::from_utf8_lossy(text);
    let (front, rest) = text.rsplit_once(')')?;
    let (_, name) = front.split_once('(')?;
    let mut fields = rest.split_ascii_whitespace();
    // Behind the name comes field 3; utime is 14, stime 15, starttime 22.
    let user: u64 = fields.nth(11)?.parse().ok()?;
    let system: u64 = fields.next()?.parse().ok()?;
    let start: u64 = fields.nth(6)?.parse().ok()?;
    Some((name.to_owned(), user.checked_add(system)?, start))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_may_hold_anything() {
        let line = b"7 (a) R 1 (b) S 1 7 7 0 -1 4194560 1 2 3 4 50 60 0 0 20 0 1 0 999 5 6\n";
        assert_eq!(parse(line), Some(("a) R 1 (b".to_owned(), 110, 999)));
        for wrong in
            ["", "7 (", "7 )(", "7 (x) S 1 2", "7 (x) S 1 7 7 0 -1 4194560 1 2 3 4 -5 60 0 0 20 0 1 0 9"]
        {
            assert_eq!(parse(wrong.as_bytes()), None, "{wrong}");
        }
    }

    #[test]
    fn a_process_that_works_is_told() {
        let mut processes = Processes::default();
        assert_eq!(processes.look(Moment::now(), true), Some(Vec::new()), "nothing has passed yet");
        assert_eq!(processes.look(Moment::now(), false), None, "it is not time yet");
        let before = thread_cpu_ns();
        while thread_cpu_ns() - before < 60_000_000 {}
        let top = processes.look(Moment::now(), true).unwrap();
        let us = std::process::id();
        // On a machine with ten busier processes we are not among them.
        assert!(top.len() == TOP || top.iter().any(|each| each.pid == us && each.cpu_s >= 0.04), "{top:?}");
    }
}
