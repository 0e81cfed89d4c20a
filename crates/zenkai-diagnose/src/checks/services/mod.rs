//! Checks of the services subsystem, worst first.

mod services_conflict;
mod tuned_profile_missing;
mod tuned_profile_not_applied;
mod tuned_profile_powersave;

use crate::Check;

/// The list.
pub static CHECKS: &[&Check] = &[
    &services_conflict::CHECK,
    &tuned_profile_powersave::CHECK,
    &tuned_profile_not_applied::CHECK,
    &tuned_profile_missing::CHECK,
];
