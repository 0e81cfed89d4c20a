//! The clocks that measurements are taken with.

use rustix::time::{ClockId, clock_gettime};

/// CLOCK_MONOTONIC_RAW in ns: not slewed by NTP, so a frequency taken from it is the oscillator's. In the vDSO
/// from Linux 5.3 on; before that each read is a system call, which the length of a slice makes negligible.
pub(super) fn raw_ns() -> u64 {
    read_ns(ClockId::MonotonicRaw)
}

/// CPU time of the calling thread, ns.
pub(super) fn thread_cpu_ns() -> u64 {
    read_ns(ClockId::ThreadCPUTime)
}

pub(super) fn read_ns(clock: ClockId) -> u64 {
    let time = clock_gettime(clock);
    let seconds = u64::try_from(time.tv_sec).unwrap_or(0);
    let nanoseconds = u64::try_from(time.tv_nsec).unwrap_or(0);
    seconds * 1_000_000_000 + nanoseconds
}

/// The time-stamp counter. `None` where the architecture has none.
#[cfg(target_arch = "x86_64")]
#[expect(unsafe_code, reason = "rdtsc has no safe wrapper in std")]
#[expect(clippy::unnecessary_wraps, reason = "other architectures have none")]
pub(super) fn tsc() -> Option<u64> {
    // SAFETY: RDTSC exists on every x86-64 CPU and only writes registers. It faults where a process forbade
    // it to itself with prctl(PR_SET_TSC), which nothing in this program does.
    Some(unsafe { core::arch::x86_64::_rdtsc() })
}

/// The time-stamp counter. `None` where the architecture has none.
#[cfg(not(target_arch = "x86_64"))]
pub(super) fn tsc() -> Option<u64> {
    None
}

/// The time-stamp counter and CLOCK_MONOTONIC_RAW at the same moment, as well as that can be told: of a few
/// attempts, the one where the two clock reads around the counter lie closest together, since an interrupt or
/// a steal between them would misplace it.
pub(super) fn tsc_at() -> Option<(u64, u64)> {
    let mut best: Option<(u64, u64, u64)> = None;
    for _ in 0..8 {
        let before = raw_ns();
        let ticks = tsc()?;
        let after = raw_ns();
        let gap = after.saturating_sub(before);
        if best.is_none_or(|(least, ..)| gap < least) {
            best = Some((gap, ticks, before + gap / 2));
        }
    }
    best.map(|(_, ticks, at_ns)| (ticks, at_ns))
}
