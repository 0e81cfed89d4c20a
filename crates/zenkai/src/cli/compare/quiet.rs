//! Waiting until the machine is quiet after a switch: the same rule for every arm.

use std::time::{Duration, Instant};

use zenkai_host::{
    Host, LiveHost,
    gauges::{self, Happened, Interrupt},
};
use zenkai_measure::experiment::{Settle, StageError};

/// One look at the machine lasts so long.
const WINDOW: Duration = Duration::from_millis(500);
/// Shares of the window in which some task waited, and memory waiting to be written: below all of these the machine is
/// quiet. Rules of thumb, tight enough to see the tail of a write-back and loose enough for a busy neighbour.
const IO_WAITING: f64 = 0.10;
const CPU_WAITING: f64 = 0.25;
const UNWRITTEN_BYTES: u64 = 64 << 20;

/// Waits as `settle` says; gives the seconds that took.
pub(super) fn wait(settle: &Settle, interrupt: &Interrupt) -> Result<f64, StageError> {
    let start = Instant::now();
    let at_least = seconds(settle.at_least_s);
    let at_most = seconds(settle.at_most_s).max(at_least);
    let mut before = Look::now();
    loop {
        let left = at_most.saturating_sub(start.elapsed());
        if left.is_zero() {
            break;
        }
        let happened = gauges::wait(interrupt, None, WINDOW.min(left));
        if happened.map_err(|error| StageError::Failed(error.to_string()))? == Happened::Signal {
            return Err(StageError::Interrupted);
        }
        let now = Look::now();
        if start.elapsed() >= at_least && now.is_quiet_since(&before) {
            break;
        }
        before = now;
    }
    Ok(start.elapsed().as_secs_f64())
}

fn seconds(seconds: f64) -> Duration {
    Duration::try_from_secs_f64(seconds).unwrap_or_default()
}

/// What is waiting at one moment; `None` where the kernel does not tell (no PSI): then it does not hold us up.
struct Look {
    at: Instant,
    io_us: Option<u64>,
    cpu_us: Option<u64>,
    unwritten_bytes: Option<u64>,
}

impl Look {
    fn now() -> Self {
        let text = |path: &str| String::from_utf8(LiveHost.read(path).ok()?).ok();
        // Documentation/accounting/psi.rst: `some avg10=0.00 avg60=0.00 avg300=0.00 total=0`.
        let total = |path: &str| {
            let text = text(path)?;
            let some = text.lines().find(|line| line.starts_with("some"))?;
            some.rsplit_once("total=")?.1.trim().parse().ok()
        };
        let unwritten = || {
            let text = text("/proc/meminfo")?;
            let kib = |name: &str| -> Option<u64> {
                let line = text.lines().find_map(|line| line.strip_prefix(name))?;
                line.trim_start_matches(':').trim().strip_suffix(" kB")?.parse().ok()
            };
            Some((kib("Dirty")? + kib("Writeback")?) * 1024)
        };
        Self {
            at: Instant::now(),
            io_us: total("/proc/pressure/io"),
            cpu_us: total("/proc/pressure/cpu"),
            unwritten_bytes: unwritten(),
        }
    }

    fn is_quiet_since(&self, before: &Self) -> bool {
        let window = self.at.duration_since(before.at);
        let below = |now: Option<u64>, then: Option<u64>, share: f64| match (now, then) {
            (Some(now), Some(then)) => {
                Duration::from_micros(now.saturating_sub(then)) <= window.mul_f64(share)
            }
            _ => true,
        };
        below(self.io_us, before.io_us, IO_WAITING)
            && below(self.cpu_us, before.cpu_us, CPU_WAITING)
            && self.unwritten_bytes.is_none_or(|bytes| bytes <= UNWRITTEN_BYTES)
    }
}
