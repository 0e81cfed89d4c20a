//! Takes the samples and writes them down, in the sampling thread.
//!
//! A sample is a record: the time since the one before, the thread's own CPU time, the time asleep, and of each source
//! that was due its number, then either a template that was seen before and a row, or a new one and a row against
//! zeros. Layout: [`super::codec`]; reading it back: [`super::replay`].

use std::time::Duration;

use serde::{Deserialize, Serialize};
use zenkai_host::gauges::{Moment, real_time_ns, thread_cpu_ns};

use super::{
    Options,
    codec::{put, put_record, put_row},
    processes::Processes,
    source::{Cadence, NOT_ASKED, Part, Source},
    sources::{SOURCES, is_of_workload, word},
    template::{follow, take_apart},
};

/// Kinds of records.
pub(super) const HEADER: u8 = b'H';
pub(super) const SAMPLE: u8 = b'S';
pub(super) const PROCESSES: u8 = b'P';
/// Nothing follows: the recorder was not killed.
pub(super) const END: u8 = b'E';
/// What the recording is about; not written here.
pub(super) const ABOUT: u8 = b'A';

/// Templates kept for each source. A text that changes its words more often than that costs room, no more.
pub(super) const TEMPLATES: usize = 8;

/// The first record, as JSON: it stands there once and may grow.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(super) struct Header {
    /// When the first sample was taken, nanoseconds since 1970.
    pub(super) started_ns: u64,
    /// What was asked for.
    pub(super) interval_s: f64,
    /// Sources by number.
    pub(super) sources: Vec<String>,
    /// Sources that are not there, and why.
    pub(super) missing: Vec<(String, String)>,
    /// Whether the last record will be [`END`].
    #[serde(default)]
    pub(super) ends: bool,
}

/// A source that is being read.
pub(super) struct Open {
    source: &'static Source,
    parts: Vec<Part>,
    templates: Vec<(Vec<u8>, Vec<u64>)>,
    /// Which template is the next to be forgotten.
    oldest: usize,
    /// Which one the last text had.
    current: usize,
    read_ns: u64,
}

/// Everything that is read, and what was last seen. The machine's own sources stay open from one recording to the next.
pub(super) struct Taker {
    open: Vec<Open>,
    /// Sources that the machine does not have, and why.
    missing: Vec<(String, String)>,
    /// The CPUs that were online when the sources were opened.
    cpus: Option<String>,
    /// A file of the machine's that was there has gone since.
    gone: bool,
    /// How many were taken.
    samples: u64,
    last: Moment,
    last_cpu_ns: u64,
    text: Vec<u8>,
    template: Vec<u8>,
    row: Vec<u64>,
    payload: Vec<u8>,
    processes: Processes,
}

impl Taker {
    /// Opens all that the machine itself has.
    pub(super) fn open() -> Self {
        let mut taker = Self {
            open: Vec::new(),
            missing: Vec::new(),
            cpus: online(),
            gone: false,
            samples: 0,
            last: Moment::now(),
            last_cpu_ns: 0,
            text: Vec::new(),
            template: Vec::new(),
            row: Vec::new(),
            payload: Vec::new(),
            processes: Processes::default(),
        };
        let machines = SOURCES.into_iter().filter(|source| !is_of_workload(source));
        taker.missing = taker.add(machines, &Options::default());
        taker
    }

    /// Opens sources. Gives those that are not there, and why.
    fn add(
        &mut self,
        sources: impl Iterator<Item = &'static Source>,
        options: &Options,
    ) -> Vec<(String, String)> {
        let mut missing = Vec::new();
        for source in sources {
            match (source.open)(options) {
                Ok(parts) => self.open.push(Open { parts, ..Open::of(source) }),
                Err(reason) if reason == NOT_ASKED => {}
                Err(reason) => missing.push((source.name.to_owned(), reason)),
            }
        }
        missing
    }

    /// Begins a recording: the workload's own sources are opened, and of the last recording nothing is remembered.
    pub(super) fn begin(&mut self, options: &Options) -> Header {
        if self.gone || self.cpus != online() {
            *self = Self::open();
        }
        self.open.retain(|open| !is_of_workload(open.source));
        self.open.iter_mut().for_each(Open::forget);
        (self.last_cpu_ns, self.samples) = (0, 0);
        let mut missing = self.missing.clone();
        missing.extend(self.add(SOURCES.into_iter().filter(|source| is_of_workload(source)), options));
        self.last = Moment::now();
        self.processes.begin(self.last);
        Header {
            started_ns: real_time_ns(),
            interval_s: options.interval.as_secs_f64(),
            sources: self.open.iter().map(|open| open.source.name.to_owned()).collect(),
            missing,
            ends: true,
        }
    }

    /// When the processes are looked at for the first time, counted from the beginning, unless they have been.
    pub(super) fn first_look(&self) -> Option<Duration> {
        self.processes.wanted()
    }

