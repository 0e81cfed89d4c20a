//! Measuring a machine at work: what it does while something runs, and whether a change made a difference.
//!
//! This crate knows nothing of profiles: whatever is compared hides behind an arm that can be entered and left.

pub mod bisect;
pub mod experiment;
pub mod explain;
pub mod formats;
pub mod metric;
pub mod os_index;
pub mod sampler;
pub mod statistics;
pub mod workload;
