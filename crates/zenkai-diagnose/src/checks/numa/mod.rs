//! Checks of the numa subsystem, worst first.

mod numa_balancing_on;
mod numa_memory_missing;
mod numa_memory_unbalanced;
mod numa_memory_uneven;
mod numa_node_interleave;
mod numa_off_cmdline;
mod numa_zone_reclaim;

use crate::Check;

/// The list.
pub static CHECKS: &[&Check] = &[
    &numa_off_cmdline::CHECK,
    &numa_node_interleave::CHECK,
    &numa_memory_missing::CHECK,
    &numa_memory_uneven::CHECK,
    &numa_zone_reclaim::CHECK,
    &numa_memory_unbalanced::CHECK,
    &numa_balancing_on::CHECK,
];
