//! What a comparison knows of facts, as tables over their paths. `*` stands for an element of a list.

use super::Changeable::{self, Firmware, Hardware, Hypervisor, Now, Reboot, Software};

/// Values that change by themselves, by path or by the start of it: counters, loads, sizes of what is free, positions.
/// They tell of a moment and not of a machine; where one is out of line, a check says so on its side.
pub(super) const VOLATILE: &[&str] = &[
    "block.disks.*.activity",
    "block.disks.*.md.array_state",
    "block.disks.*.md.sync_completed",
    "block.disks.*.md.sync_speed_kb_per_s",
    "block.mounts.*.usage.available_bytes",
    "block.mounts.*.usage.files",
    "block.mounts.*.usage.files_free",
    "cgroup.cpu.*.throttling",
    "cgroup.cpu_pressure",
    "cgroup.memory.*.current_bytes",
    "cgroup.memory.*.events",
    "cgroup.memory_pressure",
    "cgroup.pids.*.current",
    "idle.states.*.time_us",
    "idle.states.*.usage",
    "irq.devices.*.interrupts.*.effective_affinity",
    "irq.devices.*.interrupts.*.top_count",
    "irq.devices.*.interrupts.*.top_cpu",
    "irq.devices.*.interrupts.*.total",
    "irq.interrupts",
    "irq.softirqs",
    "kernel.load",
    "kernel.pressure",
    "kernel.sysctls.fs.aio-nr",
    "kernel.sysctls.fs.file-nr",
    "kernel.sysctls.kernel.perf_event_max_sample_rate",
    "kernel.uptime_s",
    "memory.counters",
    "memory.edac.*.corrected",
    "memory.edac.*.counted_for_seconds",
    "memory.edac.*.modules_with_errors",
    "memory.edac.*.uncorrected",
    "memory.huge_page_pools.*.free",
    "memory.huge_page_pools.*.reserved",
    "memory.huge_page_pools.*.surplus",
    "memory.info.anonymous_huge_kb",
    "memory.info.anonymous_kb",
    "memory.info.available_kb",
    "memory.info.cached_kb",
    "memory.info.committed_kb",
    "memory.info.dirty_kb",
    "memory.info.free_kb",
    "memory.info.hugetlb_kb",
    "memory.info.page_tables_kb",
    "memory.info.slab_unreclaimable_kb",
    "memory.info.swap_free_kb",
    "memory.ksm.pages_shared",
    "memory.ksm.pages_sharing",
    "memory.pressure",
    "memory.swap.devices.*.used_kb",
    "memory.transparent_huge_pages.khugepaged.full_scans",
    "memory.transparent_huge_pages.khugepaged.pages_collapsed",
    "msr.intel.*.limit_reasons",
    "msr.intel.*.old_limit_reasons",
    "msr.intel.*.package_therm_status",
    "msr.intel.*.smi_count",
    "msr.intel.*.therm_status",
    "net.conntrack.count",
    "net.interfaces.*.bond.active_aggregator",
    "net.interfaces.*.bond.members.*.aggregator",
    "net.interfaces.*.bond.members.*.link_failures",
    "net.interfaces.*.carrier_changes",
    "net.interfaces.*.hardware.ethtool.statistics",
    "net.interfaces.*.hardware.queues.tx_timeouts",
    "net.interfaces.*.statistics",
    "net.protocols",
    "net.socket_memory",
    "net.softnet",
    "numa.nodes.*.allocations",
    "numa.nodes.*.memory.anonymous_kb",
    "numa.nodes.*.memory.file_pages_kb",
    "numa.nodes.*.memory.free_kb",
    "pcie.endpoints.*.path.*.power_state",
    "pcie.endpoints.*.path.*.runtime_status",
    "net.interfaces.*.hardware.pcie.*.power_state",
    "net.interfaces.*.hardware.pcie.*.runtime_status",
    "power.bmc.power_reading",
    "power.meters",
    "probe",
    "sysctl.fs.aio-nr",
    "sysctl.fs.dentry-state",
    "sysctl.fs.file-nr",
    "sysctl.fs.inode-nr",
    "sysctl.fs.inode-state",
    "sysctl.kernel.ns_last_pid",
    "sysctl.kernel.perf_event_max_sample_rate",
    "sysctl.kernel.pty.nr",
    "sysctl.kernel.random",
    "sysctl.net.netfilter.nf_conntrack_count",
    "thermal.cooling.*.state",
    "thermal.throttle",
    "thermal.zones.*.temperature_millidegrees",
    "virtualisation.balloon.size_bytes",
    "virtualisation.steal",
];

