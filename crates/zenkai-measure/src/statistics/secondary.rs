//! Secondary lines: what a shift of the middle does not tell. Same orders, same re-randomisation.

use serde::{Deserialize, Serialize};

use super::estimate::Test;
use super::rank;

/// A secondary measure of the difference, as a ratio B to A, with its p-value.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Line {
    /// B divided by A; `None` where an arm has nothing to divide.
    pub ratio: Option<f64>,
    /// Two-sided p-value by re-randomisation.
    pub p: f64,
}

/// Total of the metric under B divided by that under A, per completed trial: cost follows the mean. `values` are in
/// the unit of the metric, `None` where the trial failed.
pub fn totals(test: &Test, values: &[Option<f64>]) -> Line {
    // Shares of the largest: the sum of numbers near the end of what a float holds is none.
    let largest = values.iter().flatten().copied().fold(f64::MIN_POSITIVE, f64::max);
    let mean = |is_b: &[bool], arm: bool| {
        let of_arm = values.iter().zip(is_b).filter(|(_, b)| **b == arm);
        let of_arm = of_arm.filter_map(|(value, _)| value.map(|value| value / largest));
        let (sum, count) = of_arm.fold((0.0, 0.0), |(sum, count), value| (sum + value, count + 1.0));
        (count > 0.0 && sum > 0.0).then_some(sum / count)
    };
    let ratio = |is_b: &[bool]| Some(mean(is_b, true)? / mean(is_b, false)?);
    line(test, ratio)
}

/// The `share` quantile of B divided by that of A (0.95: the tail that users feel). A quantile is the smallest outcome
/// that at least that share of the trials of its arm do not exceed; a failed trial is larger than all.
pub fn quantile(test: &Test, share: f64) -> Line {
    let mut sorted: Vec<(usize, f64)> =
        test.series().outcomes().iter().map(|y| y.unwrap_or(f64::INFINITY)).enumerate().collect();
    sorted.sort_by(|left, right| left.1.total_cmp(&right.1));
    let needed = (share.clamp(0.0, 1.0) * super::real(test.series().pairs())).ceil().max(1.0);
    let at = |is_b: &[bool], arm: bool| {
        let mut seen = 0.0;
        sorted.iter().find_map(|(slot, y)| {
            seen += if is_b.get(*slot) == Some(&arm) { 1.0 } else { 0.0 };
            (seen >= needed).then_some(*y)
        })
    };
    let ratio = |is_b: &[bool]| {
        let (a, b) = (at(is_b, false)?, at(is_b, true)?);
        // Both failing is no difference; one failing is the largest there is.
        Some(if a.total_cmp(&b).is_eq() { 1.0 } else { libm::exp(b - a) })
    };
    line(test, ratio)
}

fn line(test: &Test, ratio: impl Fn(&[bool]) -> Option<f64>) -> Line {
    let size = |is_b: &[bool]| ratio(is_b).map_or(f64::INFINITY, |ratio| libm::log(ratio).abs());
    let is_b = test.series().is_b();
    let p = test.redraws().p_of(is_b, size);
    Line { ratio: ratio(is_b).filter(|ratio| ratio.is_finite() && *ratio > 0.0), p }
}

/// How much more B varies from trial to trial than A: the ratio of the median distances from the median, the effect on
/// the middle taken off, with the p-value of the ranks of these distances. A configuration that is fast on average and erratic is the one
/// that disappoints when it is rolled out.
///
/// The effect comes from the same trials, so the p-value is approximate.
pub fn spread(test: &Test) -> Line {
    let distances = test.distances();
    let is_b = test.series().is_b();
    let middle = |arm: bool| {
        let mut of_arm: Vec<f64> = distances
            .iter()
            .zip(is_b)
            .filter(|(_, b)| **b == arm)
            .filter_map(|(distance, _)| *distance)
            .collect();
        super::median(&mut of_arm).filter(|middle| *middle > 0.0)
    };
    let ratio = match (middle(true), middle(false)) {
        (Some(b), Some(a)) => Some(b / a),
        _ => None,
    };
    Line { ratio, p: test.redraws().p_of_sum(&rank::scores(&distances), is_b) }
}

/// The three secondary lines of an experiment with one metric.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Lines {
    /// See [`totals`].
    pub totals: Line,
    /// See [`quantile`], with a share of 0.95.
    pub p95: Line,
    /// See [`spread`].
    pub spread: Line,
    /// p-value of the influence of an arm on the next trial, see [`Test::carry_over`]; below 0.01 the settling time
    /// is too short.
    pub carry_over: f64,
}

/// All secondary lines of `series`; `values` as in [`totals`].
pub fn lines(test: &Test, values: &[Option<f64>]) -> Lines {
    let (p95, spread) = (quantile(test, 0.95), spread(test));
    Lines { totals: totals(test, values), p95, spread, carry_over: test.carry_over() }
}

#[cfg(test)]
mod tests {
    use super::super::design::Law;
    use super::super::estimate::Series;
    use super::super::redraw::Redraws;
    use super::*;

    #[test]
    fn totals_of_any_size_have_a_ratio() {
        let is_b = Law::BlocksOfFour.order(3, 10);
        for size in [1e308, 1.0, 1e-308] {
            for (factor, least) in [(1.0, 0.5), (0.5, 0.0)] {
                let value = |b: &bool| Some(if *b { factor * size } else { size });
                let values: Vec<Option<f64>> = is_b.iter().map(value).collect();
                let y = values.iter().map(|value| value.map(libm::log)).collect();
                let series = Series::new(y, is_b.clone(), Law::BlocksOfFour).unwrap();
                let redraws = Redraws::new(Law::BlocksOfFour, 20, 999, 1);
                let line = totals(&Test::new(&series, &redraws), &values);
                assert!(line.ratio.is_some_and(|ratio| (ratio - factor).abs() < 1e-9), "{size}: {line:?}");
                assert!(line.p > least && (least > 0.0 || line.p < 0.01), "{size}: {line:?}");
            }
        }
    }
}
