//! The locally adjusted rank test (LAR), the estimate of the effect and its interval.

use super::design::Law;
use super::lar::{Neighbours, Residuals, residuals};
use super::redraw::Redraws;
use super::{rank, real};

/// Effects are looked for up to this size in log units (a factor of 10¹³); beyond it a limit counts as unbounded.
const FARTHEST: f64 = 32.0;
/// The estimate is bisected to this width in log units.
const ESTIMATE_WIDTH: f64 = 1.0 / 4_294_967_296.0;
/// The limits of the interval are bisected to this width in log units (a ten-thousandth of a per cent).
const LIMIT_WIDTH: f64 = 1e-6;

/// Why trials cannot be judged.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SeriesError {
    /// As many arms as outcomes are needed.
    #[error("{outcomes} outcomes but {arms} arms: one outcome is needed for each trial")]
    Lengths {
        /// Outcomes given.
        outcomes: usize,
        /// Arms given.
        arms: usize,
    },
    /// The order cannot come from the stated law.
    #[error(
        "the order of the arms was not drawn from the stated law: every block needs as many trials of A as of B"
    )]
    Order,
    /// An outcome is infinite or not a number.
    #[error("trial {0} has no finite outcome: enter it as failed")]
    NotFinite(usize),
}

/// Trials of two arms in the order in which they ran.
#[derive(Debug, Clone)]
pub struct Series {
    y: Vec<Option<f64>>,
    is_b: Vec<bool>,
    law: Law,
}

impl Series {
    /// Trials with outcomes `y` (see [`super::verdict::Better::outcome`]; `None` where the trial failed), B where
    /// `is_b`, ordered by `law`.
    pub fn new(y: Vec<Option<f64>>, is_b: Vec<bool>, law: Law) -> Result<Self, SeriesError> {
        if y.len() != is_b.len() {
            return Err(SeriesError::Lengths { outcomes: y.len(), arms: is_b.len() });
        }
        if let Some(slot) = y.iter().position(|y| y.is_some_and(|y| !y.is_finite())) {
            return Err(SeriesError::NotFinite(slot));
        }
        if !law.admits(&is_b) {
            return Err(SeriesError::Order);
        }
        Ok(Self { y, is_b, law })
    }

    /// Pairs of trials.
    pub fn pairs(&self) -> usize {
        self.y.len() / 2
    }

    /// The outcomes.
    pub fn outcomes(&self) -> &[Option<f64>] {
        &self.y
    }

    /// Where B ran.
    pub fn is_b(&self) -> &[bool] {
        &self.is_b
    }

    /// The law of the order.
    pub fn law(&self) -> Law {
        self.law
    }

    /// The first `pairs` pairs; `None` if there are fewer, or if they end inside a block.
    pub fn first(&self, pairs: usize) -> Option<Self> {
        let slots = pairs.checked_mul(2)?;
        let (y, is_b) = (self.y.get(..slots)?, self.is_b.get(..slots)?);
        Self::new(y.to_vec(), is_b.to_vec(), self.law).ok()
    }

    /// How many trials of A and of B failed.
    pub fn failed(&self) -> [usize; 2] {
        let of = |arm: bool| self.y.iter().zip(&self.is_b).filter(|(y, b)| y.is_none() && **b == arm).count();
        [of(false), of(true)]
    }

    /// The outcomes with an effect of `theta` taken off B.
    pub(crate) fn without(&self, theta: f64) -> Vec<Option<f64>> {
        let shifted = |(y, b): (&Option<f64>, &bool)| y.map(|y| if *b { y - theta } else { y });
        self.y.iter().zip(&self.is_b).map(shifted).collect()
    }
}

/// The test of one series. An effect is the shift of the outcome under B, in log units; negative is better.
#[derive(Debug, Clone)]
pub struct Test<'a> {
    series: &'a Series,
    near: Neighbours,
    redraws: &'a Redraws,
}

