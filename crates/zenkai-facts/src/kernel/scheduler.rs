//! Who decides what runs next, and the knobs of it.

use std::collections::BTreeMap;

use serde::Serialize;

use super::CommandLine;
use crate::{CpuSet, Observed, Reader, Reason, reader::join};

/// Where the scheduler's knobs went in 5.13 (`kernel/sched/debug.c`); readable by root only.
const DEBUG_DIR: &str = "/sys/kernel/debug/sched";

/// The files of that directory that hold one short value. The others (`debug`, `domains`) are long.
const DEBUG_KNOBS: [&str; 11] = [
    "base_slice_ns",
    "features",
    "idle_min_granularity_ns",
    "latency_ns",
    "latency_warn_ms",
    "migration_cost_ns",
    "min_granularity_ns",
    "nr_migrate",
    "tunable_scaling",
    "verbose",
    "wakeup_granularity_ns",
];

/// The most knobs taken from one directory; a real kernel has some thirty.
const KNOB_LIMIT: usize = 64;

/// When a task gives way to another inside the kernel.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Preemption {
    /// Only where the kernel chooses to (`PREEMPT_NONE`).
    None,
    /// Also at marked points (`PREEMPT_VOLUNTARY`).
    Voluntary,
    /// Anywhere, but ordinary tasks only at the next tick (`PREEMPT_LAZY`).
    Lazy,
    /// Anywhere (`PREEMPT`).
    Full,
    /// Anywhere, with sleeping locks and threaded interrupts (`PREEMPT_RT`).
    Realtime,
}

impl std::fmt::Display for Preemption {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.write_str(match self {
            Self::None => "none",
            Self::Voluntary => "voluntary",
            Self::Lazy => "lazy",
            Self::Full => "full",
            Self::Realtime => "realtime",
        })
    }
}

/// The scheduler.
#[derive(Debug, Clone, Serialize)]
pub struct Scheduler {
    /// The preemption model in force.
    pub preemption: Observed<Preemption>,
    /// The `kernel.sched_*` sysctls, by their name without `kernel.`.
    pub sysctls: Observed<BTreeMap<String, Observed<String>>>,
    /// The knobs in debugfs (5.13 and later), by file name.
    pub debugfs: Observed<BTreeMap<String, Observed<String>>>,
    /// Whether tasks are grouped by session (`kernel.sched_autogroup_enabled`).
    pub autogroup: Observed<bool>,
    /// Whether timers are moved away from idle CPUs (`kernel.timer_migration`).
    pub timer_migration: Observed<bool>,
    /// Whether a BPF scheduler (sched_ext) is loaded: `enabled` or `disabled`.
    pub ext_state: Observed<String>,
    /// Its name, when one is loaded.
    pub ext_name: Observed<String>,
    /// CPUs without a tick while one task runs (`nohz_full=`).
    pub nohz_full: Observed<CpuSet>,
}

pub(super) fn observe(
    reader: &Reader<'_>,
    version: &Observed<String>,
    command_line: &Observed<CommandLine>,
    config: &Observed<BTreeMap<String, String>>,
) -> Scheduler {
    let kernel_dir = "/proc/sys/kernel";
    Scheduler {
        preemption: preemption(reader, version, command_line, config),
        sysctls: reader.names(kernel_dir).map(|names| {
            let knobs = names.into_iter().filter(|name| name.starts_with("sched_")).take(KNOB_LIMIT);
            knobs.filter_map(|name| value(reader, kernel_dir, name)).collect()
        }),
        debugfs: debugfs(reader),
        autogroup: reader.flag("/proc/sys/kernel/sched_autogroup_enabled"),
        timer_migration: reader.flag("/proc/sys/kernel/timer_migration"),
        ext_state: reader.text("/sys/kernel/sched_ext/state"),
        ext_name: reader.text("/sys/kernel/sched_ext/root/ops"),
        // Reads ` (null)` when there are none (`drivers/base/cpu.c`).
        nohz_full: reader.text("/sys/devices/system/cpu/nohz_full").parse(|text| match text.as_str() {
            "(null)" => Ok(CpuSet::default()),
            list => list.parse(),
        }),
    }
}

fn debugfs(reader: &Reader<'_>) -> Observed<BTreeMap<String, Observed<String>>> {
    reader.names(DEBUG_DIR).map(|names| {
        let knobs = names.into_iter().filter(|name| DEBUG_KNOBS.contains(&name.as_str()));
        knobs.filter_map(|name| value(reader, DEBUG_DIR, name)).collect()
    })
}

/// A knob with its value, unless it is a directory (`sched_domain` of old kernels).
fn value(reader: &Reader<'_>, dir: &str, name: String) -> Option<(String, Observed<String>)> {
    let value = reader.text(&join(dir, &name));
    (value.reason() != Some(&Reason::Failed("EISDIR".into()))).then_some((name, value))
}

