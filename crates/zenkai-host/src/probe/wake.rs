//! How late a sleeping thread wakes.

use std::io;
use std::num::NonZeroU64;
use std::time::Duration;

use rustix::thread::{ClockId, clock_nanosleep_absolute, set_current_timer_slack};
use rustix::time::Timespec;

use super::crew;
use super::report::{Reading, WakeLatency};
use super::stats::{percentile, round, to_f64, to_u32};
use super::time::read_ns;

/// Sleep on `cpu` with timers of each period for `time`, one period after the other.
pub(super) fn measure(cpu: u32, periods_us: &[u32], time: Duration) -> io::Result<Vec<Reading<WakeLatency>>> {
    let measured = crew::on_one(cpu, &|_| {
        // The default slack of 50 µs lets the kernel delay a timer to merge it with others, which would be
        // measured as latency. The slack is the thread's own and ends with it. prctl(2), PR_SET_TIMERSLACK.
        set_current_timer_slack(NonZeroU64::new(1))?;
        Ok::<_, io::Error>(
            periods_us
                .iter()
                .map(|&period_us| {
                    wakes(period_us, time)
                        .and_then(|late_ns| {
                            summarise(cpu, period_us, late_ns).ok_or_else(|| io::Error::other("no wake-up"))
                        })
                        .map_or_else(|error| Reading::absent(error.to_string()), Reading::Value)
                })
                .collect(),
        )
    })?;
    Ok(measured.flatten().unwrap_or_else(|error| {
        let reason = format!("CPU {cpu}: {error}");
        vec![Reading::Absent(reason); periods_us.len()]
    }))
}

/// Latency of every wake-up, ns, for at least one and otherwise for `time`.
fn wakes(period_us: u32, time: Duration) -> io::Result<Vec<u64>> {
    let sleep_ns = u64::from(period_us) * 1000;
    // clock_nanosleep(2) knows no CLOCK_MONOTONIC_RAW; over one sleep the two clocks differ by nothing.
    let mut now_ns = read_ns(ClockId::Monotonic);
    let end_ns = now_ns.saturating_add(u64::try_from(time.as_nanos()).unwrap_or(u64::MAX));
    let mut late_ns = Vec::new();
    loop {
        // Always a full period from now, so that a late wake-up does not turn the next sleep into none.
        let due_ns = now_ns + sleep_ns;
        let due = Timespec {
            tv_sec: i64::try_from(due_ns / 1_000_000_000).unwrap_or(i64::MAX),
            tv_nsec: i64::try_from(due_ns % 1_000_000_000).unwrap_or(0),
        };
        match clock_nanosleep_absolute(ClockId::Monotonic, &due) {
            Ok(()) => {}
            Err(rustix::io::Errno::INTR) => continue,
            Err(error) => return Err(error.into()),
        }
        now_ns = read_ns(ClockId::Monotonic);
        late_ns.push(now_ns.saturating_sub(due_ns));
        if now_ns >= end_ns {
            return Ok(late_ns);
        }
    }
}

/// The distribution of the latencies. `None` without any.
pub(super) fn summarise(cpu: u32, period_us: u32, mut late_ns: Vec<u64>) -> Option<WakeLatency> {
    late_ns.sort_unstable();
    let at_us = |share: f64| Some(round(to_f64(percentile(&late_ns, share)?) / 1000.0, 1));
    Some(WakeLatency {
        cpu,
        period_us,
        samples: to_u32(late_ns.len() as u64),
        wake_min_us: at_us(0.0)?,
        wake_p50_us: at_us(0.5)?,
        wake_p95_us: at_us(0.95)?,
        wake_p99_us: at_us(0.99)?,
        wake_max_us: at_us(1.0)?,
    })
}
