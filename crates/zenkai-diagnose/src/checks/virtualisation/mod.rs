//! Checks of the virtualisation subsystem, worst first.

mod virtualisation_balloon;
mod virtualisation_cpu_model_hides_features;
mod virtualisation_emulated_cpu;
mod virtualisation_emulated_disk;
mod virtualisation_no_vnuma;
mod virtualisation_steal;
mod virtualisation_time_vanishes;
mod xen_dom0_no_cpufreq;
mod xen_pv_guest;

use crate::Check;

/// The list.
pub static CHECKS: &[&Check] = &[
    &virtualisation_emulated_cpu::CHECK,
    &virtualisation_steal::CHECK,
    &virtualisation_cpu_model_hides_features::CHECK,
    &virtualisation_emulated_disk::CHECK,
    &xen_pv_guest::CHECK,
    &xen_dom0_no_cpufreq::CHECK,
    &virtualisation_balloon::CHECK,
    &virtualisation_no_vnuma::CHECK,
    &virtualisation_time_vanishes::CHECK,
];
