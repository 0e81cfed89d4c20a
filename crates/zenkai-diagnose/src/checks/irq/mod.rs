//! Checks of the irq subsystem, worst first.

mod shared;

use crate::Check;

/// The list.
pub static CHECKS: &[&Check] = &[];
