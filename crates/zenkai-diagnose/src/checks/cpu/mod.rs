//! Checks of the cpu subsystem, worst first.

mod cpu_bios_limit;
mod cpu_clock_below_nominal;
mod cpu_clock_uneven;
mod cpu_governor_mixed;
mod cpu_governor_powersave;
mod cpu_governor_userspace;
mod cpu_max_frequency_capped;
mod cpu_perf_limit_percent;
mod cpu_turbo_disabled;
mod cpu_turbo_not_reached;
pub(crate) mod shared;
mod shared_clock;

use crate::Check;

/// The list.
pub static CHECKS: &[&Check] = &[
    &cpu_governor_powersave::CHECK,
    &cpu_governor_userspace::CHECK,
    &cpu_bios_limit::CHECK,
    &cpu_turbo_disabled::CHECK,
    &cpu_max_frequency_capped::CHECK,
    &cpu_perf_limit_percent::CHECK,
    &cpu_governor_mixed::CHECK,
    &cpu_clock_below_nominal::CHECK,
    &cpu_turbo_not_reached::CHECK,
    &cpu_clock_uneven::CHECK,
];
