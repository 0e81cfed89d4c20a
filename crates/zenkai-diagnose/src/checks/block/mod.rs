//! Checks of the block subsystem, worst first.

use crate::Check;

/// The list.
pub static CHECKS: &[&Check] = &[];
