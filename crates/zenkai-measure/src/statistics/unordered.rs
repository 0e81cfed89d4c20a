//! Two sets of outcomes whose order says nothing: another program's results, or runs before an upgrade and runs after it.
//!
//! Nothing here proves anything. Every p-value and interval takes each run for independent of all others, and nobody drew
//! an order that would make it so: whatever changed between the two sets, and drift within one, looks like an effect.

use super::estimate::Interval;
use super::{median, rank, real};

/// Of more values than this as many are taken, evenly spaced among them by size: their differences are about squared.
const MOST: usize = 500;

/// The normal quantile of 97.5 %.
const Z: f64 = 1.959_964;

/// How far the second set lies from the first.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Shift {
    /// The median of all differences second minus first (Hodges and Lehmann 1963); `None` of an empty set and of one in
    /// which half of the runs failed.
    pub theta: Option<f64>,
    /// The 95 % interval of it: the differences that Mann and Whitney's test does not reject (Moses 1965).
    pub interval: Interval,
    /// Two-sided p-value of Mann and Whitney's test by its normal approximation with ties (Lehmann, "Nonparametrics",
    /// 1975).
    pub p: f64,
}

/// Compares two sets; `None` is a run that failed and ranks above every number.
pub fn shift(first: &[Option<f64>], second: &[Option<f64>]) -> Shift {
    let all: Vec<Option<f64>> = first.iter().chain(second).copied().collect();
    let p = mann_whitney(&all, first.len());
    let open = Interval { low: None, high: None };
    let is_mostly_failed =
        |set: &[Option<f64>]| 2 * set.iter().filter(|value| value.is_some()).count() <= set.len();
    if is_mostly_failed(first) || is_mostly_failed(second) {
        return Shift { theta: None, interval: open, p };
    }
    let (thin_first, thin_second) = (thinned(first), thinned(second));
    let mut differences = Vec::with_capacity(thin_first.len() * thin_second.len());
    for a in &thin_first {
        // Of two failed runs neither is worse.
        differences.extend(thin_second.iter().map(|b| if a.total_cmp(b).is_eq() { 0.0 } else { b - a }));
    }
    let theta = median(&mut differences).filter(|theta| theta.is_finite());
    // The k-th smallest and the k-th largest difference are the limits; k follows from the normal approximation, with
    // the same half step of continuity as the p-value. Of thinned sets the same share of the differences is cut off.
    let (m, n) = (real(first.len()), real(second.len()));
    let share = (0.5 + (0.5 - Z * (m * n * (m + n + 1.0) / 12.0).sqrt()) / (m * n)).max(0.0);
    let reach = share * real(differences.len());
    // They are numbered from 1, so that a reach below 1 leaves no limit.
    let place = (1..=differences.len()).take_while(|place| real(*place) <= reach).count();
    if theta.is_none() || place == 0 {
        return Shift { theta, interval: open, p };
    }
    let mut limit = |index: usize| {
        let (_, limit, _) = differences.select_nth_unstable_by(index, f64::total_cmp);
        Some(*limit).filter(|limit| limit.is_finite())
    };
    let (low, high) = (limit(place - 1), limit(thin_first.len() * thin_second.len() - place));
    Shift { theta, interval: Interval { low, high }, p }
}

/// The least p-value that sets of these sizes can have.
pub fn least_p(first: usize, second: usize) -> f64 {
    let apart: Vec<Option<f64>> = (0..first + second).map(|value| Some(real(value))).collect();
    mann_whitney(&apart, first)
}

/// The values by size, failed ones last and infinite, at most [`MOST`] of them.
fn thinned(values: &[Option<f64>]) -> Vec<f64> {
    let mut sorted: Vec<f64> = values.iter().map(|value| value.unwrap_or(f64::INFINITY)).collect();
    sorted.sort_unstable_by(f64::total_cmp);
    let step = sorted.len().div_ceil(MOST).max(1);
    sorted.into_iter().skip(step / 2).step_by(step).collect()
}