/// Limits of an interval in log units; `None` where it has no end.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Interval {
    /// Lower limit.
    pub low: Option<f64>,
    /// Upper limit.
    pub high: Option<f64>,
}

impl Interval {
    /// Whether `theta` lies inside or on a limit.
    pub fn contains(&self, theta: f64) -> bool {
        self.low.is_none_or(|low| low <= theta) && self.high.is_none_or(|high| theta <= high)
    }

    /// Half the distance of the limits; `None` without both.
    pub fn half_width(&self) -> Option<f64> {
        Some((self.high? - self.low?) / 2.0)
    }
}

impl<'a> Test<'a> {
    /// The test of `series` against `redraws` of as many trials and the same law.
    pub fn new(series: &'a Series, redraws: &'a Redraws) -> Self {
        Self { series, near: Neighbours::new(&series.y), redraws }
    }

    /// The residuals once an effect of `theta` is taken off B.
    pub fn residuals(&self, theta: f64) -> Residuals {
        residuals(&self.series.without(theta), &self.near)
    }

    /// The whole-number rank scores of the residuals (see [`rank::scores`]).
    pub fn scores(&self, theta: f64) -> Vec<i64> {
        rank::scores(&self.residuals(theta).e)
    }

    /// Four times the statistic T = Σ over B of (rank - (2n + 1)/2): scores of B minus scores of A.
    pub fn statistic(&self, theta: f64) -> i64 {
        let scores = self.scores(theta);
        scores.iter().zip(&self.series.is_b).map(|(score, b)| if *b { *score } else { -score }).sum()
    }

    /// The two-sided p-value of the hypothesis that the effect is `theta`.
    pub fn p(&self, theta: f64) -> f64 {
        self.redraws.p_of_sum(&self.scores(theta), &self.series.is_b)
    }

    /// The effect that makes the statistic zero (Hodges and Lehmann 1963); the middle where a range of effects does.
    /// `None` when no effect does, as when an arm failed in most trials.
    pub fn estimate(&self) -> Option<f64> {
        let (mut low, mut high) = self.bracket()?;
        (low, high) = bisect(low, high, ESTIMATE_WIDTH, |theta| self.statistic(theta) > 0);
        let first = f64::midpoint(low, high);
        if self.statistic(high) != 0 {
            return Some(first);
        }
        let far = self.bracket()?.1;
        let (low, high) = bisect(high, far, ESTIMATE_WIDTH, |theta| self.statistic(theta) >= 0);
        Some(f64::midpoint(first, f64::midpoint(low, high)))
    }

    /// A range with a positive statistic at its lower and a negative one at its upper end.
    fn bracket(&self) -> Option<(f64, f64)> {
        let mut reach = 0.5;
        while reach <= FARTHEST {
            if self.statistic(-reach) > 0 && self.statistic(reach) < 0 {
                return Some((-reach, reach));
            }
            reach *= 2.0;
        }
        None
    }

    /// All effects around `estimate` whose p-value is above `level`.
    ///
    /// `known` are effects whose p-value has been computed (zero, the limits of equivalence): the interval contains
    /// them or not as their p-value says, so that interval and verdict never contradict each other.
    pub fn interval(&self, estimate: f64, level: f64, known: &[(f64, f64)]) -> Interval {
        let limit = |sign: f64| self.limit(estimate, sign, level, known);
        Interval { low: limit(-1.0), high: limit(1.0) }
    }

