//! What the machine does while something runs, read again and again at little cost.
//!
//! A [`Sampler`] has a thread of its own. It keeps the kernel's files open, reads them at a steady rhythm and keeps
//! what changed since the sample before, a few hundred bytes a time. Nothing is computed until the [`Recording`] is
//! asked. What cannot be measured here is listed with its reason and never shown as zero.
//!
//! From the machine to a value: [`sources`] say what is read, [`taker`] reads it, [`template`] takes the text apart,
//! [`codec`] writes the differences down, [`replay`] follows them, [`channel`] computes, [`digest`] sums up.

mod channel;
mod codec;
mod digest;
mod energy;
mod live;
mod processes;
mod recording;
mod replay;
mod source;
mod sources;
mod taker;
mod template;
#[cfg(test)]
mod tests;

use std::{
    fmt, io,
    sync::{Arc, Condvar, Mutex, PoisonError},
    thread::JoinHandle,
    time::{Duration, Instant},
};

use zenkai_host::gauges::pin_this_thread;

pub use channel::{Channel, Summary};
pub use digest::{Bin, Curve, Digest};
pub use energy::Energy;
pub use live::Live;
pub use processes::Process;
pub use recording::{ReadError, Recording};

/// How to sample. Both arms of an experiment must be sampled in the same way.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Options {
    /// From one sample to the next: 10 ms to 1 s. Files that cost much are read every 10 s only, memory and pressure in
    /// every other sample, and all of them at both ends.
    pub interval: Duration,
    /// The directory of the workload's cgroup (`/sys/fs/cgroup/…`). It must be there for as long as the sampler
    /// runs: a group that was removed has no last values.
    pub cgroup: Option<String>,
    /// Why the workload has no cgroup, where it should have one: told as the reason why it is not measured.
    pub no_cgroup: Option<String>,
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
        Self { interval: Duration::from_secs(1), cgroup: None, no_cgroup: None, pid: None, cpu: None }
    }
}

/// What the machine has to read, opened once for one recording after another: to open all of it takes longer than many
/// commands run.
pub struct Instruments(taker::Taker);

impl fmt::Debug for Instruments {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Instruments")
    }
}

impl Instruments {
    /// Opens all that there is.
    pub fn open() -> Self {
        Self(taker::Taker::open())
    }
}

/// A running sampler. Dropping it ends its thread and forgets what it kept.
#[derive(Debug)]
pub struct Sampler {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<Instruments>>,
}

/// What the thread and its owner both hold.
#[derive(Debug, Default)]
struct Shared {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct State {
    /// Records that nobody took away yet.
    body: Vec<u8>,
    /// The first sample was taken.
    begun: bool,
    /// It is not to be taken: the thread could not be set up.
    failed: Option<io::Error>,
    stopped: bool,
}

impl Shared {
    fn lock(&self) -> std::sync::MutexGuard<'_, State> {
        // Nothing that holds the lock leaves it half done.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Sampler {
    /// Opens what there is to read, takes the first sample and goes on in a thread of its own. When this returns, the
    /// first sample has been taken: what starts now is wholly inside the recording.
    pub fn start(options: &Options) -> io::Result<Self> {
        let sampler = Self::begin(Instruments::open(), options)?;
        let mut state = sampler.shared.lock();
        while !state.begun && state.failed.is_none() {
            state = sampler.shared.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        let failed = state.failed.take();
        drop(state);
        failed.map_or(Ok(sampler), Err)
    }

    /// As [`Sampler::start`], but it waits for nothing: what starts now may be under way when the first sample is taken,
    /// some tenths of a millisecond from now. [`Sampler::finish`] gives the instruments back.
    pub fn begin(instruments: Instruments, options: &Options) -> io::Result<Self> {
        if !Options::INTERVALS.contains(&options.interval) {
            let problem = format!("an interval of {:?}; it must be 10 ms to 1 s", options.interval);
            return Err(io::Error::new(io::ErrorKind::InvalidInput, problem));
        }
        let shared = Arc::new(Shared::default());
        let (options, theirs) = (options.clone(), Arc::clone(&shared));
        let thread = std::thread::Builder::new().name("zenkai-sampler".to_owned()).spawn(move || {
            let Instruments(mut taker) = instruments;
            if let Err(error) = run(&mut taker, &options, &theirs) {
                theirs.lock().failed = Some(error);
                theirs.changed.notify_all();
            }
            Instruments(taker)
        })?;
        Ok(Self { shared, thread: Some(thread) })
    }

    /// Takes what was recorded since the last call away, to write it to a file or to feed [`Live`]: after
    /// [`Recording::mark`], all of it one after the other is a recording's file. [`Sampler::stop`] gives the rest.
    pub fn take(&self) -> Vec<u8> {
        std::mem::take(&mut self.shared.lock().body)
    }

    /// Takes the last sample and ends the thread.
    pub fn stop(mut self) -> Recording {
        self.end();
        Recording::of(self.take())
    }

    /// As [`Sampler::stop`], and gives the instruments back. There is no recording if the first sample was not taken
    /// before this call.
    pub fn finish(mut self) -> (Option<Recording>, Option<Instruments>) {
        let begun = self.shared.lock().begun;
        let instruments = self.end();
        (begun.then(|| Recording::of(self.take())), instruments)
    }

    fn end(&mut self) -> Option<Instruments> {
        self.shared.lock().stopped = true;
        self.shared.changed.notify_all();
        // A panic there has been told on the error output; what was recorded before stays.
        self.thread.take()?.join().ok()
    }
}

impl Drop for Sampler {
    fn drop(&mut self) {
        self.end();
    }
}

/// The sampling thread.
fn run(taker: &mut taker::Taker, options: &Options, shared: &Shared) -> io::Result<()> {
    if let Some(cpu) = options.cpu {
        pin_this_thread(cpu)
            .map_err(|error| io::Error::new(error.kind(), format!("cannot stay on CPU {cpu}: {error}")))?;
    }
    let mut record = Vec::new();
    let header = taker.begin(options);
    codec::put_record(taker::HEADER, &serde_json::to_vec(&header)?, &mut record);
    let start = Instant::now();
    taker.sample(true, &mut record);
    {
        let mut state = shared.lock();
        state.body.append(&mut record);
        state.begun = true;
        shared.changed.notify_all();
    }
    let mut ticks = 0_u32;
    loop {
        // Counted from the start, so that lateness does not add up; what was missed is left out.
        let passed = start.elapsed().as_nanos() / options.interval.as_nanos().max(1);
        ticks = u32::try_from(passed).unwrap_or(u32::MAX).max(ticks).saturating_add(1);
        let next = start + options.interval.saturating_mul(ticks);
        let look = taker.first_look().map(|after| start + after).filter(|look| *look < next);
        let mut stopped = look.is_some_and(|look| wait(shared, look));
        if look.is_some() && !stopped {
            taker.look();
        }
        stopped = stopped || wait(shared, next);
        record.clear();
        taker.sample(stopped, &mut record);
        if stopped {
            codec::put_record(taker::END, &[], &mut record);
        }
        shared.lock().body.append(&mut record);
        if stopped {
            return Ok(());
        }
    }
}

/// Waits until then, or until the sampler is stopped; says whether it is.
fn wait(shared: &Shared, until: Instant) -> bool {
    let mut state = shared.lock();
    loop {
        let left = until.saturating_duration_since(Instant::now());
        if state.stopped || left.is_zero() {
            return state.stopped;
        }
        state = shared.changed.wait_timeout(state, left).unwrap_or_else(PoisonError::into_inner).0;
    }
}
