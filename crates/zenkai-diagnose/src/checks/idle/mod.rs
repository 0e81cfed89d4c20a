//! Checks of the idle subsystem, worst first.

mod idle_wake_slow;

use crate::Check;

/// The list.
pub static CHECKS: &[&Check] = &[&idle_wake_slow::CHECK];
