//! Checks of the power subsystem, worst first.

use crate::Check;

/// The list.
pub static CHECKS: &[&Check] = &[];
