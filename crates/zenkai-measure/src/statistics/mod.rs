//! Whether two arms differ, by how much, and when to stop asking.
//!
//! Pure functions: nothing here reads a machine, a clock or a file, and every random draw comes from a stated seed
//! through a generator of our own. Logarithm, exponential and error function are taken from the `libm` crate, so that
//! a verdict recomputed on another machine is the same to the last bit. `docs/statistics.md` tells what is tested,
//! with which error rates, after which papers, and what it does not prove.

pub mod design;
pub mod estimate;
pub mod lar;
pub mod multiple;
pub mod rank;
pub mod redraw;
pub mod rng;
pub mod secondary;
pub mod sequential;
pub mod unordered;
pub mod verdict;

#[cfg(test)]
mod calibration;
#[cfg(test)]
pub(crate) mod noise;

/// A count as a real number. Counts here are trials and re-randomisations: far below the 2³² where this saturates.
pub fn real(count: usize) -> f64 {
    f64::from(u32::try_from(count).unwrap_or(u32::MAX))
}

/// The median; the mean of the middle two of an even count. `None` of nothing. Reorders its argument.
pub(crate) fn median(values: &mut [f64]) -> Option<f64> {
    if values.is_empty() {
        return None;
    }
    let middle = values.len() / 2;
    let even = values.len().is_multiple_of(2);
    let (below, upper, _) = values.select_nth_unstable_by(middle, f64::total_cmp);
    let upper = *upper;
    if !even {
        return Some(upper);
    }
    let lower = below.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    Some(f64::midpoint(lower, upper))
}
