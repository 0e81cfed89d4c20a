//! A setting in a file that the kernel no longer has.

use zenkai_facts::{Facts, sysctl_files::Assignment};

use crate::{Check, Context, Evidence, Finding, Impact, Judgement, Remedy, Subject, Subsystem, need};

/// See the explanation.
pub(super) static CHECK: Check = Check {
    id: "sysctl-file-unknown-key",
    subsystem: Subsystem::Kernel,
    summary: "a setting in a file no longer exists in this kernel",
    impact: Impact::Small,
    effect: "whatever the setting was meant to bring is lost without a word",
    risk: "none in removing the line",
    source: "https://man7.org/linux/man-pages/man5/sysctl.d.5.html",
    explanation: include_str!("sysctl_file_unknown_key.md"),
    run,
};

/// Keys that have gone, and what became of them. A key ending in a dot or an underscore stands for all below it.
const GONE: [(&str, &str); 17] = [
    (
        "kernel.sched_latency_ns",
        "moved to debugfs in 5.13, gone with 6.6 (base_slice_ns in /sys/kernel/debug/sched)",
    ),
    (
        "kernel.sched_min_granularity_ns",
        "moved to debugfs in 5.13, is base_slice_ns in /sys/kernel/debug/sched since 6.6",
    ),
    ("kernel.sched_wakeup_granularity_ns", "moved to debugfs in 5.13, gone with 6.6"),
    ("kernel.sched_migration_cost_ns", "moved to /sys/kernel/debug/sched/migration_cost_ns in 5.13"),
    ("kernel.sched_nr_migrate", "moved to /sys/kernel/debug/sched/nr_migrate in 5.13"),
    ("kernel.sched_tunable_scaling", "moved to /sys/kernel/debug/sched/tunable_scaling in 5.13"),
    ("kernel.sched_child_runs_first", "was removed when EEVDF became the scheduler"),
    ("kernel.sched_domain.", "moved to /sys/kernel/debug/sched/domains in 5.13"),
    ("kernel.sched_compat_yield", "was removed long ago"),
    ("kernel.sched_time_avg_ms", "was removed"),
    ("kernel.sched_shares_window_ns", "was removed"),
    ("kernel.numa_balancing_scan_", "moved to /sys/kernel/debug/sched/numa_balancing in 5.13"),
    ("net.ipv4.tcp_tw_recycle", "was removed in 4.12"),
    ("net.ipv4.ip_conntrack_max", "is net.netfilter.nf_conntrack_max now"),
    ("net.ipv4.netfilter.ip_conntrack_", "is net.netfilter.nf_conntrack_… now"),
    ("vm.nr_pdflush_threads", "was removed"),
    ("vm.block_dump", "was removed"),
];

fn run(facts: &Facts, _context: Context) -> Judgement {
    need(&facts.sysctl_files.applied_by)
        .map(|_| {
            let files = facts.sysctl_files.assignments.iter().filter(|one| !one.pattern && !one.tolerant);
            Judgement::each(files.filter(|one| one.overridden_by.is_none()), |one| Ok(judge(one)))
        })
        .into()
}

fn judge(one: &Assignment) -> Option<Finding> {
    let fits = |known: &str| one.key == known || (known.ends_with(['.', '_']) && one.key.starts_with(known));
    let (_, fate) = GONE.iter().find(|(known, _)| fits(known))?;
    if !one.running.is_absent() {
        return None;
    }
    Some(
        Finding::new(Subject::device(&one.key), format!("is set in a file but {fate}"))
            .with(Evidence::derived(one.at.to_string(), format!("{} = {}", one.key, one.value)))
            .with(Evidence::of(&one.running))
            .remedy(Remedy::Do(
                "remove the line; if the tuning is still wanted, set it in its new place".to_owned(),
            )),
    )
}

#[cfg(test)]
mod tests {
    use crate::checks::testing::findings;

    fn fires(line: &str, running: &[(&str, &str)]) -> bool {
        let mut files = vec![("/etc/sysctl.d/90-x.conf", line), ("/run/systemd/system/x", "")];
        files.extend(running);
        !findings(&super::CHECK, &files).is_empty()
    }

    #[test]
    fn only_what_is_known_to_have_gone() {
        assert!(fires("kernel.sched_min_granularity_ns = 10000000\n", &[]));
        assert!(fires("net.ipv4.tcp_tw_recycle = 1\n", &[]));
        assert!(fires("kernel.numa_balancing_scan_delay_ms = 1\n", &[]));
        let old_kernel = [("/proc/sys/kernel/sched_min_granularity_ns", "10000000\n")];
        assert!(!fires("kernel.sched_min_granularity_ns = 10000000\n", &old_kernel));
        assert!(!fires("-kernel.sched_min_granularity_ns = 10000000\n", &[]));
        assert!(!fires("net.netfilter.nf_conntrack_max = 1\n", &[]));
    }
}