    fn limit(&self, estimate: f64, sign: f64, level: f64, known: &[(f64, f64)]) -> Option<f64> {
        let distance = |theta: f64| (theta - estimate) * sign;
        let ahead = || known.iter().filter(|(theta, _)| distance(*theta) > 0.0);
        let rejected =
            ahead().filter(|(_, p)| *p <= level).map(|(theta, _)| distance(*theta)).reduce(f64::min);
        let nearer = |reach: &f64| rejected.is_none_or(|rejected| *reach < rejected);
        let accepted = ahead().filter(|(_, p)| *p > level).map(|(theta, _)| distance(*theta)).filter(nearer);
        let mut inside = accepted.fold(0.0, f64::max);
        let mut outside = rejected;
        let mut step = self.noise_around(estimate).unwrap_or(0.0).max(1e-5)
            * (2.0 / real(self.series.pairs().max(1))).sqrt();
        while outside.is_none() {
            let reach = inside + step;
            if reach > FARTHEST {
                return None;
            }
            if self.p(estimate + sign * reach) <= level {
                outside = Some(reach);
            } else {
                inside = reach;
                step *= 2.0;
            }
        }
        let outside = outside?;
        let (inside, _) =
            bisect(inside, outside, LIMIT_WIDTH, |reach| self.p(estimate + sign * reach) > level);
        Some(estimate + sign * inside)
    }

    /// The standard deviation of the residuals once the estimated effect is taken off, in log units; `None` with
    /// fewer than two numbers.
    pub fn noise(&self) -> Option<f64> {
        self.noise_around(self.estimate().unwrap_or(0.0))
    }

    fn noise_around(&self, theta: f64) -> Option<f64> {
        let e: Vec<f64> = self.residuals(theta).e.into_iter().flatten().collect();
        if e.len() < 2 {
            return None;
        }
        let mean = e.iter().sum::<f64>() / real(e.len());
        let squares: f64 = e.iter().map(|e| (e - mean) * (e - mean)).sum();
        Some((squares / real(e.len() - 1)).sqrt())
    }

    /// The smallest effect in log units that `pairs` pairs of such trials find four times in five:
    /// 3.1 sd √(2 / pairs).
    ///
    /// 2.8 is the sum of the normal quantiles of 97.5 % and 80 %; a tenth more pays for ranks, small numbers and the
    /// local level, as the calibration tests show (two in three to nearly always found without it).
    pub fn detectable(&self, pairs: usize) -> Option<f64> {
        Some(detectable(self.noise()?, pairs))
    }

    /// The p-value of the hypothesis that the arm of a trial has no influence on the next one.
    ///
    /// The statistic is the sum of the scores, once the estimated effect is taken off, over the trials that follow a
    /// trial of B, minus that over those that follow A. As the effect was estimated from the same trials, the p-value
    /// is not exact but tends to be too large: small ones can be trusted.
    pub fn carry_over(&self) -> f64 {
        let scores = self.scores(self.estimate().unwrap_or(0.0));
        let mut following: Vec<i64> = scores.iter().skip(1).copied().collect();
        following.resize(scores.len(), 0);
        self.redraws.p_of_sum(&following, &self.series.is_b)
    }

    /// The distance of every residual from their common median, once the estimated effect is taken off; `None` for a
    /// failed trial.
    pub(crate) fn distances(&self) -> Vec<Option<f64>> {
        let e = self.residuals(self.estimate().unwrap_or(0.0)).e;
        e.into_iter().map(|e| e.map(f64::abs)).collect()
    }

    /// The series under test.
    pub fn series(&self) -> &Series {
        self.series
    }

    /// The orders it is compared with.
    pub fn redraws(&self) -> &Redraws {
        self.redraws
    }
}

/// See [`Test::detectable`], with the noise (standard deviation in log units) from elsewhere: from the history of the
/// workload, before the first trial.
pub fn detectable(noise: f64, pairs: usize) -> f64 {
    3.1 * noise * (2.0 / real(pairs.max(1))).sqrt()
}

/// Narrows `low` (where `holds` is true) and `high` (where it is not) to a range of `width`.
fn bisect(mut low: f64, mut high: f64, width: f64, holds: impl Fn(f64) -> bool) -> (f64, f64) {
    while high - low > width {
        let middle = f64::midpoint(low, high);
        if middle <= low || middle >= high {
            break;
        }
        if holds(middle) {
            low = middle;
        } else {
            high = middle;
        }
    }
    (low, high)
}