/// Names, numbers and places that belong to one machine and say nothing of its speed, and facts that only tell again
/// what another one says: files against what is in force, what the boot loader holds against the command line.
pub(super) const IDENTITY: &[&str] = &[
    "block.disks.*.device_number",
    "block.disks.*.holders",
    "block.disks.*.members",
    "block.disks.*.name",
    "block.disks.*.nvme_controllers",
    "block.disks.*.partitions.*.device_number",
    "block.disks.*.partitions.*.holders",
    "block.disks.*.partitions.*.name",
    "block.disks.*.pcie",
    "block.mounts.*.device",
    "block.mounts.*.device_number",
    "block.mounts.*.root",
    "block.mounts.*.root_disks",
    "block.mounts.*.source",
    "block.nvme.*.name",
    "block.nvme.*.pcie",
    "block.data_directories.*.root_disks",
    "block.simple_disks",
    "cgroup.cpu.*.path",
    "cgroup.io.*.path",
    "cgroup.memory.*.path",
    "cgroup.pids.*.path",
    "cpu.frequency.policies.*.number",
    "irq.devices.*.interrupts.*.number",
    "kernel.boot",
    "kernel.sysctls.net.ipv4.tcp_available_congestion_control",
    "msr.amd.*.cpu",
    "msr.intel.*.cpu",
    "net.default_route",
    "net.default_route_ipv6",
    "net.interfaces.*.flags",
    "net.interfaces.*.hardware.device",
    "net.interfaces.*.hardware.ethtool.driver.bus",
    "net.interfaces.*.hardware.pcie",
    "net.interfaces.*.lower",
    "net.interfaces.*.master",
    "net.interfaces.*.name",
    "net.interfaces.*.upper",
    "pcie.endpoints.*.address",
    "pcie.endpoints.*.path.*.address",
    "privilege",
    "services.tuned.profiles",
    "sysctl.kernel.domainname",
    "sysctl.kernel.hostname",
    "sysctl_files",
    "virtualisation.emulated_devices",
    "vulnerabilities.arguments",
    "vulnerabilities.entries.*.state",
];

/// What cannot be compared between processors of different makers or architectures.
pub(super) const MAKER: &[&str] = &[
    "cpu.family",
    "cpu.flags",
    "cpu.frequency.amd_pstate",
    "cpu.frequency.cppc",
    "cpu.frequency.intel_pstate",
    "cpu.microcode",
    "cpu.model",
    "cpu.stepping",
    "msr",
    "vulnerabilities.pcid",
];

/// Checks that judge a moment: what they find is told, but it is no difference between two machines.
pub(super) const MOMENTARY: &[&str] =
    &["cpu-pressure-now", "io-pressure-now", "memory-pressure-now", "virtualisation-steal"];

/// Files below `/proc/sys` that only tell.
pub(super) const READ_ONLY: &[&str] = &[
    "/proc/sys/crypto/fips_enabled",
    "/proc/sys/kernel/osrelease",
    "/proc/sys/kernel/ostype",
    "/proc/sys/kernel/version",
    "/proc/sys/net/ipv4/tcp_available_congestion_control",
    "/proc/sys/net/netfilter/nf_conntrack_buckets",
];

/// Sysctls that bear on what others may do or see, by the start of the name: never copied from another machine.
pub(super) const SECURITY: &[&str] = &[
    "fs.protected_",
    "fs.suid_dumpable",
    "kernel.core_",
    "kernel.dmesg_restrict",
    "kernel.io_uring_",
    "kernel.kexec_load_disabled",
    "kernel.kptr_restrict",
    "kernel.modules_disabled",
    "kernel.perf_event_paranoid",
    "kernel.randomize_va_space",
    "kernel.sysrq",
    "kernel.unprivileged_",
    "kernel.yama.",
    "net.core.bpf_jit_",
    "net.ipv4.conf.",
    "net.ipv4.icmp_",
    "net.ipv4.ip_forward",
    "net.ipv4.tcp_syncookies",
    "net.ipv6.conf.",
    "user.",
    "vm.mmap_min_addr",
    "vm.mmap_rnd_",
    "vm.unprivileged_",
];

