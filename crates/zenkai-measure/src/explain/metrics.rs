//! The other numbers of the workload.

use std::collections::BTreeMap;

use serde::Serialize;

use super::{Asked, Pairing};
use crate::experiment::Status;
use crate::statistics::multiple::holm;
use crate::statistics::verdict::Better;

/// How a number of the workload, other than the primary metric, changed.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct MetricShift {
    /// Its name.
    pub name: String,
    /// SI unit.
    pub unit: String,
    /// Which direction is better.
    pub better: Better,
    /// Median under the first arm.
    pub a: Option<f64>,
    /// Median under the other arm.
    pub b: Option<f64>,
    /// Change in per cent; `None` when failed trials leave nothing to estimate.
    pub percent: Option<f64>,
    /// 95 % interval of the change, lower limit first; `None` where it has no end.
    pub interval: [Option<f64>; 2],
    /// p-value of this number alone.
    pub p: f64,
    /// p-value corrected for all of them (Holm).
    pub corrected: f64,
}

/// Every number of the workload that has a better direction, but for the primary one, corrected together.
pub(super) fn metrics(pairing: &Pairing) -> Vec<MetricShift> {
    let mut known: BTreeMap<&str, (&str, Better)> = BTreeMap::new();
    for trial in &pairing.trials {
        for (name, measure) in &trial.metrics {
            if let Some(better) = measure.better.filter(|_| *name != pairing.plan.metric.name) {
                known.entry(name).or_insert((&measure.unit, better));
            }
        }
    }
    let mut shifts: Vec<MetricShift> =
        known.into_iter().filter_map(|(name, (unit, better))| metric(pairing, name, unit, better)).collect();
    let corrected = holm(&shifts.iter().map(|shift| shift.p).collect::<Vec<f64>>());
    for (shift, corrected) in shifts.iter_mut().zip(corrected) {
        shift.corrected = corrected;
    }
    shifts
}

/// A trial that failed is the worst in this number too. A number that some good trial did not give is left out: its
/// absence says nothing.
fn metric(pairing: &Pairing, name: &str, unit: &str, better: Better) -> Option<MetricShift> {
    let good = |status: Status| status == Status::Ok;
    let values: Vec<Option<f64>> = pairing
        .trials
        .iter()
        .map(|trial| trial.metrics.get(name).map(|measure| measure.value).filter(|_| good(trial.status)))
        .collect();
    if values.iter().zip(&pairing.trials).any(|(value, trial)| value.is_none() && good(trial.status)) {
        return None;
    }
    let y: Vec<Option<f64>> = values.iter().map(|value| better.outcome((*value)?)).collect();
    // A number that is always zero (page faults of a small program) has no logarithm to compare.
    if y.iter().zip(&values).any(|(y, value)| y.is_none() && value.is_some()) {
        return None;
    }
    let moved = pairing.moved(y, Asked::Interval)?;
    let percent = |theta: Option<f64>| theta.map(|theta| better.percent(theta));
    let limits = moved.interval.map(percent);
    let interval = match better {
        Better::Lower => limits,
        Better::Higher => [limits[1], limits[0]],
    };
    Some(MetricShift {
        name: name.to_owned(),
        unit: unit.to_owned(),
        better,
        a: pairing.middle(&values, false),
        b: pairing.middle(&values, true),
        percent: percent(moved.theta),
        interval,
        p: moved.p,
        corrected: moved.p,
    })
}
