//! What a sampler kept.

use std::{
    collections::BTreeMap,
    fmt,
    io::{self, Write as _},
    path::Path,
};

use zenkai_host::read_plain_file;

use super::{
    Channel, Process, Series, Summary,
    channel::{Derived, Part},
    replay::{Listener, Replay, seconds},
    sources::SOURCES,
};

/// What every file begins with.
const MARK: &[u8] = b"zenkairec";
/// The version of the layout in [`super::codec`].
const VERSION: u16 = 1;
/// A larger file is no recording of ours: a week at 1 Hz is 0.5 GB on the largest machines.
const LARGEST: u64 = 2 << 30;

/// What a sampler kept, still as it was read.
#[derive(Clone, Default)]
pub struct Recording {
    /// Records, without the mark of the file.
    body: Vec<u8>,
    /// Why the file ends before its time.
    cut: Option<String>,
}

impl fmt::Debug for Recording {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "Recording of {} bytes", self.body.len())
    }
}

/// Why a file is no recording.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// The system refused.
    #[error("{0}")]
    Io(#[from] io::Error),
    /// Another kind of file.
    #[error("this is no recording of zenkai: it does not begin with \"zenkairec\"")]
    Foreign,
    /// A later zenkai wrote it.
    #[error(
        "format {0} of recordings is unknown here; read it with the zenkai that wrote it, or a later one"
    )]
    Version(u16),
    /// Damaged from its first record on.
    #[error("the recording is damaged: {0}")]
    Damaged(String),
}

impl Recording {
    pub(super) fn of(body: Vec<u8>) -> Self {
        Self { body, cut: None }
    }

    /// From the first sample to the last, in seconds, without the time that the machine was suspended.
    pub fn duration_s(&self) -> f64 {
        seconds(self.look(&mut Nobody).at_ns)
    }

    /// The CPU time that the sampling thread itself used, in seconds.
    pub fn own_cpu_s(&self) -> f64 {
        seconds(self.look(&mut Nobody).own_cpu_ns)
    }

    /// When the first sample was taken, in nanoseconds since 1970.
    pub fn started_ns(&self) -> u64 {
        self.look(&mut Nobody).header.started_ns
    }

    /// How many samples were taken.
    pub fn samples(&self) -> usize {
        self.look(&mut Nobody).samples
    }

    /// Bytes that it takes in memory and in a file.
    pub fn size(&self) -> usize {
        self.body.len()
    }

    /// The mean of each channel over the whole recording, from the first and the last sample for counters.
    pub fn means(&self) -> BTreeMap<String, f64> {
        self.summaries().into_iter().map(|each| (each.channel.name, each.mean)).collect()
    }

    /// Each channel that has a value, in the order of the sources.
    pub fn summaries(&self) -> Vec<Summary> {
        let mut totals = Totals::default();
        self.look(&mut totals);
        totals.channels.iter().filter_map(Total::summary).collect()
    }

    /// What was measured.
    pub fn channels(&self) -> Vec<Channel> {
        self.summaries().into_iter().map(|each| each.channel).collect()
    }

    /// All channels over time, with at most 2 000 points each: of a longer recording, neighbouring intervals are
    /// put together.
    pub fn series(&self) -> Vec<Series> {
        self.series_of(2_000)
    }

    /// As [`Recording::series`], with about this many points at most.
    pub fn series_of(&self, points: usize) -> Vec<Series> {
        let whole = self.look(&mut Nobody);
        let count = u32::try_from(points.clamp(1, 1_000_000)).unwrap_or(1_000_000);
        let width_s = if whole.samples > points { seconds(whole.at_ns) / f64::from(count) } else { 0.0 };
        let mut curves = Curves { width_s, channels: Vec::new() };
        self.look(&mut curves);
        curves.channels.into_iter().filter_map(Curve::finish).collect()
    }

    /// What could not be measured, and why: a source or channel, and the reason.
    pub fn missing(&self) -> Vec<(String, String)> {
        let mut totals = Totals::default();
        let replay = self.look(&mut totals);
        let mut missing = replay.header.missing.clone();
        missing.extend(replay.failed.clone());
        for total in totals.channels.iter().filter(|total| total.intervals == 0 && !total.derived.quiet) {
            let why =
                if replay.samples < 2 { "there is one sample only" } else { total.derived.rule.why_none() };
            missing.push((total.derived.channel.name.clone(), why.to_owned()));
        }
        if replay.asleep_ns > 0 {
            let reason =
                format!("it was suspended for {:.1} s, which count nowhere", seconds(replay.asleep_ns));
            missing.push(("machine".to_owned(), reason));
        }
        let late_s = seconds(replay.longest_ns);
        if late_s > (replay.header.interval_s * 3.0).max(0.1) {
            missing.push(("samples".to_owned(), format!("for {late_s:.2} s none could be taken")));
        }
        if let Some(why) = self.ends_early(&replay) {
            missing.push(("the end".to_owned(), why));
        }
        missing
    }

    /// Why it ends before its time, if it does.
    fn ends_early(&self, replay: &Replay) -> Option<String> {
        let killed = replay.header.ends && !replay.ended;
        let why = || {
            format!("the recorder was killed; what it had written ends after {:.1} s", seconds(replay.at_ns))
        };
        self.cut.clone().or_else(|| killed.then(why))
    }

    /// The processes that used most CPU time meanwhile, the busiest first; those that began and ended between two
    /// looks are not among them.
    pub fn processes(&self) -> Vec<Process> {
        serde_json::from_slice(&self.look(&mut Nobody).processes).unwrap_or_default()
    }

