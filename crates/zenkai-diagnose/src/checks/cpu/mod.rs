//! Checks of the cpu subsystem, worst first.

mod cpu_governor_powersave;

use crate::Check;

/// The list.
pub static CHECKS: &[&Check] = &[&cpu_governor_powersave::CHECK];
