//! Kernel release, command line and settings.

mod boot;
mod build;
mod command_line;
mod console;
pub(crate) mod pressure;
mod scheduler;
mod taint;
mod tracing;

use std::collections::BTreeMap;

use serde::Serialize;
use zenkai_host::Query;

use crate::{Observed, Reader};

pub use boot::{Boot, BootArgument};
pub use command_line::{Argument, CommandLine};
pub use console::{Console, Levels, Output};
pub use pressure::{Pressure, Stall};
pub use scheduler::{Preemption, Scheduler};
pub use taint::Taint;
pub use tracing::{Kprobes, Tracing};

pub(crate) use command_line::same_key;

/// The sysctls that bear on speed and that no other subsystem reads.
const SYSCTLS: [&str; 24] = [
    "fs.aio-max-nr",
    "fs.aio-nr",
    "fs.file-max",
    "fs.file-nr",
    "fs.inotify.max_user_watches",
    "fs.nr_open",
    "kernel.hung_task_timeout_secs",
    "kernel.io_uring_disabled",
    "kernel.perf_cpu_time_max_percent",
    "kernel.perf_event_max_sample_rate",
    "kernel.perf_event_paranoid",
    "kernel.pid_max",
    "kernel.threads-max",
    "net.core.optmem_max",
    "net.ipv4.tcp_available_congestion_control",
    "net.ipv4.tcp_ecn",
    "net.ipv4.tcp_fin_timeout",
    "net.ipv4.tcp_max_tw_buckets",
    "net.ipv4.tcp_notsent_lowat",
    "net.ipv4.udp_mem",
    "vm.max_map_count",
    "vm.page-cluster",
    "vm.stat_interval",
    "vm.vfs_cache_pressure",
];

/// Kernel release, command line and settings.
#[derive(Debug, Clone, Serialize)]
pub struct Kernel {
    /// The release, as `uname -r` shows it.
    pub release: Observed<String>,
    /// Build number, flags such as `SMP PREEMPT_DYNAMIC`, and date, as `uname -v` shows them.
    pub version: Observed<String>,
    /// The hardware name, as `uname -m` shows it.
    pub machine: Observed<String>,
    /// Whole seconds since boot, to compare counters with (`/proc/uptime`).
    pub uptime_s: Observed<u64>,
    /// The arguments the kernel was started with.
    pub command_line: Observed<CommandLine>,
    /// The arguments it is configured to be started with.
    pub boot: Boot,
    /// The switches of the build that bear on speed, by name without `CONFIG_`; `n` when not set.
    pub config: Observed<BTreeMap<String, String>>,
    /// The clock that time is read from (`Documentation/timers/timekeeping.rst`).
    pub clock_source: ClockSource,
    /// The scheduler.
    pub scheduler: Scheduler,
    /// Watchdogs.
    pub watchdog: Watchdog,
    /// Whether a task that locks across cache lines is slowed down on purpose (`kernel.split_lock_mitigate`).
    pub split_lock_mitigate: Observed<bool>,
    /// Whether only certified cryptography is used (`crypto.fips_enabled`).
    pub fips: Observed<bool>,
    /// Where kernel messages are printed, and which.
    pub console: Output,
    /// Tracers, events and probes.
    pub tracing: Tracing,
    /// What the kernel holds against itself.
    pub taints: Observed<Vec<Taint>>,
    /// How much of the time work waited for a resource.
    pub pressure: Pressures,
    /// Tasks that run or wait.
    pub load: Observed<Load>,
    /// Further sysctls, by dotted name.
    pub sysctls: BTreeMap<String, Observed<String>>,
}

/// The clock that time is read from.
#[derive(Debug, Clone, Serialize)]
pub struct ClockSource {
    /// The one in use.
    pub current: Observed<String>,
    /// Those that can be chosen; a TSC that the kernel found unstable is not among them.
    pub available: Observed<Vec<String>>,
}

/// Watchdogs (`Documentation/admin-guide/lockup-watchdogs.rst`).
#[derive(Debug, Clone, Serialize)]
pub struct Watchdog {
    /// Whether hard lockups are looked for with a performance counter and an NMI.
    pub nmi: Observed<bool>,
    /// Whether soft lockups are looked for.
    pub soft: Observed<bool>,
    /// After how many seconds a lockup is reported; 0 means never.
    pub threshold_s: Observed<u64>,
}

/// How much of the time work waited for a resource.
#[derive(Debug, Clone, Serialize)]
pub struct Pressures {
    /// For a CPU.
    pub cpu: Observed<Pressure>,
    /// For memory: reclaim, swapping in, refaults.
    pub memory: Observed<Pressure>,
    /// For input and output.
    pub io: Observed<Pressure>,
}

/// `/proc/loadavg`: tasks that run, wait for a CPU, or sleep uninterruptibly.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Load {
    /// Average over one minute.
    pub one_minute: f64,
    /// Average over five minutes.
    pub five_minutes: f64,
    /// Average over fifteen minutes.
    pub fifteen_minutes: f64,
    /// Tasks that run or wait for a CPU now.
    pub running: u64,
    /// Tasks that exist.
    pub tasks: u64,
}