    /// What a file begins with; the records follow.
    pub fn mark() -> Vec<u8> {
        [MARK, &VERSION.to_le_bytes()].concat()
    }

    /// The recording as the bytes of a file.
    pub fn to_bytes(&self) -> Vec<u8> {
        [Self::mark().as_slice(), &self.body].concat()
    }

    /// A recording from the bytes of a file; of one that was cut off or is damaged, what stands before that place.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, ReadError> {
        let rest = bytes.strip_prefix(MARK).ok_or(ReadError::Foreign)?;
        let (version, body) = rest.split_first_chunk().ok_or(ReadError::Foreign)?;
        let version = u16::from_le_bytes(*version);
        if version != VERSION {
            return Err(ReadError::Version(version));
        }
        let mut replay = Replay::default();
        let mut rest = body;
        let whole = replay.follow(&mut rest, &SOURCES, &mut Sound).is_some();
        if replay.samples == 0 {
            return Err(ReadError::Damaged("there is no whole sample in it".to_owned()));
        }
        let read = body.len() - rest.len();
        let cut = (!rest.is_empty() || !whole).then(|| {
            let lost = bytes.len() - rest.len();
            format!("the file is cut off or damaged after byte {lost}, {:.1} s in", seconds(replay.at_ns))
        });
        Ok(Self { body: body.get(..read).unwrap_or_default().to_vec(), cut })
    }

    /// Writes the recording to a file that must not exist yet.
    pub fn write(&self, path: &Path) -> io::Result<()> {
        let mut file = std::fs::OpenOptions::new().write(true).create_new(true).open(path)?;
        file.write_all(&self.to_bytes())?;
        file.sync_all()
    }

    /// Reads a recording; of a file that was cut off, what stands before the cut.
    pub fn read(path: &Path) -> Result<Self, ReadError> {
        Self::from_bytes(&read_plain_file(path, LARGEST)?)
    }

    fn look(&self, listener: &mut dyn Listener) -> Replay {
        let mut replay = Replay::default();
        // What is wrong inside was found when it was read from the file.
        let _ = replay.follow(&mut self.body.as_slice(), &SOURCES, listener);
        replay
    }
}

/// Wants the times only.
struct Nobody;

impl Listener for Nobody {
    fn channel(&mut self, _: &Derived) {}
    fn part(&mut self, _: usize, _: f64, _: Option<Part>) {}
    fn wants_rows(&self) -> bool {
        false
    }
}

/// Follows every row and keeps nothing: whether a file is sound.
struct Sound;

impl Listener for Sound {
    fn channel(&mut self, _: &Derived) {}
    fn part(&mut self, _: usize, _: f64, _: Option<Part>) {}
}

/// Sums over the whole recording.
#[derive(Default)]
struct Totals {
    channels: Vec<Total>,
}

struct Total {
    derived: Derived,
    sum: Part,
    min: f64,
    max: f64,
    intervals: usize,
}

impl Listener for Totals {
    fn channel(&mut self, derived: &Derived) {
        self.channels.push(Total {
            derived: derived.clone(),
            sum: Part::default(),
            min: f64::INFINITY,
            max: f64::NEG_INFINITY,
            intervals: 0,
        });
    }

    fn part(&mut self, channel: usize, _: f64, part: Option<Part>) {
        let Some(total) = self.channels.get_mut(channel) else { return };
        if let Some(part) = part
            && let Some(value) = part.value()
        {
            total.sum.add(part);
            total.min = total.min.min(value);
            total.max = total.max.max(value);
            total.intervals += 1;
        }
    }
}

impl Total {
    fn summary(&self) -> Option<Summary> {
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
}

/// Collects points.
struct Curves {
    /// Intervals are put together until they are this wide.
    width_s: f64,
    channels: Vec<Curve>,
}

struct Curve {
    derived: Derived,
    points: Vec<(f64, Option<f64>)>,
    open: Part,
    last_s: f64,
    begun_s: Option<f64>,
    any: bool,
}

impl Listener for Curves {
    fn channel(&mut self, derived: &Derived) {
        self.channels.push(Curve {
            derived: derived.clone(),
            points: Vec::new(),
            open: Part::default(),
            last_s: 0.0,
            begun_s: None,
            any: false,
        });
    }

    fn part(&mut self, channel: usize, at_s: f64, part: Option<Part>) {
        let width_s = self.width_s;
        let Some(curve) = self.channels.get_mut(channel) else { return };
        if let Some(part) = part {
            curve.open.add(part);
        }
        curve.any |= part.is_some_and(|part| part.numerator != 0.0);
        curve.last_s = at_s;
        let begun_s = *curve.begun_s.get_or_insert(at_s);
        if at_s - begun_s >= width_s {
            curve.close();
        }
    }
}

impl Curve {
    fn close(&mut self) {
        self.points.push((self.last_s, self.open.value()));
        self.open = Part::default();
        // The next point begins where this one ends.
        self.begun_s = Some(self.last_s);
    }

    fn finish(mut self) -> Option<Series> {
        if self.points.last().is_none_or(|(at_s, _)| *at_s < self.last_s) {
            self.close();
        }
        let nothing = self.points.iter().all(|(_, value)| value.is_none()) || self.derived.quiet && !self.any;
        (!nothing).then_some(Series { channel: self.derived.channel, points: self.points })
    }
}
