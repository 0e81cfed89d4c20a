//! The local residual: what is left of a trial after the level of its neighbours is taken off.
//!
//! Slow drift, turbo states and a machine that is busy for a while move neighbouring trials together. A part `b` of
//! the median of the eight nearest trials is taken off; how large a part is decided by how quiet the result is, without
//! looking at which arm ran where. So the residuals are fixed numbers if the arms do not differ, and re-randomisation
//! stays exact. The idea is the neighbour adjustment of field trials (Papadakis 1937), with a median for robustness.

use super::{median, real};

/// Neighbours on each side that make up the level; at the ends as many are taken from the other side.
const REACH: usize = 4;
/// The parts of the neighbours' level that may be taken off.
const PARTS: [f64; 4] = [0.25, 0.5, 0.75, 1.0];
/// Residuals are rounded to multiples of 2⁻⁴⁰ (a ten-thousandth of a millionth of a per cent): equal trials then tie
/// whatever the unit of the metric, although logarithms of different units round differently.
const GRID: f64 = 1_099_511_627_776.0;

/// The nearest other trials of each trial that gave a number.
#[derive(Debug, Clone)]
pub struct Neighbours(Vec<Vec<usize>>);

impl Neighbours {
    /// For each trial of `y` that gave a number, the eight nearest others that did, nearest first and the earlier one
    /// first at equal distance; fewer when there are fewer than nine.
    pub fn new(y: &[Option<f64>]) -> Self {
        let good: Vec<usize> = (0..y.len()).filter(|slot| y[*slot].is_some()).collect();
        let count = 2 * REACH.min(good.len().saturating_sub(1) / 2);
        let mut near = vec![Vec::new(); y.len()];
        for (place, slot) in good.iter().enumerate() {
            // The nearest are among the `count` good ones on either side.
            let window = &good[place.saturating_sub(count)..good.len().min(place + count + 1)];
            let mut others: Vec<usize> = window.iter().copied().filter(|other| other != slot).collect();
            others.sort_by_key(|other| (other.abs_diff(*slot), *other));
            others.truncate(count);
            near[*slot] = others;
        }
        Self(near)
    }
}

/// Trials with the level of their neighbours taken off.
#[derive(Debug, Clone, PartialEq)]
pub struct Residuals {
    /// In log units, centred on their median; `None` for a trial that failed.
    pub e: Vec<Option<f64>>,
    /// The part of the neighbours' level that was taken off: 0, 0.25, 0.5, 0.75 or 1.
    pub part: f64,
}

/// The residuals of `y` (log of the metric, larger is worse; `None` where the trial failed).
pub fn residuals(y: &[Option<f64>], near: &Neighbours) -> Residuals {
    let good: Vec<usize> = (0..y.len()).filter(|slot| y[*slot].is_some()).collect();
    let mut centred: Vec<f64> = good.iter().filter_map(|slot| y[*slot]).collect();
    centre(&mut centred);
    let mut by_slot = vec![0.0; y.len()];
    for (slot, value) in good.iter().zip(&centred) {
        by_slot[*slot] = *value;
    }
    let mut buffer = Vec::with_capacity(2 * REACH);
    let level: Vec<f64> = good
        .iter()
        .map(|slot| {
            buffer.clear();
            buffer.extend(near.0.get(*slot).into_iter().flatten().map(|other| by_slot[*other]));
            median(&mut buffer).unwrap_or(0.0)
        })
        .collect();

    let (mut best, mut part, mut least) = (centred.clone(), 0.0, mean_size(&centred));
    for candidate in PARTS {
        let mut e: Vec<f64> =
            centred.iter().zip(&level).map(|(value, level)| value - candidate * level).collect();
        centre(&mut e);
        let size = mean_size(&e);
        // A difference within rounding must not decide, or the choice would depend on the unit of the metric.
        if size < least * (1.0 - 1e-12) {
            (best, part, least) = (e, candidate, size);
        }
    }
    let mut e = vec![None; y.len()];
    for (slot, value) in good.iter().zip(best) {
        // Adding zero turns -0 into 0: they must tie.
        e[*slot] = Some((value * GRID).round() / GRID + 0.0);
    }
    Residuals { e, part }
}

fn centre(values: &mut [f64]) {
    let middle = median(&mut values.to_vec()).unwrap_or(0.0);
    for value in values {
        *value -= middle;
    }
}

fn mean_size(values: &[f64]) -> f64 {
    values.iter().map(|value| value.abs()).sum::<f64>() / real(values.len().max(1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn neighbours_skip_failures_and_turn_round_at_the_ends() {
        let mut y = vec![Some(0.0); 12];
        assert_eq!(Neighbours::new(&y).0[0], [1, 2, 3, 4, 5, 6, 7, 8]);
        assert_eq!(Neighbours::new(&y).0[5], [4, 6, 3, 7, 2, 8, 1, 9]);
        y[6] = None;
        assert_eq!(Neighbours::new(&y).0[5], [4, 3, 7, 2, 8, 1, 9, 0]);
        assert!(Neighbours::new(&y).0[6].is_empty());
        assert!(Neighbours::new(&[Some(1.0)]).0[0].is_empty());
    }

    #[test]
    fn a_straight_drift_is_taken_off() {
        let y: Vec<Option<f64>> = (0..40).map(|slot| Some(f64::from(slot) * 0.01)).collect();
        let found = residuals(&y, &Neighbours::new(&y));
        assert!((found.part - 1.0).abs() < 1e-15);
        assert!(found.e[8..32].iter().all(|e| e.unwrap().abs() < 0.011), "{found:?}");
    }

    #[test]
    fn nothing_to_work_with_is_no_panic() {
        for y in [vec![], vec![None, None], vec![Some(1.0)], vec![Some(1.0), None, Some(1.0)]] {
            let found = residuals(&y, &Neighbours::new(&y));
            assert_eq!(
                found.e.iter().map(Option::is_some).collect::<Vec<_>>(),
                y.iter().map(Option::is_some).collect::<Vec<_>>()
            );
        }
    }
}
