//! The cost of entering the kernel, and of reading a clock.

use std::hint::black_box;
use std::io;

use rustix::process::getppid;
use rustix::time::{ClockId, clock_gettime};

use super::crew;
use super::report::Reading;
use super::stats::{median, round, to_f64};
use super::time::raw_ns;

/// Calls per batch: enough that the two clock reads around it do not count (0.1 ms at 100 ns a call).
const CALLS: u32 = 1000;
/// Batches: their median ignores the ones an interrupt fell into.
const BATCHES: usize = 101;
/// Under a tracer or an emulator a call may take 10 µs and more: stop then, with the batches there are.
const MOST_NS: u64 = 150_000_000;

/// What calls cost, ns.
pub(super) struct Cost {
    pub(super) syscall_ns: Reading<f64>,
    pub(super) clock_gettime_ns: Reading<f64>,
}

/// Measure on `cpu`.
pub(super) fn measure(cpu: u32) -> io::Result<Cost> {
    let measured = crew::on_one(cpu, &|_| Cost {
        // Not cached by anyone: rustix calls the kernel directly, and glibc has no cache for it either.
        syscall_ns: per_call(|| {
            black_box(getppid());
        }),
        clock_gettime_ns: per_call(|| {
            black_box(clock_gettime(ClockId::Monotonic));
        }),
    })?;
    Ok(measured.unwrap_or_else(|error| {
        let reason = format!("CPU {cpu}: {error}");
        Cost { syscall_ns: Reading::absent(reason.clone()), clock_gettime_ns: Reading::Absent(reason) }
    }))
}

/// Median over batches of the time of one call.
fn per_call(call: impl Fn()) -> Reading<f64> {
    let started_ns = raw_ns();
    let mut batches_ns = Vec::with_capacity(BATCHES);
    while batches_ns.len() < BATCHES {
        let before_ns = raw_ns();
        for _ in 0..CALLS {
            call();
        }
        let after_ns = raw_ns();
        batches_ns.push(after_ns.saturating_sub(before_ns));
        if after_ns.saturating_sub(started_ns) > MOST_NS {
            break;
        }
    }
    match median(&batches_ns) {
        Some(batch_ns) if batch_ns > 0 => Reading::Value(round(to_f64(batch_ns) / f64::from(CALLS), 1)),
        _ => Reading::absent("the clock stands still"),
    }
}
