//! Tracers, events and probes that somebody may have left on (`Documentation/trace/ftrace.rst`).

use serde::Serialize;

use crate::{Observed, Reader, Reason, reader::join};

/// Where tracefs is mounted; old kernels only have the second.
const DIRS: [&str; 2] = ["/sys/kernel/tracing", "/sys/kernel/debug/tracing"];

/// The most event names that are kept.
const NAME_LIMIT: usize = 40;

/// Tracing that is on.
#[derive(Debug, Clone, Serialize)]
pub struct Tracing {
    /// The tracer in force; `nop` when there is none.
    pub current_tracer: Observed<String>,
    /// Whether the ring buffer takes anything.
    pub on: Observed<bool>,
    /// The events that are enabled at the top, at most 40 of them.
    pub events: Observed<Vec<String>>,
    /// How many probes of kernel functions are defined as events.
    pub kprobe_events: Observed<usize>,
    /// How many probes of user programs are defined as events.
    pub uprobe_events: Observed<usize>,
    /// The names of further trace instances.
    pub instances: Observed<Vec<String>>,
    /// Armed probes of kernel functions, whoever made them (`/sys/kernel/debug/kprobes/list`).
    pub kprobes: Observed<Kprobes>,
    /// Whether run time is counted for each BPF program (`kernel.bpf_stats_enabled`).
    pub bpf_statistics: Observed<bool>,
}

/// Armed kernel probes by the way they get control.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Kprobes {
    /// By a breakpoint: each hit is an exception.
    pub by_breakpoint: usize,
    /// By a jump or through ftrace: each hit is about a function call.
    pub by_jump: usize,
    /// Defined but disabled.
    pub disabled: usize,
}

pub(super) fn observe(reader: &Reader<'_>) -> Tracing {
    let (dir, entries) = mount(reader);
    // An empty or missing mount point means that nobody can have left a tracer on through it.
    let away = match entries.outcome() {
        Ok(true) => None,
        Ok(false) | Err(Reason::Absent) => Some(Reason::NotApplicable("tracefs is not mounted".into())),
        Err(other) => Some(other.clone()),
    };
    let path = |name: &str| join(dir, name);
    let events = match &away {
        Some(reason) => Observed::unavailable(path("set_event"), reason.clone()),
        None => events(reader, dir),
    };
    let text = |name: &str| match &away {
        Some(reason) => Observed::unavailable(path(name), reason.clone()),
        None => reader.text(&path(name)),
    };
    Tracing {
        current_tracer: text("current_tracer"),
        on: text("tracing_on").parse(|text| match text.as_str() {
            "0" => Ok(false),
            "1" => Ok(true),
            _ => Err("neither 0 nor 1".to_owned()),
        }),
        events,
        kprobe_events: text("kprobe_events").map(|text| text.lines().count()),
        uprobe_events: text("uprobe_events").map(|text| text.lines().count()),
        instances: match &away {
            Some(reason) => Observed::unavailable(path("instances"), reason.clone()),
            None => reader.names(&path("instances")),
        },
        kprobes: reader.text("/sys/kernel/debug/kprobes/list").map(|text| kprobes(&text)),
        bpf_statistics: reader.flag("/proc/sys/kernel/bpf_stats_enabled"),
    }
}

/// The directory that tracefs is mounted on, and whether there is anything in it.
fn mount(reader: &Reader<'_>) -> (&'static str, Observed<bool>) {
    let [new, old] = DIRS;
    let filled = |dir: &str| reader.entries(dir).map(|entries| !entries.is_empty());
    let first = filled(new);
    if first.is_absent() || first.value() == Some(false) {
        let second = filled(old);
        if !second.is_absent() {
            return (old, second);
        }
    }
    (new, first)
}

/// `events/enable` says `0`, `1` or `X` for some; only then is it worth asking which.
fn events(reader: &Reader<'_>, dir: &str) -> Observed<Vec<String>> {
    let enable = reader.text(&join(dir, "events/enable"));
    if enable.text() == Some("0") {
        return enable.map(|_| Vec::new());
    }
    reader.text(&join(dir, "set_event")).map(|text| {
        text.lines().filter(|line| !line.is_empty()).take(NAME_LIMIT).map(str::to_owned).collect()
    })
}

/// One line a probe: address, kind, symbol, `[DISABLED]`, `[OPTIMIZED]`, `[FTRACE]` (`kernel/kprobes.c`).
fn kprobes(text: &str) -> Kprobes {
    let mut counts = Kprobes::default();
    for line in text.lines().filter(|line| !line.trim().is_empty()) {
        if line.contains("[DISABLED]") || line.contains("[GONE]") {
            counts.disabled += 1;
        } else if line.contains("[OPTIMIZED]") || line.contains("[FTRACE]") {
            counts.by_jump += 1;
        } else {
            counts.by_breakpoint += 1;
        }
    }
    counts
}

#[cfg(test)]
mod tests {
    use zenkai_host::FakeHost;

    use super::*;

    #[test]
    fn not_mounted_is_not_absent() {
        let tracing = observe(&Reader::new(&FakeHost::new(&[])));
        assert!(matches!(tracing.current_tracer.reason(), Some(Reason::NotApplicable(_))));
        let denied = FakeHost::new(&[("/sys/kernel/debug/tracing/current_tracer", "function\n")]);
        assert_eq!(observe(&Reader::new(&denied)).current_tracer.text(), Some("function"));
    }

    #[test]
    fn events_and_probes() {
        let dir = "/sys/kernel/tracing";
        let files = [
            (format!("{dir}/events/enable"), "X\n"),
            (format!("{dir}/set_event"), "sched:sched_switch\nsched:sched_wakeup\n"),
            (format!("{dir}/kprobe_events"), "p:kprobes/p0 do_sys_open\n"),
            (
                "/sys/kernel/debug/kprobes/list".to_owned(),
                "ffffffff1 k do_a+0x0\nffffffff2 k do_b+0x0 [FTRACE]\nffffffff3 r do_c+0x0 [DISABLED]\n",
            ),
        ];
        let files: Vec<(&str, &str)> = files.iter().map(|(path, text)| (path.as_str(), *text)).collect();
        let tracing = observe(&Reader::new(&FakeHost::new(&files)));
        assert_eq!(tracing.events.get().unwrap().len(), 2);
        assert_eq!(tracing.kprobe_events.value(), Some(1));
        assert_eq!(tracing.kprobes.value(), Some(Kprobes { by_breakpoint: 1, by_jump: 1, disabled: 1 }));
    }
}
