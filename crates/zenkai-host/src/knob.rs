//! The things on a machine that can be turned.

use std::{fmt, io};

use rustix::io::Errno;
use serde::{Deserialize, Serialize};

use crate::{EthtoolRequest, Host, NotRecorded, Query, Reply, derived};

/// One thing that can be set, named so that it can be found again after a crash from the journal alone.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Knob {
    /// A kernel attribute: one file in sysfs, procfs, debugfs or a cgroup, written whole.
    Attribute(String),
    /// A sysctl by its dotted name, such as `vm.swappiness`.
    Sysctl(String),
    /// A kernel command-line argument by its key; it acts after the next boot.
    KernelArgument(String),
    /// Whether a system service runs: `running` or `stopped`.
    Service(String),
    /// Whether a system service starts with the machine: `enabled` or `disabled`.
    ServiceEnabled(String),
    /// A whole text file outside the kernel's own file systems, by its path. It may be absent.
    File(String),
    /// A group of a network device's parameters, read and written by one ioctl. The value is `name=number` pairs
    /// separated by blanks, in the order and with the names that the request gives.
    Ethtool {
        /// Interface name.
        device: String,
        /// Which parameters.
        request: EthtoolRequest,
    },
    /// Write barriers of a mounted file system, by its mount point: `on` or `off`.
    Barriers(String),
    /// A disk's power management, by device name (`sda`).
    Disk {
        /// Device name.
        device: String,
        /// What of it.
        parameter: DiskParameter,
    },
    /// What the scheduler knows of a task. The task's start time, in clock ticks after boot, keeps a number that was
    /// given to another task since from being taken for this one.
    Task {
        /// Thread id.
        tid: u32,
        /// Field 22 of `/proc/TID/stat`.
        start_ticks: u64,
        /// What of it.
        parameter: TaskParameter,
    },
    /// Whether a kernel module is loaded, and with which parameters: `absent`, or `loaded`.
    Module(String),
    /// A directory in a control group hierarchy: `present`, or absent.
    Directory(String),
    /// A value that only the Xen hypervisor has, by the name the `xen` plugin gives it.
    Xen(String),
}

/// A disk's own power management (ATA commands).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum DiskParameter {
    /// Advanced power management level, 1 to 254, or 255 for off (`hdparm -B`).
    Apm,
    /// Standby timer in the ATA encoding, 0 to 255 (`hdparm -S`). It cannot be read back.
    Spindown,
}

/// What the scheduler knows of a task.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum TaskParameter {
    /// Policy and priority: `f:50`, `r:1`, `b:0`, `o:0`, `i:0` (fifo, rr, batch, other, idle).
    Policy,
    /// The CPUs it may run on, as a kernel list.
    Affinity,
}

/// What a knob shows, or is to show.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Value {
    /// Text without a trailing newline; for an attribute that shows choices in brackets, the chosen one.
    Text(String),
    /// There is none: the file does not exist, the kernel argument is not given.
    Absent,
}

impl Value {
    /// The text, unless absent.
    pub fn text(&self) -> Option<&str> {
        match self {
            Self::Text(text) => Some(text),
            Self::Absent => None,
        }
    }
}

impl From<&str> for Value {
    fn from(text: &str) -> Self {
        Self::Text(text.to_owned())
    }
}

impl From<String> for Value {
    fn from(text: String) -> Self {
        Self::Text(text)
    }
}

impl fmt::Display for Value {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(self.text().unwrap_or("(none)"))
    }
}

/// What a knob shows on this machine now. It works on every host: files by reading, the rest by [`Query::Knob`].
///
/// Errors keep their errno. A [`Knob::File`] that does not exist is [`Value::Absent`]; a kernel attribute that does not
/// exist is an error, since writing cannot create it.
pub fn value(host: &dyn Host, knob: &Knob) -> io::Result<Value> {
    let Some(path) = knob.path() else {
        // A name that is none.
        if matches!(knob, Knob::Sysctl(_)) {
            return Err(Errno::INVAL.into());
        }
        return match host.query(&Query::Knob(knob.clone())) {
            Ok(Reply::Text(text)) => Ok(Value::Text(text)),
            Ok(_) => Err(Errno::PROTO.into()),
            // A capture or a world of text that was not asked for the knob may still have what it is read from.
            Err(error) if knob.is_derived() && (NotRecorded::is(&error) || is_absent(&error)) => {
                derived::value(host, knob)
            }
            Err(error) if is_absent(&error) && knob.may_be_absent() => Ok(Value::Absent),
            Err(error) => Err(error),
        };
    };
    let bytes = match host.read(&path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound && knob.may_be_absent() => {
            return Ok(Value::Absent);
        }
        result => result?,
    };
    let text = String::from_utf8(bytes).map_err(|_| Errno::ILSEQ)?;
    if matches!(knob, Knob::File(_)) {
        return Ok(Value::Text(text));
    }
    let text = text.strip_suffix('\n').unwrap_or(&text);
    Ok(chosen(text).unwrap_or(text).into())
}

