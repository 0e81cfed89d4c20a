//! What unordered numbers look like. No verdict.

use std::collections::BTreeMap;

use serde::Serialize;

use super::{Imported, Run};
use crate::statistics::verdict::Better;
use crate::statistics::{median, unordered};

/// An arm and its runs.
type OfArm<'a> = (&'a str, Vec<&'a Run>);

/// Two arms of a file, side by side.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Unpaired {
    /// What was measured.
    pub benchmark: String,
    /// The metric.
    pub metric: String,
    /// Its unit.
    pub unit: String,
    /// Which direction is better, where the file tells.
    pub better: Option<Better>,
    /// The first arm.
    pub a: String,
    /// The other.
    pub b: String,
    /// Runs of each that gave a number.
    pub runs: [usize; 2],
    /// Runs of each that failed.
    pub failed: [usize; 2],
    /// Median of each.
    pub median: [Option<f64>; 2],
    /// Change in per cent: the median of all ratios B to A (Hodges and Lehmann); `None` where values are not positive.
    pub percent: Option<f64>,
    /// Its 95 % interval, lower limit first, if each run stood alone; `None` where it has no end.
    pub interval: [Option<f64>; 2],
    /// Two-sided p-value of Mann and Whitney's test. It takes the runs for independent, which nobody knows here.
    pub p: f64,
}

impl Imported {
    /// Every arm beside the first one of the same benchmark and metric.
    pub fn compare(&self) -> Vec<Unpaired> {
        let mut order: Vec<(&str, &str)> = Vec::new();
        let mut groups: BTreeMap<(&str, &str), Vec<OfArm>> = BTreeMap::new();
        let mut places: BTreeMap<(&str, &str, &str), usize> = BTreeMap::new();
        for run in &self.runs {
            let key = (run.benchmark.as_str(), run.metric.as_str());
            let arms = groups.entry(key).or_insert_with(|| {
                order.push(key);
                Vec::new()
            });
            let place = *places.entry((key.0, key.1, &run.arm)).or_insert(arms.len());
            match arms.get_mut(place) {
                Some((_, runs)) => runs.push(run),
                None => arms.push((&run.arm, vec![run])),
            }
        }
        let of_group = |key: &(&str, &str)| {
            let arms = groups.get(key).map_or(&[][..], Vec::as_slice);
            let wanted = arms.iter().find(|(arm, _)| Some(*arm) == self.first.as_deref());
            let first = wanted.or(arms.first());
            let others = arms.iter().filter(|(arm, _)| first.is_none_or(|(first, _)| arm != first));
            others.filter_map(|other| Some(beside(first?, other))).collect::<Vec<Unpaired>>()
        };
        order.iter().flat_map(of_group).collect()
    }
}

fn beside((a, of_a): &OfArm, (b, of_b): &OfArm) -> Unpaired {
    let good = |runs: &[&Run]| -> Vec<f64> {
        runs.iter().filter_map(|run| run.value).filter(|value| value.is_finite()).collect()
    };
    let (left, right) = (good(of_a), good(of_b));
    let first = of_a.first().or(of_b.first());
    let is_positive = left.iter().chain(&right).all(|value| *value > 0.0);
    let scaled = |values: &[f64]| -> Vec<Option<f64>> {
        values.iter().map(|value| Some(if is_positive { libm::log(*value) } else { *value })).collect()
    };
    let shift = unordered::shift(&scaled(&left), &scaled(&right));
    let percent = |theta: Option<f64>| {
        let percent = theta.filter(|_| is_positive).map(|theta| 100.0 * libm::expm1(theta));
        percent.filter(|percent| percent.is_finite())
    };
    Unpaired {
        benchmark: first.map(|run| run.benchmark.clone()).unwrap_or_default(),
        metric: first.map(|run| run.metric.clone()).unwrap_or_default(),
        unit: first.map(|run| run.unit.clone()).unwrap_or_default(),
        better: first.and_then(|run| run.better),
        a: (*a).to_owned(),
        b: (*b).to_owned(),
        runs: [left.len(), right.len()],
        failed: [of_a.len() - left.len(), of_b.len() - right.len()],
        median: [median(&mut left.clone()), median(&mut right.clone())],
        percent: percent(shift.theta),
        interval: [percent(shift.interval.low), percent(shift.interval.high)],
        p: shift.p,
    }
}
