//! Checks of the cgroup subsystem, worst first.

mod cgroup_cpu_quota_below_cpus;
mod cgroup_cpu_throttled;
mod cgroup_cpuset_narrow;
mod cgroup_io_limited;
mod cgroup_memory_limit_near;
mod init_cpu_affinity;
mod shared;

use crate::Check;

/// The list.
pub static CHECKS: &[&Check] = &[
    &cgroup_cpu_throttled::CHECK,
    &init_cpu_affinity::CHECK,
    &cgroup_memory_limit_near::CHECK,
    &cgroup_cpu_quota_below_cpus::CHECK,
    &cgroup_cpuset_narrow::CHECK,
    &cgroup_io_limited::CHECK,
];