fn mann_whitney(all: &[Option<f64>], first: usize) -> f64 {
    let count = real(all.len());
    if first == 0 || first >= all.len() {
        return 1.0;
    }
    let score = |score: i64| f64::from(i32::try_from(score).unwrap_or(i32::MAX));
    let scores: Vec<f64> = rank::scores(all).into_iter().map(score).collect();
    let sum: f64 = scores.iter().skip(first).sum();
    let squares: f64 = scores.iter().map(|score| score * score).sum();
    let variance = real(first) * real(all.len() - first) / (count * (count - 1.0)) * squares;
    if variance <= 0.0 {
        return 1.0;
    }
    // Scores go in steps of two; half a step of continuity.
    let z = (sum.abs() - 1.0).max(0.0) / variance.sqrt();
    libm::erfc(z / std::f64::consts::SQRT_2)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set(values: impl IntoIterator<Item = f64>) -> Vec<Option<f64>> {
        values.into_iter().map(Some).collect()
    }

    #[test]
    fn the_limits_are_those_of_the_tables() {
        // Critical values of U at 5 %, two-sided: 0 for 4 and 4, 2 for 5 and 5, 23 for 10 and 10, none for 3 and 3.
        for (size, critical) in [(4, 0), (5, 2), (10, 23)] {
            let first = set((0..size).map(|i| f64::from(i) * 100.0));
            let second = set((0..size).map(|i| f64::from(i) * 10_000.0 + 7.0));
            let mut differences: Vec<f64> =
                first.iter().flatten().flat_map(|a| second.iter().flatten().map(move |b| b - a)).collect();
            differences.sort_by(f64::total_cmp);
            let found = shift(&first, &second).interval;
            assert_eq!(found.low, Some(differences[critical]), "{size}");
            assert_eq!(found.high, Some(differences[differences.len() - 1 - critical]), "{size}");
        }
        let three = shift(&set([1.0, 2.0, 3.0]), &set([7.0, 8.0, 9.0]));
        assert_eq!((three.theta, three.interval), (Some(6.0), Interval { low: None, high: None }));
        assert!(least_p(3, 3) > 0.05 && least_p(4, 4) < 0.05);
    }

    #[test]
    fn failed_runs_are_the_worst_and_no_numbers() {
        let good = set([1.0, 2.0, 3.0, 4.0, 5.0]);
        let mut some = good.clone();
        some[0] = None;
        let found = shift(&good, &some);
        assert!(found.theta.unwrap() > 0.0 && found.interval.high.is_none(), "{found:?}");
        let none = shift(&good, &[None; 5]);
        assert_eq!((none.theta, none.interval.low), (None, None));
        assert!(none.p < 0.05);
        let nothing = shift(&[None; 4], &[None; 4]);
        assert_eq!(
            (nothing.theta, nothing.interval.low),
            (None, None),
            "two times nothing is not equal: {nothing:?}"
        );
        assert!((shift(&[], &good).p - 1.0).abs() < 1e-12 && shift(&good, &[]).theta.is_none());
    }

    #[test]
    fn p_and_interval_agree_on_zero() {
        for step in 0..60 {
            let first = set((0..9).map(|i| f64::from(i * 7 % 9)));
            let second = set((0..11).map(|i| f64::from(i * 5 % 11) + 0.01 + f64::from(step) * 0.2 - 6.0));
            let found = shift(&first, &second);
            assert_eq!(found.p > 0.05, found.interval.contains(0.0), "{step}: {found:?}");
        }
    }

    #[test]
    fn many_runs_are_thinned_and_stay_right() {
        let first = set((0..3000).map(|i| f64::from(i * 17 % 3000)));
        let second = set((0..2000).map(|i| f64::from(i * 13 % 2000) * 1.5 + 100.0));
        let found = shift(&first, &second);
        assert!((found.theta.unwrap() - 100.0).abs() < 5.0, "{found:?}");
        let width = found.interval.half_width().unwrap();
        assert!((30.0..120.0).contains(&width) && found.interval.contains(100.0), "{found:?}");
    }
}
