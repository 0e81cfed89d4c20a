//! Checks of the pcie subsystem, worst first.

use crate::Check;

/// The list.
pub static CHECKS: &[&Check] = &[];
