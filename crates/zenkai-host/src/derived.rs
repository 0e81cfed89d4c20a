//! Knobs that are no file, read with the means every host has: so they can be planned on a capture too.

use std::io;

use rustix::io::Errno;

use crate::{EthtoolRequest, Host, Knob, Query, Reply, TaskParameter, Value};

/// Parameters of a network card that can be changed; the others of a request are limits or measurements.
const SETTABLE_LINK_WAKE: &[&str] = &["options"];

/// What the knob shows; `Unsupported` for a knob that cannot be read this way.
pub(crate) fn value(host: &dyn Host, knob: &Knob) -> io::Result<Value> {
    match knob {
        Knob::Ethtool { device, request } => {
            let reply = host.query(&Query::Ethtool { device: device.clone(), request: *request })?;
            ethtool_text(*request, &reply).map(Value::Text).ok_or_else(|| Errno::PROTO.into())
        }
        Knob::Task { tid, start_ticks, parameter } => task(host, *tid, *start_ticks, *parameter),
        Knob::Service(name) => service_state(host, name),
        Knob::ServiceEnabled(name) => service_enabled(host, name),
        _ => Err(Errno::OPNOTSUPP.into()),
    }
}

/// The numbers of the reply that can be set, as `name=number` pairs. A feature is a number when the driver lets it be
/// changed: 1 for on, 0 for off.
pub(crate) fn ethtool_text(request: EthtoolRequest, reply: &Reply) -> Option<String> {
    let Reply::Named(pairs) = reply else { return None };
    let number = |name: &str, number: u64| match request {
        // Available, and not among those that never change.
        EthtoolRequest::Features => (number & 1 == 1 && number & 4 == 0).then_some(number >> 1 & 1),
        EthtoolRequest::WakeOnLan => SETTABLE_LINK_WAKE.contains(&name).then_some(number),
        EthtoolRequest::Rings
        | EthtoolRequest::Channels
        | EthtoolRequest::Coalesce
        | EthtoolRequest::Pause => (!name.ends_with("_max")).then_some(number),
        _ => None,
    };
    let words: Vec<String> =
        pairs.iter().filter_map(|(name, shown)| Some(format!("{name}={}", number(name, *shown)?))).collect();
    Some(words.join(" "))
}

/// The policy from `/proc/TID/stat`, the CPUs from `/proc/TID/status` (Documentation/filesystems/proc.rst). A task that
/// has ended, or whose number now belongs to another, does not exist.
fn task(host: &dyn Host, tid: u32, start_ticks: u64, parameter: TaskParameter) -> io::Result<Value> {
    let stat = text(host, &format!("/proc/{tid}/stat"))?;
    let fields = Stat::parse(&stat).ok_or(Errno::PROTO)?;
    if fields.start_ticks != start_ticks {
        return Err(Errno::NOENT.into());
    }
    match parameter {
        TaskParameter::Policy => {
            // SCHED_OTHER, FIFO, RR, BATCH, IDLE, DEADLINE (include/uapi/linux/sched.h).
            let letter = match fields.policy {
                0 => 'o',
                1 => 'f',
                2 => 'r',
                3 => 'b',
                5 => 'i',
                6 => 'd',
                _ => return Err(Errno::OPNOTSUPP.into()),
            };
            Ok(format!("{letter}:{}", fields.priority).into())
        }
        TaskParameter::Affinity => {
            let status = text(host, &format!("/proc/{tid}/status"))?;
            let list = status.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:"));
            Ok(list.ok_or(Errno::PROTO)?.trim().into())
        }
    }
}

/// What we need of `/proc/TID/stat`.
pub(crate) struct Stat {
    /// Field 22.
    pub(crate) start_ticks: u64,
    /// Field 40: real-time priority.
    pub(crate) priority: u32,
    /// Field 41.
    pub(crate) policy: u32,
}

