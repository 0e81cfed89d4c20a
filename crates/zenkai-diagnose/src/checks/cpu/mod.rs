//! Checks of the cpu subsystem, worst first.

mod cpu_clock_below_nominal;
mod cpu_clock_uneven;
mod cpu_governor_powersave;
mod cpu_turbo_not_reached;
mod shared_clock;

use crate::Check;

/// The list.
pub static CHECKS: &[&Check] = &[
    &cpu_governor_powersave::CHECK,
    &cpu_clock_below_nominal::CHECK,
    &cpu_turbo_not_reached::CHECK,
    &cpu_clock_uneven::CHECK,
];