/// Defaults that the kernel computes from the size of the memory or the number of CPUs: they differ whenever that does.
pub(super) const DERIVED: &[&str] = &[
    "cgroup.pids.*.limit",
    "kernel.scheduler.debugfs.base_slice_ns",
    "kernel.scheduler.debugfs.latency_ns",
    "kernel.scheduler.debugfs.min_granularity_ns",
    "kernel.scheduler.debugfs.wakeup_granularity_ns",
    "kernel.sysctls.fs.file-max",
    "kernel.sysctls.fs.inotify.max_user_watches",
    "kernel.sysctls.kernel.threads-max",
    "kernel.sysctls.net.ipv4.tcp_max_tw_buckets",
    "kernel.sysctls.net.ipv4.udp_mem",
    "memory.info.commit_limit_kb",
    "memory.settings.min_free_kb",
    "net.conntrack.buckets",
    "net.conntrack.max",
    "net.settings.tcp_max_syn_backlog",
    "net.settings.tcp_mem_pages",
    "net.settings.tcp_rmem_bytes",
    "net.settings.tcp_wmem_bytes",
];

/// Sizes that differ by what firmware and kernel keep for themselves: equal within two per cent.
pub(super) const ROUGH: &[&str] =
    &["block.mounts.*.usage.size_bytes", "memory.info.total_kb", "numa.nodes.*.memory.total_kb"];

/// Maps whose keys stand for things of one kind: `*` stands for a key in the paths below.
pub(super) const MAPS: &[&str] = &["vulnerabilities.entries"];

/// Texts that are sets of words.
pub(super) const WORDS: &[&str] = &["cpu.flags", "kernel.scheduler.debugfs.features"];

/// How the elements of a list are told apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Elements {
    /// Many of a kind, by these fields; equal differences of several are folded. The noun is for one of them.
    Alike {
        /// What one of them is called.
        noun: &'static str,
        /// The fields that tell them apart.
        keys: &'static [&'static str],
    },
    /// CPUs: the field that holds them.
    Cpus(&'static str),
    /// Disks or network interfaces, by the role that the one of this name has.
    Devices(&'static str),
    /// Each has a name of its own, which becomes part of the path.
    Named(&'static [&'static str]),
    /// By their position.
    Counted,
    /// CPUs grouped by a value: `cpus` and `value`.
    Groups,
    /// Told as one text: these fields of every element.
    Text(&'static [&'static str]),
}

/// The lists of structures in the facts.
pub(super) const LISTS: &[(&str, Elements)] = {
    use Elements::{Alike, Counted, Cpus, Devices, Groups, Named, Text};
    &[
        ("block.data_directories", Named(&["path"])),
        ("block.disks", Devices("name")),
        ("block.disks.*.dm.targets", Counted),
        ("block.disks.*.partitions", Counted),
        ("block.mounts", Named(&["target"])),
        ("block.nvme", Alike { noun: "NVMe controller", keys: &["name"] }),
        ("cgroup.cpu", Counted),
        ("cgroup.io", Counted),
        ("cgroup.limited_services", Named(&["path"])),
        ("cgroup.memory", Counted),
        ("cgroup.pids", Counted),
        ("cpu.caches", Alike { noun: "cache", keys: &["level", "kind", "shared_by"] }),
        ("cpu.frequency.energy_perf_bias", Groups),
        ("cpu.frequency.policies", Cpus("cpus")),
        ("cpu.frequency.uncore", Alike { noun: "uncore", keys: &["name"] }),
        ("cpu.topology.packages", Alike { noun: "socket", keys: &["number"] }),
        ("idle.cpu_latency_limits", Groups),
        ("idle.states", Named(&["name"])),
        ("irq.devices", Devices("device")),
        ("irq.devices.*.interrupts", Text(&["action", "affinity"])),
        ("kernel.console.consoles", Named(&["name"])),
        ("memory.edac", Counted),
        ("memory.huge_page_pools", Named(&["page_kb"])),
        ("memory.huge_page_pools.*.nodes", Text(&["node", "total"])),
        ("memory.modules.arrays", Counted),
        ("memory.modules.processors", Alike { noun: "processor", keys: &["socket"] }),
        ("memory.modules.slots", Alike { noun: "memory slot", keys: &["locator", "bank"] }),
        ("memory.swap.devices", Named(&["path"])),
        ("msr.amd", Alike { noun: "socket", keys: &["package"] }),
        ("msr.clock_modulation", Groups),
        ("msr.intel", Alike { noun: "socket", keys: &["package"] }),
        ("net.interfaces", Devices("name")),
        ("net.interfaces.*.bond.members", Counted),
        ("net.interfaces.*.hardware.ethtool.features", Named(&["name"])),
        ("net.interfaces.*.hardware.queues.rx", Text(&["number", "cpus"])),
        ("net.interfaces.*.hardware.queues.tx", Text(&["number", "cpus"])),
        ("numa.nodes", Alike { noun: "NUMA node", keys: &["number"] }),
        ("pcie.endpoints", Alike { noun: "PCIe device", keys: &["address"] }),
        ("pcie.endpoints.*.path", Counted),
        ("power.zones", Named(&["id"])),
        ("power.zones.*.constraints", Named(&["name"])),
        ("services.present", Named(&["name"])),
        ("thermal.cooling", Named(&["kind"])),
        ("thermal.zones", Counted),
    ]
};

