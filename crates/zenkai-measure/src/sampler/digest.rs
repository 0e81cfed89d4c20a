//! A recording boiled down to what a report shows, in one pass over all samples: of each channel its mean and extremes,
//! and over time in bins of equal width.

use super::{
    Channel, Process, Recording, Summary,
    channel::{Derived, Part},
    recording::Nobody,
    replay::{Listener, Replay, Span, seconds},
};
use crate::to_f64;

/// The samples of a short stretch of time.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Bin {
    /// Smallest sample.
    pub low: f64,
    /// Their mean; of rates the one over the whole bin.
    pub mean: f64,
    /// Largest sample.
    pub high: f64,
}

/// A channel over time.
#[derive(Debug, Clone, PartialEq)]
pub struct Curve {
    /// What is measured.
    pub channel: Channel,
    /// One bin after the other from the start; `None` where it could not be measured.
    pub bins: Vec<Option<Bin>>,
}

/// Everything that a report shows of a recording.
#[derive(Debug, Clone, PartialEq)]
pub struct Digest {
    /// What the recording is about, as names and values, if that was kept.
    pub about: Vec<(String, String)>,
    /// When the first sample was taken, in nanoseconds since 1970.
    pub started_ns: u64,
    /// From the first sample to the last, in seconds, without the time that the machine was suspended.
    pub duration_s: f64,
    /// From one sample to the next, as it was asked for, in seconds.
    pub interval_s: f64,
    /// How many samples were taken.
    pub samples: usize,
    /// The CPU time that the sampling thread itself used, in seconds.
    pub own_cpu_s: f64,
    /// Each channel that has a value, in the order of the sources.
    pub summaries: Vec<Summary>,
    /// The same channels over time.
    pub curves: Vec<Curve>,
    /// Width of a bin, in seconds.
    pub width_s: f64,
    /// What could not be measured, and why.
    pub missing: Vec<(String, String)>,
    /// The processes that used most CPU time, the busiest first.
    pub processes: Vec<Process>,
}

impl Recording {
    /// The recording with at most `bins` bins of each channel, or a few more: they are a whole number of samples wide.
    pub fn digest(&self, bins: u32) -> Digest {
        let whole = self.look(&mut Nobody);
        let interval_s = if whole.header.interval_s > 0.0 { whole.header.interval_s } else { 1.0 };
        let samples = seconds(whole.at_ns) / f64::from(bins.max(1)) / interval_s;
        // A little late is no reason for wider bins: there may be a few more of them.
        let near = samples.round();
        let each = if near * 1.02 >= samples { near } else { samples.ceil() };
        self.binned(each.max(1.0) * interval_s, bins)
    }

    /// The recording in bins of `each_s` seconds; what comes after so many bins, and a few more, is in no curve.
    pub fn binned(&self, each_s: f64, bins: u32) -> Digest {
        let width_ns = std::time::Duration::try_from_secs_f64(each_s).unwrap_or(std::time::Duration::MAX);
        let width_ns = u64::try_from(width_ns.as_nanos()).unwrap_or(u64::MAX).max(1);
        let most = usize::try_from(bins).unwrap_or(usize::MAX).saturating_add(8);
        let mut totals = Totals { channels: Vec::new(), grid: Some(Grid { width_ns, most }) };
        let replay = self.look(&mut totals);
        let missing = totals.missing(&replay, self.ends_early(&replay));
        let (summaries, curves) = totals.channels.iter().filter_map(Total::boiled_down).unzip();
        Digest {
            about: replay.about.clone(),
            started_ns: replay.header.started_ns,
            duration_s: seconds(replay.at_ns),
            interval_s: replay.header.interval_s,
            samples: replay.samples,
            own_cpu_s: seconds(replay.own_cpu_ns),
            summaries,
            curves,
            width_s: to_f64(width_ns) * 1e-9,
            missing,
            processes: replay.processes(),
        }
    }
}

/// How time is divided.
#[derive(Clone, Copy)]
struct Grid {
    width_ns: u64,
    most: usize,
}

impl Grid {
    /// The first and the last bin that an interval touches. A sample at the border of two bins ends the first.
    fn bins(self, span: Span) -> Option<(usize, usize)> {
        let last = usize::try_from(span.at_ns.saturating_sub(1) / self.width_ns).ok()?;
        let first = usize::try_from(span.from_ns / self.width_ns).ok()?;
        (last < self.most).then_some((first.min(last), last))
    }
}