fn is_absent(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::NotFound
}

/// The choice in brackets, when the text is a list of choices with exactly one marked.
fn chosen(text: &str) -> Option<&str> {
    let mut marked = text.split_whitespace().filter_map(|word| word.strip_prefix('[')?.strip_suffix(']'));
    let choice = marked.next()?;
    marked.next().is_none().then_some(choice)
}

impl Knob {
    /// The file behind the knob, when it has one.
    ///
    /// A sysctl name is turned into a path the way sysctl(8) does it: dots separate, and a slash inside a name
    /// (`net.ipv4.conf.eth0/1.forwarding`) stands for a dot in the file name.
    pub fn path(&self) -> Option<String> {
        match self {
            Self::Attribute(path) | Self::File(path) => Some(path.clone()),
            Self::Sysctl(name) => {
                let tail: String = name
                    .chars()
                    .map(|letter| match letter {
                        '.' => '/',
                        '/' => '.',
                        other => other,
                    })
                    .collect();
                // `//` in a name would become `..` in the path.
                let is_plain = tail.split('/').all(|part| !matches!(part, "" | "." | ".."));
                is_plain.then(|| format!("/proc/sys/{tail}"))
            }
            _ => None,
        }
    }

    /// Whether not being there is one of the knob's values.
    pub fn may_be_absent(&self) -> bool {
        matches!(self, Self::File(_) | Self::KernelArgument(_) | Self::Directory(_))
    }

    /// Whether it is read with the means that every host has, see [`derived`].
    fn is_derived(&self) -> bool {
        matches!(self, Self::Ethtool { .. } | Self::Task { .. } | Self::Service(_) | Self::ServiceEnabled(_))
    }

    /// Whether its value outlives the kernel: it is kept in a file, and a reboot does not undo it.
    pub fn is_persistent(&self) -> bool {
        matches!(self, Self::File(_) | Self::KernelArgument(_) | Self::ServiceEnabled(_))
    }
}

impl fmt::Display for Knob {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Attribute(path) => out.write_str(path),
            Self::Sysctl(name) => out.write_str(name),
            Self::KernelArgument(key) => write!(out, "kernel argument {key}"),
            Self::Service(name) => write!(out, "service {name}"),
            Self::ServiceEnabled(name) => write!(out, "service {name} at boot"),
            Self::File(path) => write!(out, "file {path}"),
            Self::Ethtool { device, request } => write!(out, "{device} {}", request.name()),
            Self::Barriers(path) => write!(out, "barriers of {path}"),
            Self::Disk { device, parameter } => write!(out, "{device} {parameter:?}"),
            Self::Task { tid, parameter, .. } => write!(out, "task {tid} {parameter:?}"),
            Self::Module(name) => write!(out, "module {name}"),
            Self::Directory(path) => write!(out, "directory {path}"),
            Self::Xen(name) => write!(out, "xen {name}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Knob;

    #[test]
    fn sysctl_names_become_paths() {
        assert_eq!(Knob::Sysctl("vm.swappiness".into()).path().unwrap(), "/proc/sys/vm/swappiness");
        let vlan = Knob::Sysctl("net.ipv4.conf.eth0/1.forwarding".into());
        assert_eq!(vlan.path().unwrap(), "/proc/sys/net/ipv4/conf/eth0.1/forwarding");
        for name in ["", "vm..swappiness", "vm.//.//.//.etc.passwd", "a."] {
            assert_eq!(Knob::Sysctl(name.into()).path(), None, "{name}");
        }
    }
}
