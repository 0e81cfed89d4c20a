//! What a sampler kept.

use std::{collections::BTreeMap, io, path::Path};

use super::{Channel, Series, Summary};

/// What a sampler kept, still as it was read.
#[derive(Debug, Clone, Default)]
pub struct Recording {}

/// Why a file is no recording.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// The system refused.
    #[error("{0}")]
    Io(#[from] io::Error),
    /// Another kind of file.
    #[error("this is no recording of zenkai: it does not begin with its mark")]
    Foreign,
    /// A later zenkai wrote it.
    #[error("format {0} of recordings is unknown here; use the zenkai that wrote it, or a later one")]
    Version(u16),
    /// Damaged from its first record on.
    #[error("the recording is damaged: {0}")]
    Damaged(String),
}

impl Recording {
    /// From the first sample to the last, in seconds.
    pub fn duration_s(&self) -> f64 {
        0.0
    }

    /// The CPU time that the sampler itself used, in seconds.
    pub fn own_cpu_s(&self) -> f64 {
        0.0
    }

    /// The mean of each channel over the whole recording, from the first and the last sample for counters.
    pub fn means(&self) -> BTreeMap<String, f64> {
        self.summaries().into_iter().map(|each| (each.channel.name, each.mean)).collect()
    }

    /// Each channel that has a value, in the order of their groups.
    pub fn summaries(&self) -> Vec<Summary> {
        Vec::new()
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

    /// As [`Recording::series`], with at most this many points.
    pub fn series_of(&self, _points: usize) -> Vec<Series> {
        Vec::new()
    }

    /// What could not be measured, and why: a source or channel, and the reason.
    pub fn missing(&self) -> Vec<(String, String)> {
        Vec::new()
    }

    /// Writes the recording to a file that must not exist yet.
    pub fn write(&self, _path: &Path) -> io::Result<()> {
        Ok(())
    }

    /// Reads a recording; of a file that was cut off, what stands before the cut.
    pub fn read(_path: &Path) -> Result<Self, ReadError> {
        Err(ReadError::Foreign)
    }
}