/// Sums over the whole recording, and over bins where a grid is laid.
#[derive(Default)]
pub(super) struct Totals {
    pub(super) channels: Vec<Total>,
    grid: Option<Grid>,
}

/// What is summed up of one channel.
pub(super) struct Total {
    derived: Derived,
    sum: Part,
    min: f64,
    max: f64,
    intervals: usize,
    cells: Vec<Cell>,
}

/// A bin that is being filled.
#[derive(Clone, Copy)]
struct Cell {
    sum: Part,
    low: f64,
    high: f64,
}

impl Cell {
    const EMPTY: Self =
        Self { sum: Part { numerator: 0.0, denominator: 0.0 }, low: f64::INFINITY, high: f64::NEG_INFINITY };

    fn add(&mut self, part: Part, value: f64) {
        self.sum.add(part);
        self.low = self.low.min(value);
        self.high = self.high.max(value);
    }

    fn bin(&self) -> Option<Bin> {
        Some(Bin { low: self.low, mean: self.sum.value()?, high: self.high })
    }
}

impl Listener for Totals {
    fn channel(&mut self, derived: &Derived) {
        self.channels.push(Total {
            derived: derived.clone(),
            sum: Part::default(),
            min: f64::INFINITY,
            max: f64::NEG_INFINITY,
            intervals: 0,
            cells: Vec::new(),
        });
    }

    fn part(&mut self, channel: usize, span: Span, part: Option<Part>) {
        let Some(total) = self.channels.get_mut(channel) else { return };
        let Some(part) = part else { return };
        let Some(value) = part.value() else { return };
        total.sum.add(part);
        total.min = total.min.min(value);
        total.max = total.max.max(value);
        total.intervals += 1;
        if let Some((first, last)) = self.grid.and_then(|grid| grid.bins(span)) {
            total.put((first, last), part, value);
        }
    }
}

impl Totals {
    /// What could not be measured, and why.
    pub(super) fn missing(&self, replay: &Replay, ends_early: Option<String>) -> Vec<(String, String)> {
        let mut missing = replay.header.missing.clone();
        missing.extend(replay.failed.clone());
        for total in self.channels.iter().filter(|total| total.intervals == 0 && !total.derived.quiet) {
            let why =
                if replay.samples < 2 { "there is one sample only" } else { total.derived.rule.why_none() };
            missing.push((total.derived.channel.name.clone(), why.to_owned()));
        }
        if replay.asleep_ns > 0 {
            let asleep_s = seconds(replay.asleep_ns);
            let reason = format!("it was suspended for {asleep_s:.1} s, which count nowhere");
            missing.push(("machine".to_owned(), reason));
        }
        let late_s = seconds(replay.longest_ns);
        if late_s > (replay.header.interval_s * 3.0).max(0.1) {
            missing.push(("samples".to_owned(), format!("for {late_s:.2} s none could be taken")));
        }
        missing.extend(ends_early.map(|why| ("the end".to_owned(), why)));
        missing
    }
}

impl Total {
    /// Puts an interval into the bin in which it ends. One that is longer than a bin, of a source that is read seldom,
    /// also stands for the bins that it covers, where nothing else is known.
    fn put(&mut self, (first, last): (usize, usize), part: Part, value: f64) {
        if self.cells.len() <= last {
            self.cells.resize(last + 1, Cell::EMPTY);
        }
        if first < last {
            let between = self.cells.iter_mut().take(last).skip(first);
            between.filter(|cell| cell.sum.denominator == 0.0).for_each(|cell| cell.add(part, value));
        }
        if let Some(cell) = self.cells.get_mut(last) {
            cell.add(part, value);
        }
    }

    pub(super) fn summary(&self) -> Option<Summary> {
        let mean = self.sum.value()?;
        if self.derived.quiet && self.sum.numerator == 0.0 {
            return None;
        }
        Some(Summary {
            channel: self.derived.channel.clone(),
            mean,
            min: self.min,
            max: self.max,
            total: self.derived.rule.has_total().then_some(self.sum.numerator),
            intervals: self.intervals,
        })
    }

    fn boiled_down(&self) -> Option<(Summary, Curve)> {
        let summary = self.summary()?;
        let bins = self.cells.iter().map(Cell::bin).collect();
        Some((summary, Curve { channel: self.derived.channel.clone(), bins }))
    }
}
