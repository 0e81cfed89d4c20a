//! Checks of the memory subsystem, worst first.

mod memory_bandwidth_does_not_scale;
mod memory_channels_empty;
mod memory_dimm_mixed;
mod memory_dimm_slow;
mod memory_dirty_limits_large;
mod memory_dirty_limits_small;
mod memory_ecc_errors;
mod memory_hugepages_unused;
mod memory_ksm_running;
mod memory_min_free_low;
mod memory_mirrored;
mod memory_overcommit;
mod memory_swappiness_high;
mod memory_swapping;
mod memory_thp_always;
mod memory_thp_never;
#[cfg(test)]
mod shared_table;

use crate::Check;

/// The list.
pub static CHECKS: &[&Check] = &[
    &memory_swapping::CHECK,
    &memory_ecc_errors::CHECK,
    &memory_channels_empty::CHECK,
    &memory_dimm_slow::CHECK,
    &memory_dimm_mixed::CHECK,
    &memory_mirrored::CHECK,
    &memory_hugepages_unused::CHECK,
    &memory_dirty_limits_large::CHECK,
    &memory_min_free_low::CHECK,
    &memory_ksm_running::CHECK,
    &memory_overcommit::CHECK,
    &memory_swappiness_high::CHECK,
    &memory_thp_always::CHECK,
    &memory_thp_never::CHECK,
    &memory_bandwidth_does_not_scale::CHECK,
    &memory_dirty_limits_small::CHECK,
];