/// Facts that checks judge, with the check that explains them best; the longest start that fits counts. Without a check:
/// what every comparison of two machines begins with.
pub(super) const KNOWN: &[(&str, &str)] = &[
    ("block.disks.*.md", "md-degraded"),
    ("block.disks.*.queue.nomerges", "block-merges-off"),
    ("block.disks.*.queue.nr_requests", "block-requests-small"),
    ("block.disks.*.queue.read_ahead_kb", "block-read-ahead-unfit"),
    ("block.disks.*.queue.rotational", "block-rotational-flag-wrong"),
    ("block.disks.*.queue.scheduler.current", "block-scheduler-unfit"),
    ("block.disks.*.queue.wbt_lat_usec", "block-write-throttling"),
    ("block.disks.*.queue.write_cache", "block-write-cache-off"),
    ("block.disks.*.queue_depth", "block-queue-depth-one"),
    ("block.disks.*.sas", "sas-link-slow"),
    ("block.disks.*.sata", "sata-link-slow"),
    ("block.mounts.*.fs_options", "mount-discard"),
    ("block.mounts.*.options", "mount-strictatime"),
    ("block.nvme", "nvme-queues-few"),
    ("cgroup.cpu.*.quota", "cgroup-cpu-quota-below-cpus"),
    ("cgroup.cpuset", "cgroup-cpuset-narrow"),
    ("cgroup.io", "cgroup-io-limited"),
    ("cgroup.memory", "cgroup-memory-limit-near"),
    ("cpu.frequency.boost", "cpu-turbo-disabled"),
    ("cpu.frequency.energy_perf_bias", "cpu-epb-powersaving"),
    ("cpu.frequency.intel_pstate.max_perf_percent", "cpu-perf-limit-percent"),
    ("cpu.frequency.intel_pstate.no_turbo", "cpu-turbo-disabled"),
    ("cpu.frequency.policies.*.bios_limit_khz", "cpu-bios-limit"),
    ("cpu.frequency.policies.*.driver", "cpu-driver-missing"),
    ("cpu.frequency.policies.*.energy_performance_preference", "cpu-epp-powersaving"),
    ("cpu.frequency.policies.*.governor", "cpu-governor-powersave"),
    ("cpu.frequency.policies.*.max_khz", "cpu-max-frequency-capped"),
    ("cpu.frequency.uncore", "cpu-uncore-capped"),
    ("cpu.isolated", "cpu-isolated"),
    ("cpu.model_name", ""),
    ("cpu.nohz_full", "kernel-nohz-full-shared"),
    ("cpu.offline", "cpu-offline"),
    ("cpu.online", ""),
    ("cpu.smt_active", "cpu-smt-off"),
    ("cpu.smt_control", "cpu-smt-off"),
    ("idle.acpi_max_cstate", "idle-deep-states"),
    ("idle.driver", "idle-deep-states"),
    ("idle.intel_max_cstate", "idle-deep-states"),
    ("idle.latency_limit_us", "idle-latency-held"),
    ("idle.states.*.disabled_on", "idle-states-disabled"),
    ("kernel.clock_source.current", "clocksource-slow"),
    ("kernel.config", "kernel-debug-options"),
    ("kernel.fips", "kernel-fips"),
    ("kernel.release", ""),
    ("kernel.scheduler.preemption", "kernel-preempt-full"),
    ("kernel.split_lock_mitigate", "kernel-split-lock-mitigation"),
    ("kernel.tracing", "kernel-tracing-left-on"),
    ("kernel.watchdog.nmi", "kernel-nmi-watchdog"),
    ("memory.huge_page_pools.*.total", "memory-hugepages-unused"),
    ("memory.info.swap_total_kb", "memory-swapping"),
    ("memory.info.total_kb", ""),
    ("memory.ksm.run", "memory-ksm-running"),
    ("memory.modules.slots", "memory-channels-empty"),
    ("memory.settings.dirty_background_bytes", "memory-dirty-limits-large"),
    ("memory.settings.dirty_background_ratio", "memory-dirty-limits-large"),
    ("memory.settings.dirty_bytes", "memory-dirty-limits-large"),
    ("memory.settings.dirty_ratio", "memory-dirty-limits-large"),
    ("memory.settings.min_free_kb", "memory-min-free-low"),
    ("memory.settings.overcommit_memory", "memory-overcommit"),
    ("memory.settings.overcommit_ratio", "memory-overcommit"),
    ("memory.settings.swappiness", "memory-swappiness-high"),
    ("memory.transparent_huge_pages.enabled.current", "memory-thp-never"),
    ("msr.clock_modulation", "cpu-clock-modulated"),
    ("msr.intel.*.prefetch_control", "cpu-prefetchers-off"),
    ("net.interfaces.*.bond", "net-bond-mode"),
    ("net.interfaces.*.duplex", "net-half-duplex"),
    ("net.interfaces.*.hardware.driver", "net-emulated-driver"),
    ("net.interfaces.*.hardware.ethtool.channels", "net-channels-below-cpus"),
    ("net.interfaces.*.hardware.ethtool.coalesce", "net-coalesce-high"),
    ("net.interfaces.*.hardware.ethtool.eee", "net-eee-on"),
    ("net.interfaces.*.hardware.ethtool.features", "net-offload-off"),
    ("net.interfaces.*.hardware.ethtool.pause", "net-pause-frames"),
    ("net.interfaces.*.hardware.ethtool.rings", "net-ring-small"),
    ("net.interfaces.*.mtu_bytes", "net-mtu-mismatch"),
    ("net.interfaces.*.speed_mbps", "net-link-slow"),
    ("net.settings.rmem_max_bytes", "net-tcp-buffers-small"),
    ("net.settings.somaxconn", "net-somaxconn-small"),
    ("net.settings.tcp_congestion_control", ""),
    ("net.settings.tcp_sack", "net-tcp-features-off"),
    ("net.settings.tcp_slow_start_after_idle", "net-slow-start-after-idle"),
    ("net.settings.tcp_timestamps", "net-tcp-features-off"),
    ("net.settings.tcp_window_scaling", "net-tcp-features-off"),
    ("net.settings.wmem_max_bytes", "net-tcp-buffers-small"),
    ("numa.balancing", "numa-balancing-on"),
    ("numa.zone_reclaim_mode", "numa-zone-reclaim"),
    ("pcie.aspm_policy.current", "pcie-aspm-powersave"),
    ("pcie.endpoints.*.path.*.current_speed_mtps", "pcie-link-degraded"),
    ("pcie.endpoints.*.path.*.current_width", "pcie-link-degraded"),
    ("power.bmc.power_limit", "bmc-power-cap"),
    ("power.platform_profile", "platform-profile-low-power"),
    ("power.zones.*.constraints.*.limit_uw", "power-limit-below-tdp"),
    ("services.present", "services-conflict"),
    ("services.tuned.active_profile", "tuned-profile-powersave"),
    ("virtualisation.kind", ""),
    ("vulnerabilities.entries", "mitigations-costly"),
];

