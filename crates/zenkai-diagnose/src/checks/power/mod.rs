//! Checks of the power subsystem, worst first.

mod bmc_power_cap;
mod platform_profile_low_power;
mod power_limit_below_tdp;
mod powerclamp_active;
mod thermal_throttled;

use crate::Check;

/// The list.
pub static CHECKS: &[&Check] = &[
    &thermal_throttled::CHECK,
    &power_limit_below_tdp::CHECK,
    &bmc_power_cap::CHECK,
    &powerclamp_active::CHECK,
    &platform_profile_low_power::CHECK,
];
