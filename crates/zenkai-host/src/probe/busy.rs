//! Keep CPUs busy and measure their clock: all at once, and one at a time.

use std::io;
use std::time::Duration;

use super::aperf::Counters;
use super::chain;
use super::crew::{self, Member};
use super::report::{BusyClock, Reading};
use super::slices::Slices;
use super::stats::{khz, median};
use super::time;

/// The outcome of the phase that keeps all CPUs busy.
pub(super) struct AllBusy {
    /// Per CPU, ascending.
    pub(super) clocks: Vec<(u32, Reading<BusyClock>)>,
    /// Median over the CPUs.
    pub(super) tsc_khz: Reading<u32>,
}

/// Keep all CPUs busy for `time`.
pub(super) fn all_busy(cpus: &[u32], time: Duration) -> io::Result<AllBusy> {
    let results = crew::on_each(cpus, &|member: &Member<'_>| spin(member, time))?;
    let mut tsc_rates = Vec::with_capacity(results.len());
    let mut clocks = Vec::with_capacity(results.len());
    for (cpu, result) in results {
        let clock = match result {
            Ok(spun) => {
                tsc_rates.extend(spun.tsc_khz.map(u64::from));
                spun.clock
            }
            Err(error) => not_pinned(&error),
        };
        clocks.push((cpu, clock));
    }
    let tsc_khz = match median(&tsc_rates).and_then(|rate| u32::try_from(rate).ok()) {
        Some(rate) => Reading::Value(rate),
        None if time::tsc().is_none() => Reading::absent("this architecture has no time-stamp counter"),
        None => Reading::absent("no CPU could be kept busy"),
    };
    Ok(AllBusy { clocks, tsc_khz })
}

/// Keep at most `most` CPUs busy, one after the other, sharing `time`. One reading per CPU, in order.
pub(super) fn one_busy(cpus: &[u32], time: Duration, most: usize) -> io::Result<Vec<Reading<BusyClock>>> {
    let sample = spread(cpus.len(), most);
    let each = time / u32::try_from(sample.len().max(1)).unwrap_or(u32::MAX);
    // One CPU alone ramps and settles well within this; more would only make the probe longer.
    let each = each.min(Duration::from_millis(150));
    let not_sampled = format!("not sampled: {} of {} CPUs were measured alone", sample.len(), cpus.len());
    let mut readings = vec![Reading::Absent(not_sampled); cpus.len()];
    for index in sample {
        if let (Some(&cpu), Some(reading)) = (cpus.get(index), readings.get_mut(index)) {
            *reading = match crew::on_one(cpu, &|member: &Member<'_>| spin(member, each))? {
                Ok(spun) => spun.clock,
                Err(error) => not_pinned(&error),
            };
        }
    }
    Ok(readings)
}

/// Up to `most` indices below `count`, evenly spread, ascending and without repeats.
pub(super) fn spread(count: usize, most: usize) -> Vec<usize> {
    let taken = count.min(most);
    (0..taken).map(|nth| nth * count / taken).collect()
}

fn not_pinned<T>(error: &io::Error) -> Reading<T> {
    Reading::Absent(format!("no thread could be pinned to this CPU: {error}"))
}

struct Spun {
    clock: Reading<BusyClock>,
    tsc_khz: Option<u32>,
}

/// Work until `time` after the common start. The first quarter lets the clock ramp up and all threads arrive.
fn spin(member: &Member<'_>, time: Duration) -> Spun {
    let time_ns = u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
    let end_ns = member.started_ns().saturating_add(time_ns);
    let ramp_ns = member.started_ns().saturating_add(time_ns / 4);
    let counters = Counters::open(member.cpu);
    while time::raw_ns() < ramp_ns {
        chain::adds();
    }

    let mut slices = Slices::default();
    let counted_before = counters.as_ref().map_err(Clone::clone).and_then(Counters::read);
    let tsc_before = time::tsc_at();
    let cpu_before_ns = time::thread_cpu_ns();
    let first_ns = time::raw_ns();
    let mut now_ns = first_ns;
    // At least one slice, however late this thread arrived.
    loop {
        chain::adds();
        let added_ns = time::raw_ns();
        chain::muls();
        let multiplied_ns = time::raw_ns();
        slices.add_ns.push(added_ns.saturating_sub(now_ns));
        slices.mul_ns.push(multiplied_ns.saturating_sub(added_ns));
        now_ns = multiplied_ns;
        if now_ns >= end_ns {
            break;
        }
    }
    slices.wall_ns = now_ns.saturating_sub(first_ns);
    slices.cpu_ns = time::thread_cpu_ns().saturating_sub(cpu_before_ns);
    let tsc_after = time::tsc_at();
    let ratio = counted_before
        .and_then(|before| counters.and_then(|counters| counters.read()?.ratio_since(before)))
        .map_or_else(Reading::Absent, Reading::Value);
    let tsc_khz = tsc_before
        .zip(tsc_after)
        .and_then(|((ticks0, ns0), (ticks1, ns1))| khz(ticks1.checked_sub(ticks0)?, ns1.checked_sub(ns0)?));
    Spun { clock: slices.into_clock(ratio), tsc_khz }
}