/// How a fact can be changed; the longest start that fits counts. Settings below `/proc/sys` can always be changed now.
pub(super) const CHANGEABLE: &[(&str, Changeable)] = &[
    ("block", Hardware),
    ("block.disks.*.md.bitmap_location", Now),
    ("block.disks.*.md.group_thread_cnt", Now),
    ("block.disks.*.md.stripe_cache_size", Now),
    ("block.disks.*.partitions", Software),
    ("block.disks.*.queue.add_random", Now),
    ("block.disks.*.queue.iostats", Now),
    ("block.disks.*.queue.max_sectors_kb", Now),
    ("block.disks.*.queue.nomerges", Now),
    ("block.disks.*.queue.nr_requests", Now),
    ("block.disks.*.queue.read_ahead_kb", Now),
    ("block.disks.*.queue.rq_affinity", Now),
    ("block.disks.*.queue.scheduler.current", Now),
    ("block.disks.*.queue.wbt_lat_usec", Now),
    ("block.disks.*.queue.write_cache", Now),
    ("block.disks.*.queue_depth", Now),
    ("block.mounts", Software),
    ("block.mounts.*.fs_options", Now),
    ("block.mounts.*.options", Now),
    ("block.nvme.*.firmware", Firmware),
    ("block.nvme_max_wakeup_us", Reboot),
    ("cgroup", Now),
    ("cpu", Hardware),
    ("cpu.frequency.amd_pstate", Reboot),
    ("cpu.frequency.amd_pstate.status", Now),
    ("cpu.frequency.boost", Now),
    ("cpu.frequency.energy_perf_bias", Now),
    ("cpu.frequency.intel_pstate", Now),
    ("cpu.frequency.intel_pstate.status", Reboot),
    ("cpu.frequency.policies.*.available_governors", Software),
    ("cpu.frequency.policies.*.available_preferences", Software),
    ("cpu.frequency.policies.*.bios_limit_khz", Firmware),
    ("cpu.frequency.policies.*.boost", Now),
    ("cpu.frequency.policies.*.driver", Reboot),
    ("cpu.frequency.policies.*.energy_performance_preference", Now),
    ("cpu.frequency.policies.*.fixed_khz", Now),
    ("cpu.frequency.policies.*.governor", Now),
    ("cpu.frequency.policies.*.max_khz", Now),
    ("cpu.frequency.policies.*.min_khz", Now),
    ("cpu.frequency.uncore.*.max_khz", Now),
    ("cpu.frequency.uncore.*.min_khz", Now),
    ("cpu.isolated", Reboot),
    ("cpu.microcode", Firmware),
    ("cpu.nohz_full", Reboot),
    ("cpu.offline", Now),
    ("cpu.resctrl_schemata", Now),
    ("cpu.smt_active", Now),
    ("cpu.smt_control", Now),
    ("firmware", Firmware),
    ("firmware.board", Hardware),
    ("firmware.chassis_type", Hardware),
    ("firmware.product", Hardware),
    ("firmware.vendor", Hardware),
    ("idle", Firmware),
    ("idle.acpi_max_cstate", Reboot),
    ("idle.available_governors", Software),
    ("idle.cpu_latency_limits", Now),
    ("idle.driver", Reboot),
    ("idle.governor", Now),
    ("idle.guest_halt_poll_ns", Now),
    ("idle.intel_max_cstate", Reboot),
    ("idle.latency_limit_us", Now),
    ("idle.states.*.disabled_on", Now),
    ("irq", Now),
    ("kernel", Software),
    ("kernel.clock_source.current", Now),
    ("kernel.command_line", Reboot),
    ("kernel.console", Reboot),
    ("kernel.fips", Reboot),
    ("kernel.scheduler", Now),
    ("kernel.scheduler.nohz_full", Reboot),
    ("kernel.scheduler.preemption", Reboot),
    ("kernel.tracing", Now),
    ("memory", Hardware),
    ("memory.huge_page_pools.*.total", Now),
    ("memory.info.swap_total_kb", Now),
    ("memory.ksm", Now),
    ("memory.settings", Now),
    ("memory.swap", Now),
    ("memory.transparent_huge_pages", Now),
    ("memory.transparent_huge_pages.defrag.available", Software),
    ("memory.transparent_huge_pages.enabled.available", Software),
    ("memory.transparent_huge_pages.shmem_enabled.available", Software),
    ("msr", Firmware),
    ("net", Hardware),
    ("net.conntrack", Now),
    ("net.interfaces.*.bond", Now),
    ("net.interfaces.*.hardware.ethtool.channels.combined", Now),
    ("net.interfaces.*.hardware.ethtool.channels.rx", Now),
    ("net.interfaces.*.hardware.ethtool.channels.tx", Now),
    ("net.interfaces.*.hardware.ethtool.coalesce", Now),
    ("net.interfaces.*.hardware.ethtool.driver", Software),
    ("net.interfaces.*.hardware.ethtool.driver.firmware", Firmware),
    ("net.interfaces.*.hardware.ethtool.eee", Now),
    ("net.interfaces.*.hardware.ethtool.features.*.active", Now),
    ("net.interfaces.*.hardware.ethtool.features.*.changeable", Software),
    ("net.interfaces.*.hardware.ethtool.pause", Now),
    ("net.interfaces.*.hardware.ethtool.rings.rx", Now),
    ("net.interfaces.*.hardware.ethtool.rings.rx_max", Hardware),
    ("net.interfaces.*.hardware.ethtool.rings.tx", Now),
    ("net.interfaces.*.hardware.ethtool.rings.tx_max", Hardware),
    ("net.interfaces.*.hardware.queues.rx", Now),
    ("net.interfaces.*.hardware.queues.tx", Now),
    ("net.interfaces.*.mtu_bytes", Now),
    ("net.interfaces.*.operstate", Now),
    ("net.interfaces.*.tx_queue_len", Now),
    ("net.settings", Now),
    ("numa", Hardware),
    ("numa.balancing", Now),
    ("numa.demotion_enabled", Now),
    ("numa.zone_reclaim_mode", Now),
    ("pcie", Hardware),
    ("pcie.aspm_policy.available", Software),
    ("pcie.aspm_policy.current", Now),
    ("power", Firmware),
    ("power.platform_profile", Now),
    ("power.zones", Hardware),
    ("power.zones.*.constraints", Now),
    ("power.zones.*.enabled", Now),
    ("services", Software),
    ("sysctl", Now),
    ("thermal", Hardware),
    ("virtualisation", Hypervisor),
    ("vulnerabilities", Reboot),
];

