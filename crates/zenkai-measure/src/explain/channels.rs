//! Which channels changed with the arm, and which of them go with the primary metric.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;

use super::{About, Asked, CHANNEL_RATE, Moved, Pairing, Split};
use crate::statistics::multiple::benjamini_hochberg;
use crate::statistics::{median, rank, real};

/// A channel must be there in at least this share of the trials of both arms.
const PRESENT: f64 = 0.8;
/// A channel explains an effect only if its own change accounts for this share of it.
const PLAUSIBLE: f64 = 0.3;
/// Of more trials than this as many are taken, evenly spaced, for a slope: there is one for every two of them.
const MOST_FOR_SLOPE: usize = 400;

/// What a channel has to do with the effect.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Role {
    /// It changed, goes with the metric from trial to trial within the arms (or is a factor of it), and its change is
    /// large enough. Still no proof.
    Explains,
    /// It changed.
    AlsoChanged,
    /// Nothing says that it changed.
    NotChanged,
}

/// How a channel changed.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ChannelShift {
    /// Its name.
    pub name: String,
    /// What it is.
    #[serde(flatten)]
    pub about: About,
    /// Median of the trials' means under the first arm.
    pub a: f64,
    /// The same under the other arm.
    pub b: f64,
    /// Change in per cent; `None` where zero or negative values allow no ratio.
    pub percent: Option<f64>,
    /// Change in the channel's unit.
    pub shift: Option<f64>,
    /// p-value of this channel alone.
    pub p: f64,
    /// p-value corrected for all channels (Benjamini and Hochberg).
    pub corrected: f64,
    /// Rank correlation with the metric from trial to trial, the effect of the arms taken off both; positive when a
    /// larger value goes with a worse outcome.
    pub follows: Option<f64>,
    /// Share of the effect that the channel's change would bring about if it acts as it does within the arms.
    pub share: Option<f64>,
    /// What it has to do with the effect.
    pub role: Role,
}

/// A channel that was not tested.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Missing {
    /// Its name.
    pub name: String,
    /// Why.
    pub reason: String,
}

/// All channels of the trials, those that explain first, then by p-value; and those that could not be tested.
pub(super) fn channels(
    pairing: &Pairing,
    about: &BTreeMap<String, About>,
    splits: &[Split],
) -> (Vec<ChannelShift>, Vec<Missing>) {
    let names: BTreeSet<&String> = pairing.trials.iter().flat_map(|trial| trial.channels.keys()).collect();
    let (mut shifts, mut missing) = (Vec::new(), Vec::new());
    for name in names {
        match channel(pairing, name, about) {
            Ok(shift) => shifts.push(shift),
            Err(reason) => missing.push(Missing { name: name.clone(), reason }),
        }
    }
    // The factors of a split were chosen before anything was measured and are few: they do not pay for the others.
    let is_factor = |shift: &&mut ChannelShift| {
        splits.iter().flat_map(|split| &split.terms).any(|term| term.channel.as_deref() == Some(&shift.name))
    };
    let (factors, others): (Vec<_>, Vec<_>) = shifts.iter_mut().partition(is_factor);
    for family in [factors, others] {
        let corrected = benjamini_hochberg(&family.iter().map(|shift| shift.p).collect::<Vec<f64>>());
        for (shift, corrected) in family.into_iter().zip(corrected) {
            shift.corrected = corrected;
            shift.role = role(shift, pairing, splits);
        }
    }
    shifts.sort_by(|left, right| {
        let size = |shift: &ChannelShift| shift.percent.map_or(0.0, f64::abs);
        left.role.cmp(&right.role).then(left.p.total_cmp(&right.p)).then(size(right).total_cmp(&size(left)))
    });
    (shifts, missing)
}

fn role(shift: &ChannelShift, pairing: &Pairing, splits: &[Split]) -> Role {
    if shift.corrected > CHANNEL_RATE {
        return Role::NotChanged;
    }
    let factor = splits.iter().flat_map(|split| &split.terms).any(|term| {
        term.channel.as_deref() == Some(&shift.name) && term.share.is_some_and(|share| share >= PLAUSIBLE)
    });
    // Beyond two standard errors of a rank correlation of nothing.
    let follows =
        shift.follows.is_some_and(|follows| follows.abs() > 2.0 / real(pairing.trials.len()).sqrt());
    let large = shift.share.is_some_and(|share| share >= PLAUSIBLE);
    if factor || (follows && large) { Role::Explains } else { Role::AlsoChanged }
}

fn channel(pairing: &Pairing, name: &str, about: &BTreeMap<String, About>) -> Result<ChannelShift, String> {
    let values: Vec<Option<f64>> = pairing
        .trials
        .iter()
        .map(|trial| trial.channels.get(name).copied().filter(|value| value.is_finite()))
        .collect();
    for b in [false, true] {
        let of_arm = values.iter().zip(pairing.is_b()).filter(|(_, is_b)| **is_b == b);
        let there = of_arm.filter(|(value, _)| value.is_some()).count();
        let trials = pairing.count(b);
        if real(there) < PRESENT * real(trials) || there == 0 {
            return Err(format!("only in {there} of {trials} trials of an arm"));
        }
    }
    let scaled = Scaled::new(&values);
    let mut moved = Moved { theta: Some(0.0), p: 1.0, interval: [None, None], residuals: Vec::new() };
    if !scaled.constant {
        moved = pairing.moved(scaled.y.clone(), Asked::Residuals).ok_or("not a number in some trial")?;
    }
    let (theta, p) = (moved.theta, moved.p);
    let (a, b) = (pairing.middle(&values, false), pairing.middle(&values, true));
    let (a, b) = a.zip(b).ok_or("in no trial")?;
    let (follows, share) =
        if scaled.constant { (None, None) } else { together(pairing, moved.residuals, theta.unwrap_or(0.0)) };
    Ok(ChannelShift {
        name: name.to_owned(),
        about: about.get(name).cloned().unwrap_or_default(),
        a,
        b,
        percent: theta.filter(|_| scaled.log).map(|theta| 100.0 * libm::expm1(theta)),
        shift: theta.map(|theta| scaled.in_unit(theta, a)),
        p,
        corrected: p,
        follows,
        share,
        role: Role::NotChanged,
    })
}

