//! Checks of the virtualisation subsystem, worst first.

use crate::Check;

/// The list.
pub static CHECKS: &[&Check] = &[];
