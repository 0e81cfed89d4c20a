//! What a recording is about, kept in it: a few lines, since it may be sent to others.

use zenkai_host::{Host as _, LiveHost};

/// The command and the machine, as names and values; what cannot be read is left out.
pub(super) fn about(command: &[String]) -> Vec<(String, String)> {
    let text = |path: &str| String::from_utf8(LiveHost.read(path).ok()?).ok();
    let line = |path: &str, label: &str| {
        let found = text(path)?.lines().find_map(|line| line.strip_prefix(label).map(str::to_owned))?;
        Some(found.trim_start_matches([' ', '\t', ':']).to_owned())
    };
    let found = [
        ("command", Some(zenkai_report::shell(command)).filter(|_| !command.is_empty())),
        ("CPU", line("/proc/cpuinfo", "model name")),
        ("CPUs online", text("/sys/devices/system/cpu/online")),
        ("memory", line("/proc/meminfo", "MemTotal:")),
        ("kernel", text("/proc/sys/kernel/osrelease")),
    ];
    found.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?.trim().to_owned()))).collect()
}
