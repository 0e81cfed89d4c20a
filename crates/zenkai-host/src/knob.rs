//! The things on a machine that can be turned.

use std::fmt;

use serde::{Deserialize, Serialize};

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
    /// Whether a system service runs.
    Service(String),
}

impl Knob {
    /// The file behind the knob, when it has one.
    ///
    /// A sysctl name is turned into a path the way sysctl(8) does it: dots separate, and a slash inside a name
    /// (`net.ipv4.conf.eth0/1.forwarding`) stands for a dot in the file name.
    pub fn path(&self) -> Option<String> {
        match self {
            Self::Attribute(path) => Some(path.clone()),
            Self::Sysctl(name) => {
                let tail: String = name
                    .chars()
                    .map(|letter| match letter {
                        '.' => '/',
                        '/' => '.',
                        other => other,
                    })
                    .collect();
                Some(format!("/proc/sys/{tail}"))
            }
            Self::KernelArgument(_) | Self::Service(_) => None,
        }
    }
}

impl fmt::Display for Knob {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Attribute(path) => out.write_str(path),
            Self::Sysctl(name) => out.write_str(name),
            Self::KernelArgument(key) => write!(out, "kernel argument {key}"),
            Self::Service(name) => write!(out, "service {name}"),
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
    }
}
