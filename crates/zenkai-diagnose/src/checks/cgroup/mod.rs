//! Checks of the cgroup subsystem, worst first.

use crate::Check;

/// The list.
pub static CHECKS: &[&Check] = &[];