impl Stat {
    /// The name in field 2 may hold anything, brackets too: the last `)` ends it.
    pub(crate) fn parse(stat: &str) -> Option<Self> {
        let (_, rest) = stat.rsplit_once(')')?;
        let fields: Vec<&str> = rest.split_whitespace().collect();
        // The first of them is field 3.
        let field = |number: usize| fields.get(number - 3);
        Some(Self {
            start_ticks: field(22)?.parse().ok()?,
            priority: field(40)?.parse().ok()?,
            policy: field(41)?.parse().ok()?,
        })
    }
}

/// A unit's file name: `NAME.service` unless it says what kind it is. `None` for a name that is no file name.
pub(crate) fn unit(name: &str) -> Option<String> {
    const KINDS: [&str; 6] = [".service", ".socket", ".timer", ".target", ".mount", ".path"];
    let allowed = |byte: u8| byte.is_ascii_alphanumeric() || b":-_.\\@".contains(&byte);
    if name.is_empty() || name.len() > 255 || name.starts_with(['-', '.']) || !name.bytes().all(allowed) {
        return None;
    }
    let has_kind = KINDS.iter().any(|kind| name.ends_with(kind));
    Some(if has_kind { name.to_owned() } else { format!("{name}.service") })
}

/// Where systemd's own hierarchy may be: unified, hybrid, and version 1.
const HIERARCHIES: [&str; 3] = ["/sys/fs/cgroup", "/sys/fs/cgroup/unified", "/sys/fs/cgroup/systemd"];

/// A service runs when its control group holds processes. A service without processes that systemd calls active (a
/// one-shot with `RemainAfterExit=`) counts as stopped.
fn service_state(host: &dyn Host, name: &str) -> io::Result<Value> {
    let unit = unit(name).ok_or(Errno::INVAL)?;
    systemd_runs(host)?;
    // A template's instances share a slice, in which `-` is escaped.
    let slice = match unit.split_once('@') {
        Some((template, _)) => format!("system.slice/system-{}.slice", template.replace('-', "\\x2d")),
        None => "system.slice".to_owned(),
    };
    for hierarchy in HIERARCHIES {
        let group = format!("{hierarchy}/{slice}/{unit}");
        if let Ok(events) = text(host, &format!("{group}/cgroup.events")) {
            let populated = events.lines().any(|line| line.trim() == "populated 1");
            return Ok(if populated { "running" } else { "stopped" }.into());
        }
        // Version 1 has no such file, and a group of its own for each part of a delegated service.
        if let Ok(processes) = text(host, &format!("{group}/cgroup.procs"))
            && (!processes.trim().is_empty() || has_groups_inside(host, &group))
        {
            return Ok("running".into());
        }
    }
    if unit_file(host, &unit) { Ok("stopped".into()) } else { Err(Errno::NOENT.into()) }
}

fn has_groups_inside(host: &dyn Host, group: &str) -> bool {
    host.list(group)
        .is_ok_and(|entries| entries.iter().any(|entry| entry.kind == crate::EntryKind::Directory))
}

/// Without systemd there is nobody to ask.
fn systemd_runs(host: &dyn Host) -> io::Result<()> {
    // What sd_booted(3) looks at.
    match host.list("/run/systemd/system") {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Err(Errno::OPNOTSUPP.into()),
        other => other.map(|_| ()),
    }
}

const UNIT_DIRS: [&str; 4] =
    ["/etc/systemd/system", "/run/systemd/system", "/usr/lib/systemd/system", "/lib/systemd/system"];

fn unit_file(host: &dyn Host, unit: &str) -> bool {
    let template = unit.split_once('@').and_then(|(name, rest)| Some((name, rest.rsplit_once('.')?.1)));
    let template = template.map(|(name, kind)| format!("{name}@.{kind}"));
    let files = [Some(unit.to_owned()), template];
    files.iter().flatten().any(|file| UNIT_DIRS.iter().any(|dir| host.read(&format!("{dir}/{file}")).is_ok()))
}

