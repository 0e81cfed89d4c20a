//! When to look, and how strict each look must be so that all of them together keep the promised error rate.
//!
//! Looks follow a Pocock-type spending function (Lan and DeMets 1983): by the share t of the planned pairs at most
//! alpha ln(1 + (e - 1) t) of the error has been spent. The level of each look is found by following a Brownian path
//! through the earlier ones (Armitage, McPherson and Rowe 1969), by integration and not by simulation.

use std::f64::consts::{E, PI, SQRT_2};

use super::real;

/// Pairs at which the trials are judged when nothing else is said.
pub const LOOKS: [usize; 9] = [6, 8, 10, 12, 16, 20, 26, 32, 40];
/// The most pairs an experiment may plan.
pub const MOST_PAIRS: usize = 1_000;

/// The looks of an experiment of at most `cap` pairs: those of [`LOOKS`] below it, further ones a quarter apart, and
/// the cap itself. `cap` is held between 6 and [`MOST_PAIRS`] and rounded down to even, as looks fall between blocks.
pub fn looks(cap: usize) -> Vec<usize> {
    let cap = cap.clamp(LOOKS[0], MOST_PAIRS) / 2 * 2;
    let mut looks: Vec<usize> = LOOKS.into_iter().filter(|look| *look < cap).collect();
    let mut next = 50;
    while next < cap {
        looks.push(next);
        next = next * 5 / 4 / 2 * 2;
    }
    looks.push(cap);
    looks
}

/// The share of `alpha` that may be spent by the share `t` of the planned pairs.
pub fn spent(alpha: f64, t: f64) -> f64 {
    alpha * libm::log(1.0 + (E - 1.0) * t)
}

/// The two-sided level of each look, so that a path without effect is stopped with probability `alpha`.
///
/// `looks` ascend; anything else gives levels of 0 for the looks out of order, which never stop.
pub fn local_levels(looks: &[usize], alpha: f64) -> Vec<f64> {
    let last = real(looks.last().copied().unwrap_or(1).max(1));
    let mut path = Path { places: vec![0.0], weights: vec![1.0] };
    let (mut before, mut spent_before) = (0.0, 0.0);
    looks
        .iter()
        .map(|look| {
            let t = real(*look) / last;
            if t <= before {
                return 0.0;
            }
            let due = spent(alpha, t) - spent_before;
            let step = (t - before).sqrt();
            let boundary = path.boundary(due, step);
            path = path.after(boundary, step);
            (before, spent_before) = (t, spent_before + due);
            2.0 * upper_tail(boundary / t.sqrt())
        })
        .collect()
}

/// Where a Brownian path may be that has not crossed a boundary yet: places with their probabilities.
struct Path {
    places: Vec<f64>,
    weights: Vec<f64>,
}

/// Places of the grid; odd, as Simpson's rule needs.
const GRID: usize = 401;

impl Path {
    /// The chance to be beyond ±`boundary` after a step of standard deviation `step`.
    fn beyond(&self, boundary: f64, step: f64) -> f64 {
        let out = |place: f64| upper_tail((boundary - place) / step) + upper_tail((boundary + place) / step);
        self.places.iter().zip(&self.weights).map(|(place, weight)| weight * out(*place)).sum()
    }

    /// The boundary that is crossed with probability `due`.
    fn boundary(&self, due: f64, step: f64) -> f64 {
        let (mut low, mut high) = (0.0, 20.0);
        for _ in 0..60 {
            let middle = f64::midpoint(low, high);
            if self.beyond(middle, step) > due {
                low = middle;
            } else {
                high = middle;
            }
        }
        f64::midpoint(low, high)
    }

    /// The paths still inside ±`boundary` after a step.
    fn after(&self, boundary: f64, step: f64) -> Path {
        let width = 2.0 * boundary / real(GRID - 1);
        let places: Vec<f64> = (0..GRID).map(|index| -boundary + width * real(index)).collect();
        let density = |to: f64| -> f64 {
            let normal = |z: f64| libm::exp(-0.5 * z * z) / (step * (2.0 * PI).sqrt());
            self.places
                .iter()
                .zip(&self.weights)
                .map(|(from, weight)| weight * normal((to - from) / step))
                .sum()
        };
        let simpson = |index: usize| match index {
            0 => 1.0,
            last if last == GRID - 1 => 1.0,
            odd if odd % 2 == 1 => 4.0,
            _ => 2.0,
        };
        let weights = places
            .iter()
            .enumerate()
            .map(|(index, to)| density(*to) * simpson(index) * width / 3.0)
            .collect();
        Path { places, weights }
    }
}

/// The chance that a standard normal variable exceeds `z`.
fn upper_tail(z: f64) -> f64 {
    libm::erfc(z / SQRT_2) / 2.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn levels_equal_the_reference() {
        // local_levels of the reference in Python, 400 000 simulated paths, four decimals.
        let reference = [0.0115, 0.0072, 0.0074, 0.0076, 0.0102, 0.0108, 0.0137, 0.0144, 0.0165];
        let levels = local_levels(&LOOKS, 0.05);
        for (level, expected) in levels.iter().zip(reference) {
            assert!((level - expected).abs() < 4e-4, "{levels:?}");
        }
        // The first look has no earlier one: its level is what has been spent.
        assert!((levels[0] - spent(0.05, 6.0 / 40.0)).abs() < 1e-9);
        assert!((local_levels(&[12], 0.05)[0] - 0.05).abs() < 1e-9);
    }

    #[test]
    fn two_looks_of_pocock_equal_the_published_level() {
        // Two equal looks with the same boundary of 2.178 keep 5 % (Pocock 1977, table 1): the path that this
        // boundary spends must come back.
        let first = Path { places: vec![0.0], weights: vec![1.0] };
        let step = 0.5_f64.sqrt();
        let one = first.beyond(2.178 * step, step);
        let two = first.after(2.178 * step, step).beyond(2.178, step);
        assert!((one + two - 0.05).abs() < 1e-4, "{}", one + two);
    }

    #[test]
    fn looks_end_at_the_cap() {
        assert_eq!(looks(40), LOOKS);
        assert_eq!(looks(0), [6]);
        assert_eq!(looks(13), [6, 8, 10, 12]);
        assert_eq!(looks(64), [6, 8, 10, 12, 16, 20, 26, 32, 40, 50, 62, 64]);
        assert_eq!(looks(usize::MAX).last(), Some(&MOST_PAIRS));
        for cap in [6, 40, 64, 1_000] {
            let looks = looks(cap);
            assert!(looks.windows(2).all(|two| two[0] < two[1]));
            assert!(local_levels(&looks, 0.05).iter().all(|level| *level > 0.0 && *level < 0.05 + 1e-9));
        }
        assert!(local_levels(&[8, 8], 0.05)[1].abs() < 1e-12);
        assert!(local_levels(&[], 0.05).is_empty());
    }
}