    /// Looks at the processes for the first time.
    pub(super) fn look(&mut self) {
        self.processes.first();
    }

    /// Reads what is due, or everything, and appends a record.
    pub(super) fn sample(&mut self, everything: bool, out: &mut Vec<u8>) {
        let now = Moment::now();
        let cpu_ns = thread_cpu_ns();
        self.payload.clear();
        let passed = now.monotonic_ns.saturating_sub(self.last.monotonic_ns);
        let asleep = now.boot_ns.saturating_sub(self.last.boot_ns).saturating_sub(passed);
        put(passed, &mut self.payload);
        put(cpu_ns.saturating_sub(self.last_cpu_ns), &mut self.payload);
        // The two clocks are read one after the other: less than a millisecond is no sleep.
        put(if asleep < 1_000_000 { 0 } else { asleep }, &mut self.payload);
        (self.last, self.last_cpu_ns) = (now, cpu_ns);
        for number in 0..self.open.len() {
            let Some(open) = self.open.get_mut(number) else { break };
            if !everything && !open.is_due(now, self.samples) {
                continue;
            }
            open.read_ns = now.monotonic_ns;
            self.text.clear();
            let mut gone = false;
            for part in &open.parts {
                gone |= part.read(&mut self.text);
            }
            self.gone |= gone && !is_of_workload(open.source);
            put(u64::try_from(number).unwrap_or(0) + 1, &mut self.payload);
            if let Some(at) = open.known(&self.text, &mut self.row) {
                open.put_at(at, None, &self.row, &mut self.payload);
            } else {
                take_apart(&self.text, open.source.digits, &mut self.template, &mut self.row);
                open.put(&self.template, &self.row, &mut self.payload);
            }
        }
        self.samples += 1;
        put(0, &mut self.payload);
        put_record(SAMPLE, &self.payload, out);
        if let Some(top) = self.processes.again(now, everything)
            && let Ok(json) = serde_json::to_vec(&top)
        {
            put_record(PROCESSES, &json, out);
        }
    }
}

/// A source of more files than this is read seldom.
const MANY: usize = 64;

impl Open {
    /// Nothing of it was read yet.
    pub(super) fn of(source: &'static Source) -> Self {
        Self { source, parts: Vec::new(), templates: Vec::new(), oldest: 0, current: 0, read_ns: 0 }
    }

    /// A recording begins: it stands by itself.
    fn forget(&mut self) {
        self.templates.clear();
        (self.oldest, self.current, self.read_ns) = (0, 0, 0);
    }

    #[cfg(test)]
    pub(super) fn name(&self) -> &'static str {
        self.source.name
    }

    /// Whether it is to be read in this sample, by its number.
    fn is_due(&self, now: Moment, number: u64) -> bool {
        let cadence = if self.parts.len() > MANY { Cadence::Slow } else { self.source.cadence };
        let least = cadence.least_ns();
        // A hundredth early is in time: timers are not exact.
        cadence.takes(number) && now.monotonic_ns + least / 100 >= self.read_ns + least
    }

    /// The template that this text has, among those that were seen; its numbers are in `row` then. Mostly it is the one
    /// that the text had before.
    fn known(&self, text: &[u8], row: &mut Vec<u64>) -> Option<usize> {
        let count = self.templates.len();
        let mut order = (0..count).map(|step| (self.current + step) % count);
        order.find(|&at| {
            let template = self.templates.get(at);
            template.is_some_and(|(template, _)| follow(text, self.source.digits, template, row))
        })
    }

    /// Writes down what was read, as the difference to what this template last stood for.
    pub(super) fn put(&mut self, template: &[u8], row: &[u64], out: &mut Vec<u8>) {
        if let Some(at) = self.templates.iter().position(|(known, _)| known == template) {
            return self.put_at(at, None, row, out);
        }
        let new = (template.to_vec(), vec![0; row.len()]);
        let at = if self.templates.len() < TEMPLATES {
            self.templates.push(new);
            self.templates.len() - 1
        } else {
            let at = self.oldest;
            self.oldest = (at + 1) % TEMPLATES;
            self.templates[at] = new;
            at
        };
        self.put_at(at, Some(template), row, out);
    }

    fn put_at(&mut self, at: usize, new: Option<&[u8]>, row: &[u64], out: &mut Vec<u8>) {
        self.current = at;
        put(u64::try_from(at).unwrap_or(0) << 1 | u64::from(new.is_some()), out);
        if let Some(template) = new {
            put(u64::try_from(template.len()).unwrap_or(0), out);
            out.extend_from_slice(template);
        }
        if let Some((_, before)) = self.templates.get_mut(at) {
            put_row(before, row, out);
            before.clear();
            before.extend_from_slice(row);
        }
    }
}

/// The CPUs that are online, as a list.
fn online() -> Option<String> {
    word("/sys/devices/system/cpu/online")
}
