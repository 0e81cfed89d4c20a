//! tuned's plugins: one file each, and each only plans. Applying, verifying and undoing are the same for all.

mod acpi;
mod audio;
mod bootloader;
mod cpu;
mod cpus;
mod disk;
mod eeepc_she;
mod irq;
mod irqbalance;
mod modules;
mod mounts;
mod net;
mod rtentsk;
mod scheduler;
mod script;
mod scsi_host;
mod selinux;
mod service;
mod shared;
mod sysctl;
mod sysfs;
mod systemd;
#[cfg(test)]
pub(crate) mod testing;
mod uncore;
mod usb;
mod video;
mod vm;
mod wishes;
mod xen;

pub use bootloader::{RISK as KERNEL_ARGUMENT_RISK, kernel_argument_wishes};
pub(crate) use shared::glob_paths;
pub use wishes::Wishes;

use crate::{Instance, Scene};

/// One kind of thing that a profile can tune.
pub struct Plugin {
    /// The name that profiles use.
    pub name: &'static str,
    /// One line on what it does.
    pub summary: &'static str,
    /// Its options.
    pub options: &'static [OptionSpec],
    /// The names of the devices it can tune, for plugins that have devices.
    pub devices: Option<fn(&Scene) -> Vec<String>>,
    /// Says what it wants. It reads the machine through the scene and writes nothing.
    pub plan: fn(&Scene, &Instance, &mut Wishes),
}

/// One option of a plugin.
pub struct OptionSpec {
    /// The name; one that ends in `*` stands for every name that begins so, and a lone `*` for any.
    pub name: &'static str,
    /// What it is for, with unit and allowed values.
    pub help: &'static str,
    /// What holds when the option is not written; empty when then nothing happens.
    pub default: &'static str,
}

/// All plugins, by name.
pub static PLUGINS: &[&Plugin] = &[
    &acpi::PLUGIN,
    &audio::PLUGIN,
    &bootloader::PLUGIN,
    &cpu::PLUGIN,
    &disk::PLUGIN,
    &eeepc_she::PLUGIN,
    &irq::PLUGIN,
    &irqbalance::PLUGIN,
    &modules::PLUGIN,
    &mounts::PLUGIN,
    &net::PLUGIN,
    &rtentsk::PLUGIN,
    &scheduler::PLUGIN,
    &script::PLUGIN,
    &scsi_host::PLUGIN,
    &selinux::PLUGIN,
    &service::PLUGIN,
    &sysctl::PLUGIN,
    &sysfs::PLUGIN,
    &systemd::PLUGIN,
    &uncore::PLUGIN,
    &usb::PLUGIN,
    &video::PLUGIN,
    &vm::PLUGIN,
    &xen::PLUGIN,
];

/// The plugin called `name`.
pub fn find(name: &str) -> Option<&'static Plugin> {
    PLUGINS.iter().copied().find(|plugin| plugin.name == name)
}

impl Plugin {
    /// Whether the plugin has an option of this name.
    pub fn has_option(&self, name: &str) -> bool {
        self.options.iter().any(|spec| match spec.name.strip_suffix('*') {
            Some(start) => name.starts_with(start),
            None => spec.name == name,
        })
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::PLUGINS;

    /// The plugins of tuned 2.28 and the names of their options; a `*` at the end stands for a family of names.
    const TUNED: &[(&str, &str)] = &[
        ("acpi", "platform_profile"),
        ("audio", "timeout reset_controller"),
        (
            "bootloader",
            "grub2_cfg_file initrd_dst_img initrd_add_img initrd_add_dir initrd_remove_dir cmdline* skip_grub_config",
        ),
        (
            "cpu",
            "load_threshold latency_low latency_high force_latency governor sampling_down_factor energy_perf_bias \
             min_perf_pct max_perf_pct no_turbo pm_qos_resume_latency_us energy_performance_preference boost",
        ),
        ("disk", "dynamic elevator apm spindown readahead readahead_multiply scheduler_quantum"),
        ("eeepc_she", "load_threshold_normal load_threshold_powersave she_powersave she_normal"),
        ("irq", "affinity mode"),
        ("irqbalance", "banned_cpus"),
        ("modules", "*"),
        ("mounts", "disable_barriers"),
        (
            "net",
            "dynamic wake_on_lan nf_conntrack_hashsize features coalesce pause ring channels txqueuelen mtu",
        ),
        ("rtentsk", ""),
        (
            "scheduler",
            "isolated_cores cgroup_mount_point cgroup_mount_point_init cgroup_groups_init \
             cgroup_for_isolated_cores cgroup_ps_blacklist ps_whitelist ps_blacklist kthread_process irq_process \
             default_irq_smp_affinity perf_mmap_pages perf_process_fork runtime sched_min_granularity_ns \
             sched_base_slice_ns sched_latency_ns sched_wakeup_granularity_ns sched_tunable_scaling \
             sched_migration_cost_ns sched_nr_migrate numa_balancing_scan_delay_ms \
             numa_balancing_scan_period_min_ms numa_balancing_scan_period_max_ms numa_balancing_scan_size_mb \
             group.* cgroup.*",
        ),
        ("script", "script"),
        ("scsi_host", "alpm"),
        ("selinux", "avc_cache_threshold"),
        ("service", "service.*"),
        ("sysctl", "*"),
        ("sysfs", "/sys/*"),
        ("systemd", "cpu_affinity"),
        ("uncore", "max_freq_khz min_freq_khz"),
        ("usb", "autosuspend"),
        ("video", "radeon_powersave panel_power_savings"),
        (
            "vm",
            "transparent_hugepages transparent_hugepage transparent_hugepage.defrag dirty_bytes \
             dirty_background_bytes dirty_ratio dirty_background_ratio",
        ),
    ];

    #[test]
    fn tuned_knows_the_same_plugins_and_options() {
        let fixed = TUNED.iter().flat_map(|(_, names)| names.split(' ')).filter(|name| !name.contains('*'));
        assert_eq!((TUNED.len(), fixed.filter(|name| !name.is_empty()).count()), (24, 88));
        for (plugin, names) in TUNED {
            let ours = super::find(plugin).unwrap_or_else(|| panic!("no plugin {plugin}"));
            let ours: BTreeSet<&str> = ours.options.iter().map(|option| option.name).collect();
            assert_eq!(ours, names.split_whitespace().collect(), "{plugin}");
        }
        let known = |name: &str| TUNED.iter().any(|(plugin, _)| *plugin == name);
        let own: Vec<&str> = PLUGINS.iter().map(|plugin| plugin.name).filter(|name| !known(name)).collect();
        assert_eq!(own, ["xen"]);
    }

    #[test]
    fn plugins_are_listed_by_name_and_each_has_its_file() {
        let listed: Vec<&str> = PLUGINS.iter().map(|plugin| plugin.name).collect();
        assert!(listed.is_sorted(), "{listed:?}");
        let shared = ["mod", "cpus", "wishes", "shared", "testing"];
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/src/plugins");
        let mut files: Vec<String> = zenkai_host::Host::list(&zenkai_host::LiveHost, folder)
            .unwrap()
            .into_iter()
            .map(|entry| entry.name.trim_end_matches(".rs").to_owned())
            .filter(|name| !shared.contains(&name.as_str()))
            .collect();
        files.dedup();
        assert_eq!(files, listed);
    }

    #[test]
    fn every_option_is_explained() {
        for plugin in PLUGINS {
            assert!(!plugin.summary.is_empty(), "{}", plugin.name);
            for option in plugin.options {
                assert!(!option.help.is_empty(), "{}.{}", plugin.name, option.name);
            }
        }
    }
}
