//! Checks of the services subsystem, worst first.

use crate::Check;

/// The list.
pub static CHECKS: &[&Check] = &[];
