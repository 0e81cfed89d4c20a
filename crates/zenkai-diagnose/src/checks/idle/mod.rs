//! Checks of the idle subsystem, worst first.

mod idle_amd_c2_old_kernel;
mod idle_deep_states;
mod idle_latency_held;
mod idle_polling;
mod idle_state_limit_cmdline;
mod idle_states_disabled;
mod idle_wake_slow;
mod shared;

use crate::Check;

/// The list.
pub static CHECKS: &[&Check] = &[
    &idle_polling::CHECK,
    &idle_deep_states::CHECK,
    &idle_amd_c2_old_kernel::CHECK,
    &idle_latency_held::CHECK,
    &idle_states_disabled::CHECK,
    &idle_state_limit_cmdline::CHECK,
    &idle_wake_slow::CHECK,
];
