//! What a sampler kept.

use std::{
    collections::BTreeMap,
    fmt,
    io::{self, Write as _},
    path::Path,
    sync::OnceLock,
};

use zenkai_host::read_plain_file;

use super::{
    Channel, Process, Summary,
    channel::{Derived, Part},
    codec::put_record,
    digest::{Total, Totals},
    replay::{Listener, Replay, Span, Wanted, seconds},
    sources::SOURCES,
    taker::ABOUT,
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
    /// What all of it comes to, once that was asked for: an experiment asks for energy and for means.
    summed: OnceLock<Vec<Summary>>,
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
        Self { body, cut: None, summed: OnceLock::new() }
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
        let sum = || {
            let mut totals = Totals::default();
            self.look(&mut totals);
            totals.channels.iter().filter_map(Total::summary).collect()
        };
        self.summed.get_or_init(sum).clone()
    }

    /// What was measured.
    pub fn channels(&self) -> Vec<Channel> {
        self.summaries().into_iter().map(|each| each.channel).collect()
    }

    /// What could not be measured, and why: a source or channel, and the reason.
    pub fn missing(&self) -> Vec<(String, String)> {
        let mut totals = Totals::default();
        let replay = self.look(&mut totals);
        totals.missing(&replay, self.ends_early(&replay))
    }

    /// Why it ends before its time, if it does.
    pub(super) fn ends_early(&self, replay: &Replay) -> Option<String> {
        let killed = replay.header.ends && !replay.ended;
        let end = || {
            let end_s = seconds(replay.at_ns);
            format!("the recorder was killed; what it had written ends after {end_s:.1} s")
        };
        self.cut.clone().or_else(|| killed.then(end))
    }

    /// The processes that used most CPU time meanwhile, the busiest first; those that began and ended between two
    /// looks are not among them.
    pub fn processes(&self) -> Vec<Process> {
        self.look(&mut Nobody).processes()
    }

    /// What a file begins with; the records follow.
    pub fn mark() -> Vec<u8> {
        [MARK, &VERSION.to_le_bytes()].concat()
    }

    /// A record that says what a recording is about, as names and values: the command, the machine. It may stand
    /// anywhere behind the mark.
    pub fn about_record(about: &[(String, String)]) -> Vec<u8> {
        let mut record = Vec::new();
        put_record(ABOUT, &serde_json::to_vec(about).unwrap_or_default(), &mut record);
        record
    }

    /// The recording as the bytes of a file.
    pub fn to_bytes(&self) -> Vec<u8> {
        [Self::mark().as_slice(), &self.body].concat()
    }

    /// A recording from the bytes of a file; of one that was cut off or is damaged, what stands before that place.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, ReadError> {
        Self::from_vec(bytes.to_vec())
    }

    /// As [`Recording::from_bytes`], without a copy.
    pub fn from_vec(mut bytes: Vec<u8>) -> Result<Self, ReadError> {
        let rest = bytes.strip_prefix(MARK).ok_or(ReadError::Foreign)?;
        let (version, mut rest) = rest.split_first_chunk().ok_or(ReadError::Foreign)?;
        let version = u16::from_le_bytes(*version);
        if version != VERSION {
            return Err(ReadError::Version(version));
        }
        let mut replay = Replay::default();
        let whole = replay.follow(&mut rest, &SOURCES, &mut Sound).is_some();
        if replay.samples == 0 {
            return Err(ReadError::Damaged("there is no whole sample in it".to_owned()));
        }
        let read = bytes.len() - rest.len();
        let cut = (!rest.is_empty() || !whole).then(|| {
            format!("the file is cut off or damaged after byte {read}, {:.1} s in", seconds(replay.at_ns))
        });
        bytes.truncate(read);
        bytes.drain(..Self::mark().len());
        Ok(Self { body: bytes, cut, summed: OnceLock::new() })
    }

    /// Writes the recording to a file that must not exist yet.
    pub fn write(&self, path: &Path) -> io::Result<()> {
        let mut file = std::fs::OpenOptions::new().write(true).create_new(true).open(path)?;
        file.write_all(&self.to_bytes())?;
        file.sync_all()
    }

    /// Reads a recording; of a file that was cut off, what stands before the cut.
    pub fn read(path: &Path) -> Result<Self, ReadError> {
        Self::from_vec(read_plain_file(path, LARGEST)?)
    }

    pub(super) fn look(&self, listener: &mut dyn Listener) -> Replay {
        let mut replay = Replay::default();
        // What is wrong inside was found when it was read from the file.
        let _ = replay.follow(&mut self.body.as_slice(), &SOURCES, listener);
        replay
    }
}

/// Wants the times only.
pub(super) struct Nobody;

impl Listener for Nobody {
    fn channel(&mut self, _: &Derived) {}
    fn part(&mut self, _: usize, _: Span, _: Option<Part>) {}
    fn wants(&self) -> Wanted {
        Wanted::Times
    }
}

/// Follows every row and keeps nothing: whether a file is sound.
struct Sound;

impl Listener for Sound {
    fn channel(&mut self, _: &Derived) {}
    fn part(&mut self, _: usize, _: Span, _: Option<Part>) {}
    fn wants(&self) -> Wanted {
        Wanted::Rows
    }
}
