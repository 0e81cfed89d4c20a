//! A value wanted on a knob.

use std::fmt;

use serde::Serialize;
use zenkai_host::{Knob, Value};

use crate::{Want, When, Wish, profile::Origin};

/// A value wanted on a knob.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct Setting {
    /// What is to be turned.
    pub knob: Knob,
    /// The value, as it would be written.
    pub value: String,
}

impl Setting {
    /// A kernel attribute by its path.
    pub fn attribute(path: impl Into<String>, value: impl Into<String>) -> Self {
        Self { knob: Knob::Attribute(path.into()), value: value.into() }
    }

    /// A sysctl by its dotted name.
    pub fn sysctl(name: impl Into<String>, value: impl Into<String>) -> Self {
        Self { knob: Knob::Sysctl(name.into()), value: value.into() }
    }

    /// A kernel command-line argument; an empty value means that the argument is to go.
    pub fn kernel_argument(key: impl Into<String>, value: impl Into<String>) -> Self {
        Self { knob: Knob::KernelArgument(key.into()), value: value.into() }
    }

    /// A system service: `start` or `stop`.
    pub fn service(name: impl Into<String>, value: impl Into<String>) -> Self {
        Self { knob: Knob::Service(name.into()), value: value.into() }
    }
}

impl Setting {
    /// The setting as a wish, for a plan.
    pub fn wish(&self, origin: Origin) -> Wish {
        let (knob, when) = match &self.knob {
            knob @ Knob::KernelArgument(_) => (knob.clone(), When::AfterReboot),
            knob => (knob.clone(), When::Now),
        };
        let to = match (&knob, self.value.as_str()) {
            (Knob::KernelArgument(_), "") => Value::Absent,
            (Knob::Service(_), "start") => "running".into(),
            (Knob::Service(_), "stop") => "stopped".into(),
            (_, text) => text.into(),
        };
        Wish {
            origin,
            unit: String::new(),
            plugin: String::new(),
            option: String::new(),
            device: None,
            asked: self.value.clone(),
            want: Want::Set { knob, to, when },
            risk: None,
        }
    }
}

/// The shell line a person would type.
impl fmt::Display for Setting {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { knob, value } = self;
        match knob {
            Knob::Attribute(path) => write!(out, "echo {value} > {path}"),
            Knob::Sysctl(name) if value.contains(char::is_whitespace) => {
                write!(out, "sysctl -w {name}='{value}'")
            }
            Knob::Sysctl(name) => write!(out, "sysctl -w {name}={value}"),
            Knob::KernelArgument(key) if value.is_empty() => {
                write!(out, "remove `{key}` from the kernel command line and reboot")
            }
            Knob::KernelArgument(key) => {
                write!(out, "add `{key}={value}` to the kernel command line and reboot")
            }
            Knob::Service(name) | Knob::ServiceEnabled(name) => write!(out, "systemctl {value} {name}"),
            other => write!(out, "set {other} to {value}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Setting;

    #[test]
    fn a_setting_reads_as_a_command() {
        assert_eq!(Setting::sysctl("vm.swappiness", "10").to_string(), "sysctl -w vm.swappiness=10");
        assert_eq!(Setting::attribute("/sys/a", "b").to_string(), "echo b > /sys/a");
        assert!(Setting::kernel_argument("idle", "").to_string().starts_with("remove `idle`"));
    }
}
