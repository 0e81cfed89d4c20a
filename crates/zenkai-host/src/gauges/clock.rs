//! Clocks of the machine and of our own thread.

use std::io;

use rustix::{
    thread::CpuSet,
    time::{ClockId, Timespec, clock_gettime},
};

/// A moment on the two clocks that never go back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Moment {
    /// CLOCK_MONOTONIC, nanoseconds since boot without the time asleep.
    pub monotonic_ns: u64,
    /// CLOCK_BOOTTIME, nanoseconds since boot. It runs ahead of the other while the machine is suspended.
    pub boot_ns: u64,
}

impl Moment {
    /// Now.
    pub fn now() -> Self {
        Self {
            monotonic_ns: nanoseconds(clock_gettime(ClockId::Monotonic)),
            boot_ns: nanoseconds(clock_gettime(ClockId::Boottime)),
        }
    }
}

/// CPU time that the calling thread has used, in nanoseconds.
pub fn thread_cpu_ns() -> u64 {
    nanoseconds(clock_gettime(ClockId::ThreadCPUTime))
}

/// Nanoseconds since 1970. It may be set by somebody at any time: good for telling when, not how long.
pub fn real_time_ns() -> u64 {
    nanoseconds(clock_gettime(ClockId::Realtime))
}

fn nanoseconds(time: Timespec) -> u64 {
    let seconds = u64::try_from(time.tv_sec).unwrap_or(0);
    seconds.saturating_mul(1_000_000_000).saturating_add(u64::try_from(time.tv_nsec).unwrap_or(0))
}

/// Keeps the calling thread on one CPU.
pub fn pin_this_thread(cpu: usize) -> io::Result<()> {
    if cpu >= CpuSet::MAX_CPU {
        return Err(rustix::io::Errno::INVAL.into());
    }
    let mut only = CpuSet::new();
    only.set(cpu);
    Ok(rustix::thread::sched_setaffinity(None, &only)?)
}
