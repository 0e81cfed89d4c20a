//! The active probe: what the machine really does under load, because settings lie.
//!
//! Three or so seconds of work, on the CPUs this process may run on and no others:
//!
//! 1. every allowed CPU is kept busy at once, and its real clock is measured ([`CpuClock::all_busy`]);
//! 2. single CPUs are kept busy one after the other ([`CpuClock::one_busy`]);
//! 3. one CPU sleeps and is woken by timers while the others idle ([`WakeLatency`]);
//! 4. system calls and clock reads are timed ([`Probe::syscall_ns`], [`Probe::clock_gettime_ns`]);
//! 5. memory is streamed by one core, then by all ([`MemoryBandwidth`]).
//!
//! It needs no privileges. Everything that changes a thread's state (affinity, timer slack) is done in threads
//! of its own that end with the measurement, so the caller's thread is never touched and there is nothing that
//! an error could leave behind.

use std::io;
use std::time::Duration;

mod aperf;
mod busy;
mod chain;
mod cost;
mod crew;
mod limits;
mod memory;
mod report;
mod slices;
mod stats;
#[cfg(test)]
mod tests;
mod time;
mod wake;

pub use report::{BusyClock, CpuClock, MemoryBandwidth, Probe, Reading, WakeLatency};

/// How long each part of the probe may take. The defaults add up to 2 to 4 seconds on any number of CPUs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProbeOptions {
    /// Time all CPUs are kept busy together. The first quarter is the ramp and is not measured: the slowest
    /// common governor, ondemand, re-evaluates every 10 ms or more, hardware-managed clocks within a few ms.
    /// Too short to see long-term power limits, whose averaging window is tens of seconds.
    pub all_busy: Duration,
    /// Time shared by the CPUs that are kept busy one at a time.
    pub one_busy: Duration,
    /// At most this many CPUs are kept busy one at a time, spread evenly over the allowed ones; the others say
    /// "not sampled".
    pub one_busy_cpus: usize,
    /// Time for each of the two timer periods.
    pub wake: Duration,
    /// Time for each of the two memory runs: at most half of it for touching the buffers, which the kernel has to
    /// clear and a hypervisor may have to find first, then a quarter each for reading and adding.
    pub memory: Duration,
}

impl Default for ProbeOptions {
    fn default() -> Self {
        Self {
            all_busy: Duration::from_millis(400),
            one_busy: Duration::from_millis(800),
            one_busy_cpus: 16,
            wake: Duration::from_millis(350),
            memory: Duration::from_millis(600),
        }
    }
}

/// The timer periods whose wake-ups are measured, µs: one too short for deep idle states to pay off, one that
/// lets the idle governor choose them.
const WAKE_PERIODS_US: [u32; 2] = [50, 1000];

/// Measure. `progress` gets one line before each part. Fails only where nothing at all can be measured: when
/// our own affinity cannot be read or threads cannot be started; what a single part cannot tell is absent with
/// a reason.
pub fn run(options: &ProbeOptions, progress: &mut dyn FnMut(&str)) -> io::Result<Probe> {
    let started_ns = time::raw_ns();
    let allowed = crew::allowed_cpus()?;
    let Some(&first) = allowed.first() else {
        return Err(io::Error::other("the affinity mask of this process is empty"));
    };
    // CPU 0 serves most interrupts by default, so where there is a choice the single-CPU parts avoid it.
    let quiet = allowed.get(1).copied().unwrap_or(first);

    progress(&format!("clock: all {} CPUs busy", allowed.len()));
    let all = busy::all_busy(&allowed, options.all_busy)?;
    progress("clock: one CPU busy at a time");
    let one = busy::one_busy(&allowed, options.one_busy, options.one_busy_cpus)?;
    progress("wake-up latency of timers");
    let wake = wake::measure(quiet, &WAKE_PERIODS_US, options.wake)?;
    progress("cost of system calls and clock reads");
    let cost = cost::measure(quiet)?;
    progress("memory bandwidth: one core");
    let one_core = memory::measure(&[quiet], options.memory)?;
    progress(&format!("memory bandwidth: all {} CPUs", allowed.len()));
    let all_cores = memory::measure(&allowed, options.memory)?;

    Ok(Probe {
        tsc_khz: all.tsc_khz,
        cpus: all
            .clocks
            .into_iter()
            .zip(one)
            .map(|((cpu, all_busy), one_busy)| CpuClock { cpu, all_busy, one_busy })
            .collect(),
        syscall_ns: cost.syscall_ns,
        clock_gettime_ns: cost.clock_gettime_ns,
        wake,
        memory: vec![one_core, all_cores],
        elapsed_ms: stats::to_u32(time::raw_ns().saturating_sub(started_ns) / 1_000_000),
    })
}