impl Kernel {
    /// Major and minor number of the release. Distributions carry newer code back, so that this says what a
    /// release has at least.
    pub fn release_number(&self) -> Option<(u32, u32)> {
        let mut parts = self.release.text()?.split(|letter: char| !letter.is_ascii_digit());
        Some((parts.next()?.parse().ok()?, parts.next()?.parse().ok()?))
    }

    /// The value of an argument the kernel was started with, the last of several; empty for a bare word.
    pub fn argument(&self, key: &str) -> Option<&str> {
        self.command_line.get()?.argument(key).map(Option::unwrap_or_default)
    }

    /// Whether the build has a switch on; nothing when that is not known.
    pub fn built_with(&self, name: &str) -> Option<bool> {
        Some(self.config.get()?.get(name).is_some_and(|value| value == "y"))
    }
}

/// Reads this subsystem.
pub fn observe(reader: &Reader<'_>) -> Kernel {
    let release = reader.text("/proc/sys/kernel/osrelease");
    let version = reader.text("/proc/sys/kernel/version");
    let command_line = reader.text("/proc/cmdline").map(|text| CommandLine::parse(&text));
    let config = build::observe(reader, &release);
    let clock_dir = "/sys/devices/system/clocksource/clocksource0";
    Kernel {
        machine: reader.query(&Query::Machine, |reply| reply.text().map(str::to_owned)),
        uptime_s: reader.text("/proc/uptime").parse(|text| uptime_s(&text)),
        boot: boot::observe(reader, &release),
        clock_source: ClockSource {
            current: reader.text(&format!("{clock_dir}/current_clocksource")),
            available: reader.words(&format!("{clock_dir}/available_clocksource")),
        },
        scheduler: scheduler::observe(reader, &version, &command_line, &config),
        watchdog: Watchdog {
            nmi: reader.flag("/proc/sys/kernel/nmi_watchdog"),
            soft: reader.flag("/proc/sys/kernel/soft_watchdog"),
            threshold_s: reader.number("/proc/sys/kernel/watchdog_thresh"),
        },
        split_lock_mitigate: reader.flag("/proc/sys/kernel/split_lock_mitigate"),
        fips: reader.flag("/proc/sys/crypto/fips_enabled"),
        console: console::observe(reader, &command_line),
        tracing: tracing::observe(reader),
        taints: reader.number("/proc/sys/kernel/tainted").map(taint::decode),
        pressure: Pressures {
            cpu: pressure::read(reader, "/proc/pressure/cpu"),
            memory: pressure::read(reader, "/proc/pressure/memory"),
            io: pressure::read(reader, "/proc/pressure/io"),
        },
        load: reader.text("/proc/loadavg").parse(|text| load(&text).ok_or_else(|| "no load".to_owned())),
        sysctls: SYSCTLS
            .iter()
            .map(|name| ((*name).to_owned(), reader.text(&format!("/proc/sys/{}", name.replace('.', "/")))))
            .collect(),
        release,
        version,
        command_line,
        config,
    }
}

/// `12345.67 54321.00`: up, idle.
fn uptime_s(text: &str) -> Result<u64, String> {
    let seconds = text.split(['.', ' ']).next().and_then(|whole| whole.parse().ok());
    seconds.ok_or_else(|| "no seconds".to_owned())
}

/// `0.20 0.18 0.12 1/80 11206`
fn load(text: &str) -> Option<Load> {
    let mut words = text.split_whitespace();
    let mut average = || words.next()?.parse::<f64>().ok().filter(|value| value.is_finite());
    let (one_minute, five_minutes, fifteen_minutes) = (average()?, average()?, average()?);
    let (running, tasks) = words.next()?.split_once('/')?;
    Some(Load {
        one_minute,
        five_minutes,
        fifteen_minutes,
        running: running.parse().ok()?,
        tasks: tasks.parse().ok()?,
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use zenkai_host::FakeHost;

    use super::*;

    #[test]
    fn release_and_load() {
        let host = FakeHost::new(&[
            ("/proc/sys/kernel/osrelease", "5.14.0-503.el9.x86_64\n"),
            ("/proc/loadavg", "7.77 3.83 1.82 5/105 30190\n"),
            ("/proc/sys/kernel/tainted", "4096\n"),
            ("/proc/uptime", "12345.67 54321.00\n"),
            ("/proc/cmdline", "ro nosmt idle=poll \"x=a b\"\n"),
        ]);
        let kernel = observe(&Reader::new(&host));
        assert_eq!(kernel.release_number(), Some((5, 14)));
        assert_eq!(kernel.load.value().unwrap().tasks, 105);
        assert_eq!(kernel.taints.get().unwrap()[0].letter, 'O');
        assert_eq!(kernel.uptime_s.value(), Some(12345));
        assert!(uptime_s("").is_err());
        assert_eq!((kernel.argument("nosmt"), kernel.argument("idle")), (Some(""), Some("poll")));
        assert_eq!(kernel.argument("isolcpus"), None);
        assert_eq!(kernel.built_with("KASAN"), None);
        assert!(kernel.sysctls["vm.max_map_count"].is_absent());
        assert!(SYSCTLS.is_sorted());
    }

    proptest! {
        #[test]
        fn load_never_panics(text in "[0-9./ nainf-]{0,40}") {
            let _ = load(&text);
        }
    }
}
