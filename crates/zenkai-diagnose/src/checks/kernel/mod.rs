//! Checks of the kernel subsystem, worst first.

use crate::Check;

/// The list.
pub static CHECKS: &[&Check] = &[];