/// Four places tell; the first that knows is taken.
fn preemption(
    reader: &Reader<'_>,
    version: &Observed<String>,
    command_line: &Observed<CommandLine>,
    config: &Observed<BTreeMap<String, String>>,
) -> Observed<Preemption> {
    let shown = reader.text(&join(DEBUG_DIR, "preempt")).parse(|text| parenthesised(&text));
    if shown.get().is_some() {
        return shown;
    }
    let flags = version.text().unwrap_or("");
    if flags.split_whitespace().any(|word| word == "PREEMPT_RT") {
        return Observed::known(version.source(), Preemption::Realtime);
    }
    let asked = command_line.get().and_then(|line| line.value("preempt")).and_then(word);
    if let Some(asked) = asked.filter(|_| flags.contains("PREEMPT_DYNAMIC")) {
        return Observed::known(command_line.source(), asked);
    }
    match config.get().and_then(built) {
        Some(model) => Observed::known(config.source(), model),
        // Without debugfs or a configuration only root, or the distribution, can tell.
        None => shown,
    }
}

/// `none voluntary (full) lazy`, where the parentheses mark the choice.
fn parenthesised(text: &str) -> Result<Preemption, String> {
    let marked = |word: &str| word.strip_prefix('(')?.strip_suffix(')').map(str::to_owned);
    text.split_whitespace()
        .find_map(marked)
        .and_then(|choice| word(&choice))
        .ok_or_else(|| format!("`{}`", text.chars().take(40).collect::<String>()))
}

fn word(choice: &str) -> Option<Preemption> {
    match choice {
        "none" => Some(Preemption::None),
        "voluntary" => Some(Preemption::Voluntary),
        "lazy" => Some(Preemption::Lazy),
        "full" => Some(Preemption::Full),
        _ => None,
    }
}

/// The model the kernel was built for, which is also the default of a dynamic one.
fn built(config: &BTreeMap<String, String>) -> Option<Preemption> {
    [
        ("PREEMPT_RT", Preemption::Realtime),
        ("PREEMPT_LAZY", Preemption::Lazy),
        ("PREEMPT_VOLUNTARY", Preemption::Voluntary),
        ("PREEMPT_NONE", Preemption::None),
        ("PREEMPT", Preemption::Full),
    ]
    .into_iter()
    .find(|(name, _)| config.get(*name).is_some_and(|value| value == "y"))
    .map(|(_, model)| model)
}

#[cfg(test)]
mod tests {
    use zenkai_host::FakeHost;

    use super::*;

    fn model(files: &[(&str, &str)]) -> Option<Preemption> {
        let host = FakeHost::new(files);
        super::super::observe(&Reader::new(&host)).scheduler.preemption.value()
    }

    #[test]
    fn the_first_place_that_knows_is_taken() {
        let dynamic = ("/proc/sys/kernel/version", "#1 SMP PREEMPT_DYNAMIC Mon\n");
        let release = ("/proc/sys/kernel/osrelease", "6.1.0\n");
        let config = ("/boot/config-6.1.0", "CONFIG_PREEMPT_VOLUNTARY=y\nCONFIG_PREEMPT_DYNAMIC=y\n");
        assert_eq!(
            model(&[dynamic, ("/sys/kernel/debug/sched/preempt", "none voluntary (full)\n")]),
            Some(Preemption::Full)
        );
        assert_eq!(
            model(&[dynamic, ("/proc/cmdline", "preempt=none\n"), release, config]),
            Some(Preemption::None)
        );
        assert_eq!(model(&[dynamic, release, config]), Some(Preemption::Voluntary));
        assert_eq!(
            model(&[("/proc/sys/kernel/version", "#1 SMP PREEMPT_RT x\n")]),
            Some(Preemption::Realtime)
        );
        assert_eq!(model(&[dynamic]), None);
    }

    #[test]
    fn knobs_are_taken_where_they_are() {
        let host = FakeHost::new(&[
            ("/proc/sys/kernel/sched_latency_ns", "24000000\n"),
            ("/proc/sys/kernel/other", "1\n"),
            ("/sys/kernel/debug/sched/base_slice_ns", "3000000\n"),
            ("/sys/kernel/debug/sched/debug", "long\n"),
            ("/sys/devices/system/cpu/nohz_full", "  (null)\n"),
        ]);
        let scheduler = super::super::observe(&Reader::new(&host)).scheduler;
        assert_eq!(scheduler.sysctls.get().unwrap().len(), 1);
        assert_eq!(scheduler.debugfs.get().unwrap().len(), 1);
        assert!(scheduler.nohz_full.get().unwrap().is_empty());
    }
}
