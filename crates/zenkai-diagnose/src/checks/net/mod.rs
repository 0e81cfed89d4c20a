//! Checks of the net subsystem, worst first.

use crate::Check;

/// The list.
pub static CHECKS: &[&Check] = &[];