/// Whether a table of paths names this one or where it lies in.
pub(super) fn among(table: &[&str], path: &str) -> bool {
    starts(path).any(|start| table.contains(&start))
}

/// What a table says of a path: the longest start that it names counts.
pub(super) fn find<T: Copy>(table: &[(&str, T)], path: &str) -> Option<T> {
    starts(path).find_map(|start| table.iter().find(|(known, _)| *known == start).map(|(_, what)| *what))
}

/// The path and everything that it lies in, longest first.
fn starts(path: &str) -> impl Iterator<Item = &str> {
    std::iter::successors(Some(path), |path| path.rfind('.').and_then(|at| path.get(..at)))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::checks::CHECKS;

    #[test]
    fn the_longest_start_counts() {
        assert!(among(&["a.b"], "a.b.c") && among(&["a.b"], "a.b") && !among(&["a.b"], "a.bc"));
        let table = [("a", 1), ("a.b", 2)];
        assert_eq!(find(&table, "a.b.c"), Some(2));
        assert_eq!((find(&table, "a.c"), find(&table, "b")), (Some(1), None));
    }

    #[test]
    fn every_check_that_is_named_exists() {
        for check in MOMENTARY {
            assert!(CHECKS.iter().any(|known| known.id == *check), "{check}");
        }
        for (path, check) in KNOWN {
            assert!(check.is_empty() || CHECKS.iter().any(|known| known.id == *check), "{path}: {check}");
        }
    }

    #[test]
    fn no_path_is_named_twice() {
        let unique = |paths: Vec<&str>| {
            let set: BTreeSet<&&str> = paths.iter().collect();
            assert_eq!(set.len(), paths.len(), "{paths:?}");
        };
        unique(VOLATILE.iter().chain(IDENTITY).copied().collect());
        unique(LISTS.iter().map(|(path, _)| *path).collect());
        unique(KNOWN.iter().map(|(path, _)| *path).collect());
        unique(CHANGEABLE.iter().map(|(path, _)| *path).collect());
    }
}
