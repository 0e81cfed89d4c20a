//! Checks of the memory subsystem, worst first.

mod memory_bandwidth_does_not_scale;

use crate::Check;

/// The list.
pub static CHECKS: &[&Check] = &[&memory_bandwidth_does_not_scale::CHECK];
