//! Checks of the memory subsystem, worst first.

use crate::Check;

/// The list.
pub static CHECKS: &[&Check] = &[];
