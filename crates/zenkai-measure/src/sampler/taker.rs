//! Takes the samples and writes them down, in the sampling thread.
//!
//! A sample is a record: the time since the one before, the thread's own CPU time, the time asleep, and of each source
//! that was due its number, then either a template that was seen before and a row, or a new one and a row against
//! zeros. Layout: [`super::codec`]; reading it back: [`super::replay`].

use serde::{Deserialize, Serialize};
use zenkai_host::gauges::{Moment, thread_cpu_ns};

use super::{
    Options,
    codec::{put, put_record, put_row},
    processes::Processes,
    source::{Cadence, NOT_ASKED, Part, Source},
    template::take_apart,
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
    read_ns: u64,
}

/// Everything that is read, and what was last seen.
pub(super) struct Taker {
    open: Vec<Open>,
    last: Moment,
    last_cpu_ns: u64,
    text: Vec<u8>,
    template: Vec<u8>,
    row: Vec<u64>,
    payload: Vec<u8>,
    processes: Processes,
}

impl Taker {
    /// Opens all that is there.
    pub(super) fn open(sources: &[&'static Source], options: &Options) -> (Self, Header) {
        let mut header =
            Header { interval_s: options.interval.as_secs_f64(), ends: true, ..Header::default() };
        let mut open = Vec::new();
        for &source in sources {
            match (source.open)(options) {
                Ok(parts) => {
                    header.sources.push(source.name.to_owned());
                    open.push(Open { parts, ..Open::of(source) });
                }
                Err(reason) if reason == NOT_ASKED => {}
                Err(reason) => header.missing.push((source.name.to_owned(), reason)),
            }
        }
        let taker = Self {
            open,
            last: Moment::now(),
            last_cpu_ns: 0,
            text: Vec::new(),
            template: Vec::new(),
            row: Vec::new(),
            payload: Vec::new(),
            processes: Processes::default(),
        };
        (taker, header)
    }

    /// The first sample counts its time from now.
    pub(super) fn begin(&mut self) {
        self.last = Moment::now();
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
            let least = open.least_ns();
            // A hundredth early is in time: timers are not exact.
            if !everything && now.monotonic_ns + least / 100 < open.read_ns + least {
                continue;
            }
            open.read_ns = now.monotonic_ns;
            self.text.clear();
            for part in &open.parts {
                part.read(&mut self.text);
            }
            take_apart(&self.text, open.source.digits, &mut self.template, &mut self.row);
            put(u64::try_from(number).unwrap_or(0) + 1, &mut self.payload);
            open.put(&self.template, &self.row, &mut self.payload);
        }
        put(0, &mut self.payload);
        put_record(SAMPLE, &self.payload, out);
        if let Some(top) = self.processes.look(now, everything)
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
        Self { source, parts: Vec::new(), templates: Vec::new(), oldest: 0, read_ns: 0 }
    }

    #[cfg(test)]
    pub(super) fn name(&self) -> &'static str {
        self.source.name
    }

    fn least_ns(&self) -> u64 {
        let cadence = if self.parts.len() > MANY { Cadence::Slow } else { self.source.cadence };
        cadence.least_ns()
    }

    /// Writes down what was read, as the difference to what this template last stood for.
    pub(super) fn put(&mut self, template: &[u8], row: &[u64], out: &mut Vec<u8>) {
        let known = self.templates.iter().position(|(known, _)| known == template);
        let at = known.unwrap_or_else(|| {
            let new = (template.to_vec(), vec![0; row.len()]);
            if self.templates.len() < TEMPLATES {
                self.templates.push(new);
                return self.templates.len() - 1;
            }
            let at = self.oldest;
            self.oldest = (at + 1) % TEMPLATES;
            self.templates[at] = new;
            at
        });
        put(u64::try_from(at).unwrap_or(0) << 1 | u64::from(known.is_none()), out);
        if known.is_none() {
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
