//! Measuring a machine at work: what it does while something runs, and whether a change made a difference.
//!
//! This crate knows nothing of profiles: whatever is compared hides behind an arm that can be entered and left.

pub mod bisect;
pub mod experiment;
pub mod explain;
pub mod formats;
pub mod metric;
pub mod os_index;
pub mod quantity;
pub mod sampler;
pub mod statistics;
pub mod workload;

/// A counter as a number. Exact below 2^53, and beyond that the loss is a part in 10^16.
#[expect(clippy::cast_precision_loss, reason = "what is computed from it is a measurement, not a count")]
pub(crate) fn to_f64(count: u64) -> f64 {
    count as f64
}
