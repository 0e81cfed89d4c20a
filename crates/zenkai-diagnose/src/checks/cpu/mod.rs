//! Checks of the cpu subsystem, worst first.

mod cpu_amd_acpi_cpufreq;
mod cpu_bandwidth_throttled;
mod cpu_bios_limit;
mod cpu_clock_below_nominal;
mod cpu_clock_modulated;
mod cpu_clock_uneven;
mod cpu_driver_missing;
mod cpu_driver_pcc;
mod cpu_epb_firmware_controlled;
mod cpu_epb_powersaving;
mod cpu_epp_powersaving;
mod cpu_governor_mixed;
mod cpu_governor_powersave;
mod cpu_governor_userspace;
mod cpu_isolated;
mod cpu_max_frequency_capped;
mod cpu_offline;
mod cpu_perf_limit_percent;
mod cpu_prefetchers_off;
mod cpu_prochot_asserted;
mod cpu_smt_off;
mod cpu_turbo_disabled;
mod cpu_turbo_not_reached;
mod cpu_uncore_capped;
pub(crate) mod shared;
mod shared_clock;

use crate::Check;

/// The list.
pub static CHECKS: &[&Check] = &[
    &cpu_prochot_asserted::CHECK,
    &cpu_clock_modulated::CHECK,
    &cpu_governor_powersave::CHECK,
    &cpu_governor_userspace::CHECK,
    &cpu_bios_limit::CHECK,
    &cpu_offline::CHECK,
    &cpu_turbo_disabled::CHECK,
    &cpu_max_frequency_capped::CHECK,
    &cpu_perf_limit_percent::CHECK,
    &cpu_driver_missing::CHECK,
    &cpu_driver_pcc::CHECK,
    &cpu_epp_powersaving::CHECK,
    &cpu_epb_powersaving::CHECK,
    &cpu_epb_firmware_controlled::CHECK,
    &cpu_uncore_capped::CHECK,
    &cpu_prefetchers_off::CHECK,
    &cpu_bandwidth_throttled::CHECK,
    &cpu_governor_mixed::CHECK,
    &cpu_isolated::CHECK,
    &cpu_smt_off::CHECK,
    &cpu_amd_acpi_cpufreq::CHECK,
    &cpu_clock_below_nominal::CHECK,
    &cpu_turbo_not_reached::CHECK,
    &cpu_clock_uneven::CHECK,
];