/// A unit is enabled when a link in a `.wants` or `.requires` directory of `/etc/systemd/system` bears its name: that
/// is what `systemctl enable` makes.
fn service_enabled(host: &dyn Host, name: &str) -> io::Result<Value> {
    const DIR: &str = "/etc/systemd/system";
    let unit = unit(name).ok_or(Errno::INVAL)?;
    let Ok(entries) = host.list(DIR) else { return Err(Errno::OPNOTSUPP.into()) };
    let pulls =
        |entry: &&crate::DirEntry| matches!(entry.name.rsplit_once('.'), Some((_, "wants" | "requires")));
    let wants = entries.iter().filter(pulls);
    for dir in wants {
        let listed = host.list(&format!("{DIR}/{}", dir.name)).unwrap_or_default();
        if listed.iter().any(|entry| entry.name == unit) {
            return Ok("enabled".into());
        }
    }
    if unit_file(host, &unit) { Ok("disabled".into()) } else { Err(Errno::NOENT.into()) }
}

fn text(host: &dyn Host, path: &str) -> io::Result<String> {
    let bytes = host.read(path).map_err(|error| match Errno::from_io_error(&error) {
        // Reading the file of a task that has just ended.
        Some(Errno::SRCH) => Errno::NOENT.into(),
        _ => error,
    })?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{FakeHost, value};

    fn task_knob(start_ticks: u64, parameter: TaskParameter) -> Knob {
        Knob::Task { tid: 7, start_ticks, parameter }
    }

    #[test]
    fn a_task_is_read_from_proc_and_only_if_it_is_the_same() {
        let stat = "7 (a) b) c) S 1 7 7 0 -1 4194560 0 0 0 0 0 0 0 0 -51 0 1 0 4711 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 1 50 1 0 0 0\n";
        let host = FakeHost::new(&[
            ("/proc/7/stat", stat),
            ("/proc/7/status", "Name:\tx\nCpus_allowed:\tf\nCpus_allowed_list:\t0-3\n"),
        ]);
        assert_eq!(value(&host, &task_knob(4711, TaskParameter::Policy)).unwrap(), "f:50".into());
        assert_eq!(value(&host, &task_knob(4711, TaskParameter::Affinity)).unwrap(), "0-3".into());
        let other = value(&host, &task_knob(4712, TaskParameter::Policy)).unwrap_err();
        assert_eq!(other.kind(), io::ErrorKind::NotFound);
    }

    #[test]
    fn only_what_can_be_set_is_in_the_text() {
        let rings = Reply::Named(vec![("rx".into(), 256), ("rx_max".into(), 4096), ("tx".into(), 512)]);
        assert_eq!(ethtool_text(EthtoolRequest::Rings, &rings).unwrap(), "rx=256 tx=512");
        let features = Reply::Named(vec![("a".into(), 3), ("b".into(), 1), ("c".into(), 2), ("d".into(), 7)]);
        assert_eq!(ethtool_text(EthtoolRequest::Features, &features).unwrap(), "a=1 b=0");
    }

    #[test]
    fn services_are_read_from_control_groups_and_links() {
        let host = FakeHost::new(&[
            ("/run/systemd/system/x", ""),
            ("/sys/fs/cgroup/system.slice/sshd.service/cgroup.events", "populated 1\nfrozen 0\n"),
            ("/usr/lib/systemd/system/irqbalance.service", ""),
            ("/etc/systemd/system/multi-user.target.wants/irqbalance.service", ""),
            ("/usr/lib/systemd/system/ksm.service", ""),
        ]);
        let state = |name: &str| value(&host, &Knob::Service(name.into()));
        let enabled = |name: &str| value(&host, &Knob::ServiceEnabled(name.into()));
        assert_eq!(state("sshd").unwrap(), "running".into());
        assert_eq!(state("irqbalance.service").unwrap(), "stopped".into());
        assert_eq!(state("none").unwrap_err().kind(), io::ErrorKind::NotFound);
        assert!(state("../x").is_err());
        assert_eq!(enabled("irqbalance").unwrap(), "enabled".into());
        assert_eq!(enabled("ksm").unwrap(), "disabled".into());
        let bare = FakeHost::new(&[("/x", "")]);
        assert_eq!(
            value(&bare, &Knob::Service("sshd".into())).unwrap_err().kind(),
            io::ErrorKind::Unsupported
        );
    }
}