/// A channel as outcomes: logarithms where all values are positive, else shares of the largest.
struct Scaled {
    y: Vec<Option<f64>>,
    log: bool,
    scale: f64,
    constant: bool,
}

impl Scaled {
    /// A trial without a value gets the median of all: neutral, and not the worst rank of a failed trial. Which trials
    /// lack one does not depend on the order if the arms do not differ, so the p-value holds.
    fn new(values: &[Option<f64>]) -> Self {
        let mut known: Vec<f64> = values.iter().flatten().copied().collect();
        let log = known.iter().all(|value| *value > 0.0);
        let scale = known.iter().fold(0.0_f64, |most, value| most.max(value.abs()));
        let constant = known.windows(2).all(|two| two[0].total_cmp(&two[1]).is_eq());
        let middle = median(&mut known);
        let outcome = |value: f64| match (log, scale > 0.0) {
            (true, _) => libm::log(value),
            (false, true) => value / scale,
            (false, false) => 0.0,
        };
        let y = values.iter().map(|value| value.or(middle).map(outcome)).collect();
        Self { y, log, scale, constant }
    }

    /// A shift of the outcome in the channel's unit, from `a`.
    fn in_unit(&self, theta: f64, a: f64) -> f64 {
        if self.log { a * libm::expm1(theta) } else { theta * self.scale }
    }
}

/// How the channel goes with the metric within the arms: the rank correlation of their residuals, and the share of
/// the effect that slope times shift accounts for. Both have their own effect taken off first.
fn together(pairing: &Pairing, of_channel: Vec<Option<f64>>, shift: f64) -> (Option<f64>, Option<f64>) {
    let Some(theta) = pairing.theta else { return (None, None) };
    let both: Vec<(f64, f64)> = pairing
        .residuals()
        .into_iter()
        .zip(of_channel)
        .filter_map(|(metric, channel)| Some((metric?, channel?)))
        .collect();
    if both.len() < 8 {
        return (None, None);
    }
    let share = slope(&both).map(|slope| slope * shift / theta).filter(|share| share.is_finite());
    (spearman(&both), share)
}

/// Spearman's rank correlation; `None` when either side does not vary.
fn spearman(both: &[(f64, f64)]) -> Option<f64> {
    let scores = |pick: fn(&(f64, f64)) -> f64| -> Vec<f64> {
        let ranks = rank::scores(&both.iter().map(|pair| Some(pick(pair))).collect::<Vec<_>>());
        ranks.into_iter().map(|score| f64::from(i32::try_from(score).unwrap_or(0))).collect()
    };
    let (left, right) = (scores(|pair| pair.0), scores(|pair| pair.1));
    let dot = |left: &[f64], right: &[f64]| left.iter().zip(right).map(|(l, r)| l * r).sum::<f64>();
    let size = (dot(&left, &left) * dot(&right, &right)).sqrt();
    (size > 0.0).then(|| dot(&left, &right) / size)
}

/// The median slope of metric over channel (Theil and Sen); `None` when the channel does not vary.
fn slope(both: &[(f64, f64)]) -> Option<f64> {
    median(&mut slopes(both))
}

fn slopes(both: &[(f64, f64)]) -> Vec<f64> {
    let step = both.len().div_ceil(MOST_FOR_SLOPE).max(1);
    let some: Vec<(f64, f64)> = both.iter().copied().step_by(step).collect();
    let mut slopes = Vec::with_capacity(some.len() * some.len() / 2);
    for (place, (metric, channel)) in some.iter().enumerate() {
        for (other_metric, other) in some.get(place + 1..).unwrap_or_default() {
            if (other - channel).abs() > 1e-12 {
                slopes.push((other_metric - metric) / (other - channel));
            }
        }
    }
    slopes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_slope_of_many_trials_takes_no_more_memory_than_that_of_some() {
        let line = |count: u32| -> Vec<(f64, f64)> {
            let noise = |at: u32| f64::from(at * 7919 % 101) / 1e3;
            (0..count)
                .map(|at| (f64::from(at * 37 % count) * 0.5 + noise(at), f64::from(at * 37 % count)))
                .collect()
        };
        for count in [8, 40, 401, 5_000] {
            let both = line(count);
            assert!(slopes(&both).len() <= MOST_FOR_SLOPE * MOST_FOR_SLOPE / 2, "{count}");
            assert!((slope(&both).unwrap() - 0.5).abs() < 0.01, "{count}: {:?}", slope(&both));
        }
        assert_eq!(slope(&[(1.0, 2.0), (3.0, 2.0)]), None);
    }
}
