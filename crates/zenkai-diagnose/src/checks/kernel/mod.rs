//! Checks of the kernel subsystem, worst first.

mod clock_read_enters_kernel;
mod clocksource_slow;
mod cpu_pressure_now;
mod io_pressure_now;
mod kernel_argument_not_in_force;
mod kernel_bpf_stats_on;
mod kernel_debug_options;
mod kernel_fips;
mod kernel_init_on_alloc_free;
mod kernel_kprobes_left_on;
mod kernel_nmi_watchdog;
mod kernel_nohz_full_shared;
mod kernel_preempt_full;
mod kernel_preempt_lazy;
mod kernel_serial_console_verbose;
mod kernel_split_lock_mitigation;
mod kernel_tracing_left_on;
mod memory_pressure_now;
mod mitigations_above_default;
mod mitigations_costly;
mod mitigations_partial_no_microcode;
mod mitigations_pti_without_pcid;
mod mitigations_seccomp_ssbd_old_kernel;
mod module_option_not_in_force;
mod shared;
mod sysctl_file_not_in_force;
mod sysctl_file_overridden;
mod sysctl_file_unknown_key;
mod system_call_dear;

use crate::Check;

/// The list.
pub static CHECKS: &[&Check] = &[
    &memory_pressure_now::CHECK,
    &kernel_debug_options::CHECK,
    &clocksource_slow::CHECK,
    &kernel_tracing_left_on::CHECK,
    &mitigations_pti_without_pcid::CHECK,
    &sysctl_file_not_in_force::CHECK,
    &kernel_argument_not_in_force::CHECK,
    &module_option_not_in_force::CHECK,
    &sysctl_file_unknown_key::CHECK,
    &sysctl_file_overridden::CHECK,
    &mitigations_partial_no_microcode::CHECK,
    &kernel_init_on_alloc_free::CHECK,
    &kernel_kprobes_left_on::CHECK,
    &kernel_bpf_stats_on::CHECK,
    &io_pressure_now::CHECK,
    &cpu_pressure_now::CHECK,
    &mitigations_above_default::CHECK,
    &mitigations_costly::CHECK,
    &mitigations_seccomp_ssbd_old_kernel::CHECK,
    &kernel_preempt_full::CHECK,
    &kernel_preempt_lazy::CHECK,
    &kernel_serial_console_verbose::CHECK,
    &kernel_nmi_watchdog::CHECK,
    &kernel_split_lock_mitigation::CHECK,
    &kernel_fips::CHECK,
    &kernel_nohz_full_shared::CHECK,
    &clock_read_enters_kernel::CHECK,
    &system_call_dear::CHECK,
];
