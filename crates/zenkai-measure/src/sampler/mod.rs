//! What the machine does while something runs, read again and again at little cost.
//!
//! A [`Sampler`] has a thread of its own. It keeps the kernel's files open, reads them at a steady rhythm and keeps
//! what changed since the sample before, a few hundred bytes a time. Nothing is computed until the [`Recording`] is
//! asked. What cannot be measured here is listed with its reason and never shown as zero.
//!
//! From the machine to a value: [`sources`] say what is read, [`taker`] reads it, [`template`] takes the text apart,
//! [`codec`] writes the differences down, [`replay`] follows them, [`channel`] computes.

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
    io,
    sync::{Arc, Condvar, Mutex, PoisonError, mpsc},
    thread::JoinHandle,
    time::{Duration, Instant},
};

use zenkai_host::gauges::{pin_this_thread, real_time_ns};

pub use channel::{Channel, Summary};
pub use digest::{Bin, Curve, Digest};
pub use energy::Energy;
pub use live::Live;
pub use processes::Process;
pub use recording::{ReadError, Recording};

/// How to sample. Both arms of an experiment must be sampled in the same way.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Options {
    /// From one sample to the next: 10 ms to 1 s. Files that cost much are read every 5 s only, and at both ends.
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

/// A running sampler. Dropping it ends its thread and forgets what it kept.
#[derive(Debug)]
pub struct Sampler {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

/// What the thread and its owner both hold.
#[derive(Debug, Default)]
struct Shared {
    state: Mutex<State>,
    stop: Condvar,
}

#[derive(Debug, Default)]
struct State {
    /// Records that nobody took away yet.
    body: Vec<u8>,
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
        if !Options::INTERVALS.contains(&options.interval) {
            let problem = format!("an interval of {:?}; it must be 10 ms to 1 s", options.interval);
            return Err(io::Error::new(io::ErrorKind::InvalidInput, problem));
        }
        let shared = Arc::new(Shared::default());
        let (ready, begun) = mpsc::channel();
        let (options, theirs) = (options.clone(), Arc::clone(&shared));
        let thread = std::thread::Builder::new()
            .name("zenkai-sampler".to_owned())
            .spawn(move || run(&options, &theirs, &ready))?;
        let sampler = Self { shared, thread: Some(thread) };
        match begun.recv() {
            Ok(Ok(())) => Ok(sampler),
            Ok(Err(error)) => Err(error),
            Err(_) => Err(io::Error::other("the sampling thread ended before its first sample")),
        }
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

    fn end(&mut self) {
        self.shared.lock().stopped = true;
        self.shared.stop.notify_all();
        if let Some(thread) = self.thread.take() {
            // A panic there has been told on the error output; what was recorded before stays.
            let _ = thread.join();
        }
    }
}

impl Drop for Sampler {
    fn drop(&mut self) {
        self.end();
    }
}

/// The sampling thread.
fn run(options: &Options, shared: &Shared, ready: &mpsc::Sender<io::Result<()>>) {
    if let Some(cpu) = options.cpu
        && let Err(error) = pin_this_thread(cpu)
    {
        let error = io::Error::new(error.kind(), format!("cannot stay on CPU {cpu}: {error}"));
        // Whoever started us waits for this.
        let _ = ready.send(Err(error));
        return;
    }
    let (mut taker, mut header) = taker::Taker::open(&sources::SOURCES, options);
    header.started_ns = real_time_ns();
    let mut record = Vec::new();
    match serde_json::to_vec(&header) {
        Ok(json) => codec::put_record(taker::HEADER, &json, &mut record),
        Err(error) => {
            let _ = ready.send(Err(error.into()));
            return;
        }
    }
    taker.begin();
    let start = Instant::now();
    taker.sample(true, &mut record);
    shared.lock().body.append(&mut record);
    let _ = ready.send(Ok(()));
    let mut ticks = 0_u32;
    loop {
        // Counted from the start, so that lateness does not add up; what was missed is left out.
        let passed = start.elapsed().as_nanos() / options.interval.as_nanos().max(1);
        ticks = u32::try_from(passed).unwrap_or(u32::MAX).max(ticks).saturating_add(1);
        let stopped = wait(shared, start + options.interval.saturating_mul(ticks));
        record.clear();
        taker.sample(stopped, &mut record);
        if stopped {
            codec::put_record(taker::END, &[], &mut record);
        }
        shared.lock().body.append(&mut record);
        if stopped {
            return;
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
        state = shared.stop.wait_timeout(state, left).unwrap_or_else(PoisonError::into_inner).0;
    }
}
