//! From the times of slices to a clock, and the check that the clock is one.

use super::chain::{ADD_CYCLES, MUL_COUNT, MUL_LATENCIES};
use super::report::{BusyClock, Reading};
use super::stats::{khz, median, round, share, to_f64, to_u32};

/// How far the measured ratio may be from a whole number of cycles: the fastest slices of the two chains may
/// have run at slightly different clocks, but folding even every second addition would be off by far more.
const RATIO_TOLERANCE: f64 = 0.08;

/// Fewer slices of each kind than this, and their median may well be one that was interrupted: no clock then.
/// The shortest default window holds about 30 at 800 MHz, so only a CPU that is taken from us gives fewer.
pub(super) const LEAST_SLICES: usize = 8;

/// What one thread measured while it kept its CPU busy.
#[derive(Debug, Default)]
#[expect(clippy::struct_field_names, reason = "units belong in the names")]
pub(super) struct Slices {
    /// Time of each slice of additions, ns.
    pub(super) add_ns: Vec<u64>,
    /// Time of each slice of multiplications, ns.
    pub(super) mul_ns: Vec<u64>,
    /// Wall time from the first slice to the end of the last, ns.
    pub(super) wall_ns: u64,
    /// CPU time of the thread in the same time, ns.
    pub(super) cpu_ns: u64,
}

impl Slices {
    /// Judge the slices. `aperf_mperf_ratio` is passed through.
    pub(super) fn into_clock(self, aperf_mperf_ratio: Reading<f64>) -> Reading<BusyClock> {
        let medians = median(&self.add_ns).zip(median(&self.mul_ns));
        let fastest = self.add_ns.iter().min().zip(self.mul_ns.iter().min());
        let (Some((add_median_ns, mul_median_ns)), Some((&add_least_ns, &mul_least_ns))) = (medians, fastest)
        else {
            return Reading::absent("the CPU did not finish a single slice of work");
        };
        let (mul_add_ratio, mut verdict) = self_check(add_least_ns, mul_least_ns, MUL_LATENCIES);
        let count = self.add_ns.len();
        if verdict.is_ok() && count < LEAST_SLICES {
            verdict = Err(format!("only {count} slices of work were finished: other work holds the CPU"));
        }
        let clock_of = |ns| match &verdict {
            Ok(()) => khz(ADD_CYCLES, ns).map_or_else(
                || Reading::absent("a slice took no time: the clock stands still"),
                Reading::Value,
            ),
            Err(reason) => Reading::absent(reason.clone()),
        };
        let undisturbed_ns =
            add_median_ns * self.add_ns.len() as u64 + mul_median_ns * self.mul_ns.len() as u64;
        Reading::Value(BusyClock {
            clock_khz: clock_of(add_median_ns),
            peak_khz: clock_of(add_least_ns),
            cpu_share: share(self.cpu_ns, self.wall_ns),
            lost_share: share(self.wall_ns.saturating_sub(undisturbed_ns), self.wall_ns),
            mul_add_ratio,
            slices: to_u32(self.add_ns.len() as u64),
            aperf_mperf_ratio,
        })
    }
}

/// Compare the two chains: the ratio of a multiplication's time to an addition's, and whether it is one of the
/// latencies that multiplications have. Neither chain alone can tell a folded instruction, an emulated CPU or a
/// halted clock from a different frequency; both together can.
pub(super) fn self_check(
    add_slice_ns: u64,
    mul_slice_ns: u64,
    latencies: &[u32],
) -> (Reading<f64>, Result<(), String>) {
    if latencies.is_empty() {
        let reason = "no instruction of known latency for this architecture";
        return (Reading::absent(reason), Err(reason.to_owned()));
    }
    if add_slice_ns == 0 || mul_slice_ns == 0 {
        let reason = "a slice took no time: the clock stands still";
        return (Reading::absent(reason), Err(reason.to_owned()));
    }
    let add_ns = to_f64(add_slice_ns) / to_f64(ADD_CYCLES);
    let mul_ns = to_f64(mul_slice_ns) / to_f64(MUL_COUNT);
    let ratio = mul_ns / add_ns;
    let known = latencies
        .iter()
        .map(|&cycles| f64::from(cycles))
        .any(|cycles| (ratio - cycles).abs() <= cycles * RATIO_TOLERANCE);
    let verdict = if known {
        Ok(())
    } else {
        Err(format!(
            "inconsistent: a multiplication took {ratio:.2} times an addition, not {} cycles; \
             the CPU is emulated, or does not run dependent additions at one per cycle",
            latencies.iter().map(u32::to_string).collect::<Vec<_>>().join(" or "),
        ))
    };
    (Reading::Value(round(ratio, 4)), verdict)
}
