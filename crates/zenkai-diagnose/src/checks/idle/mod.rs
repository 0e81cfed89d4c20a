//! Checks of the idle subsystem, worst first.

use crate::Check;

/// The list.
pub static CHECKS: &[&Check] = &[];
