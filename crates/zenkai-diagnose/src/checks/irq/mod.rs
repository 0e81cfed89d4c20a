//! Checks of the irq subsystem, worst first.

use crate::Check;

/// The list.
pub static CHECKS: &[&Check] = &[];
