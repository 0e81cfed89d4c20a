//! `scheduler`: policy and CPUs of tasks, cores kept free of others, and the scheduler's own numbers.

mod cgroups;
mod tasks;

use zenkai_host::Knob;

use super::{OptionSpec, Plugin, Wishes};
use crate::{Fault, Hold, Instance, OptionText, Scene, Want};

const fn spec(name: &'static str, help: &'static str, default: &'static str) -> OptionSpec {
    OptionSpec { name, help, default }
}

const fn number_of(name: &'static str) -> OptionSpec {
    spec(name, "the scheduler's number of this name, in sysctl or debugfs", "")
}

pub(super) static PLUGIN: Plugin = Plugin {
    name: "scheduler",
    summary: "Sets policy and CPUs of tasks, and tunes the scheduler",
    options: &[
        spec("isolated_cores", "CPU list that tasks and interrupts are moved away from", ""),
        spec("cgroup_mount_point", "where the cpuset hierarchy (version 1) is mounted", cgroups::MOUNT),
        spec("cgroup_mount_point_init", "1 to mount it", "0"),
        spec("cgroup_groups_init", "1 to make the groups", "1"),
        spec("cgroup_for_isolated_cores", "the group whose CPUs tasks get that leave isolated cores", ""),
        spec("cgroup_ps_blacklist", "tasks in groups that match stay: regular expressions joined by ;", ""),
        spec("ps_whitelist", "only tasks with a name that matches move: regular expressions joined by ;", ""),
        spec("ps_blacklist", "tasks with a name that matches stay: regular expressions joined by ;", ""),
        spec("kthread_process", "1 to move kernel threads too", "1"),
        spec("irq_process", "1 to move interrupts too", "1"),
        spec("default_irq_smp_affinity", "calc, ignore, or a CPU list for interrupts to come", "calc"),
        spec("perf_mmap_pages", "size of the event ring of the living process", ""),
        spec("perf_process_fork", "1 to look at forks too in the living process", "0"),
        spec("runtime", "0 to leave tasks that appear later alone; needs a living process", "1"),
        number_of("sched_min_granularity_ns"),
        number_of("sched_base_slice_ns"),
        number_of("sched_latency_ns"),
        number_of("sched_wakeup_granularity_ns"),
        number_of("sched_tunable_scaling"),
        number_of("sched_migration_cost_ns"),
        number_of("sched_nr_migrate"),
        number_of("numa_balancing_scan_delay_ms"),
        number_of("numa_balancing_scan_period_min_ms"),
        number_of("numa_balancing_scan_period_max_ms"),
        number_of("numa_balancing_scan_size_mb"),
        spec("group.*", "order:policy(f b r o *):priority:mask, * or cgroup.NAME:regular expression", ""),
        spec("cgroup.*", "CPU list of a group in the cpuset hierarchy", ""),
    ],
    devices: None,
    plan,
};

fn plan(scene: &Scene, instance: &Instance, wishes: &mut Wishes) {
    for option in &instance.options {
        if is_number(&option.name) {
            number(scene, option, wishes);
        } else if option.name.starts_with("perf_") {
            wishes.want(option, "", Want::Leave("only the living process uses it".to_owned()));
        }
    }
    cgroups::plan(scene, instance, wishes);
    tasks::plan(scene, instance, wishes);
    let tasks_option =
        || instance.options.iter().find(|o| o.name == "isolated_cores" || o.name.starts_with("group."));
    if flag(instance, "runtime", true)
        && let Some(option) = instance.option("runtime").or_else(tasks_option)
    {
        wishes.hold(option, "", Hold::Scheduler);
    }
}

/// Whether a switch is on.
fn flag(instance: &Instance, name: &str, default: bool) -> bool {
    instance.option(name).map_or(default, |option| {
        matches!(option.value.trim().to_ascii_lowercase().as_str(), "1" | "true" | "yes" | "y" | "on" | "t")
    })
}

fn is_number(name: &str) -> bool {
    name.starts_with("sched_") || name.starts_with("numa_balancing_scan_")
}

/// Until 5.13 these were sysctls; now they are in debugfs (`kernel/sched/debug.c`), where 6.6 replaced the minimal
/// granularity by the base slice and dropped latency and wake-up granularity.
fn number(scene: &Scene, option: &OptionText, wishes: &mut Wishes) {
    let name = option.name.as_str();
    let in_debugfs: &[&str] = match name {
        "sched_min_granularity_ns" => &["min_granularity_ns", "base_slice_ns"],
        "sched_base_slice_ns" => &["base_slice_ns", "min_granularity_ns"],
        "sched_latency_ns" => &["latency_ns"],
        "sched_wakeup_granularity_ns" => &["wakeup_granularity_ns"],
        "sched_tunable_scaling" => &["tunable_scaling"],
        "sched_migration_cost_ns" => &["migration_cost_ns"],
        "sched_nr_migrate" => &["nr_migrate"],
        "numa_balancing_scan_delay_ms" => &["numa_balancing/scan_delay_ms"],
        "numa_balancing_scan_period_min_ms" => &["numa_balancing/scan_period_min_ms"],
        "numa_balancing_scan_period_max_ms" => &["numa_balancing/scan_period_max_ms"],
        "numa_balancing_scan_size_mb" => &["numa_balancing/scan_size_mb"],
        _ => &[],
    };
    let sysctl = Knob::Sysctl(format!("kernel.{name}"));
    if sysctl.path().is_some_and(|path| scene.exists(&path)) {
        wishes.set_modified(scene, option, "", sysctl);
        return;
    }
    let paths = in_debugfs.iter().map(|file| format!("/sys/kernel/debug/sched/{file}"));
    match paths.into_iter().find(|path| scene.exists(path)) {
        Some(path) => wishes.set_modified(scene, option, "", Knob::Attribute(path)),
        None if scene.exists("/sys/kernel/debug/sched") => {
            wishes.cannot(option, "", Fault::Machine, "this kernel does not have it any more")
        }
        None => wishes.cannot(option, "", Fault::Machine, "/sys/kernel/debug is not mounted"),
    };
}

#[cfg(test)]
mod tests {
    use crate::plugins::testing::Bench;

    #[test]
    fn numbers_are_where_the_kernel_has_them() {
        let old = Bench::new("scheduler", &[("/proc/sys/kernel/sched_migration_cost_ns", "500000\n")]);
        assert_eq!(
            old.plan(&[("sched_migration_cost_ns", "5000000")]).lines(),
            "kernel.sched_migration_cost_ns: 500000 -> 5000000\n"
        );
        let new = Bench::new("scheduler", &[("/sys/kernel/debug/sched/base_slice_ns", "2800000\n")]);
        assert_eq!(
            new.plan(&[("sched_min_granularity_ns", ">1"), ("sched_latency_ns", "1")]).lines(),
            "leave: /sys/kernel/debug/sched/base_slice_ns is 2800000, not below 1\n\
             cannot: this kernel does not have it any more\n"
        );
        assert_eq!(
            new.plan(&[("perf_mmap_pages", "128")]).lines(),
            "leave: only the living process uses it\n"
        );
    }
}
