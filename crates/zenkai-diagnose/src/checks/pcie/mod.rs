//! Checks of the pcie subsystem, worst first.

mod pcie_aspm_powersave;
mod pcie_link_degraded;
mod pcie_slot_narrower;
mod pcie_uplink_oversubscribed;
mod shared;

use crate::Check;

/// The list.
pub static CHECKS: &[&Check] = &[
    &pcie_link_degraded::CHECK,
    &pcie_uplink_oversubscribed::CHECK,
    &pcie_slot_narrower::CHECK,
    &pcie_aspm_powersave::CHECK,
];
