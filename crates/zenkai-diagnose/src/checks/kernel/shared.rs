//! What several checks of the kernel ask.

use crate::Workload;

/// Work that goes in and out of the kernel all the time.
pub(super) const KERNEL_HEAVY: [Workload; 7] = [
    Workload::Database,
    Workload::Redis,
    Workload::Mongodb,
    Workload::Web,
    Workload::Storage,
    Workload::Network,
    Workload::Latency,
];

/// Keys of sysctls that bear on speed; a file that disagrees about another key is not our business.
pub(super) fn bears_on_speed(key: &str) -> bool {
    const PREFIXES: [&str; 18] = [
        "vm.",
        "net.core.",
        "net.ipv4.tcp_",
        "net.ipv4.udp_",
        "net.ipv4.ip_local_port_range",
        "net.netfilter.nf_conntrack_",
        "kernel.sched_",
        "kernel.numa_balancing",
        "kernel.nmi_watchdog",
        "kernel.watchdog",
        "kernel.timer_migration",
        "kernel.split_lock_mitigate",
        "kernel.bpf_stats_enabled",
        "kernel.perf_cpu_time_max_percent",
        "kernel.perf_event_max_sample_rate",
        "fs.aio-max-nr",
        "fs.file-max",
        "fs.nr_open",
    ];
    // Protection, one-shot commands and what the kernel or perf adjusts by itself.
    const NOT: [&str; 13] = [
        "vm.mmap_",
        "vm.panic_on_oom",
        "vm.drop_caches",
        "vm.compact_memory",
        "vm.legacy_va_layout",
        "vm.unprivileged_userfaultfd",
        "vm.memfd_noexec",
        "net.core.bpf_jit_",
        "net.core.warnings",
        "net.ipv4.tcp_syncookies",
        "net.ipv4.tcp_rfc1337",
        "kernel.watchdog_cpumask",
        "kernel.perf_event_max_sample_rate",
    ];
    let starts = |list: &[&str]| list.iter().any(|prefix| key.starts_with(prefix));
    starts(&PREFIXES) && !starts(&NOT)
}
