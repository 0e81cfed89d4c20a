//! Checks of the numa subsystem, worst first.

use crate::Check;

/// The list.
pub static CHECKS: &[&Check] = &[];
