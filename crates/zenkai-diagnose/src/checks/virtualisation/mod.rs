//! Checks of the virtualisation subsystem, worst first.

mod virtualisation_time_vanishes;

use crate::Check;

/// The list.
pub static CHECKS: &[&Check] = &[&virtualisation_time_vanishes::CHECK];
