//! What is done to a machine and is no knob.

use std::fmt;

use serde::{Deserialize, Serialize};

/// Something to run. Programs get a clean environment (`PATH=/usr/sbin:/usr/bin:/sbin:/bin`, `LC_ALL=C`, and what is
/// named here), no standard input, and a time limit after which the whole process group is killed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Act {
    /// A profile's script. It is refused unless the file and every directory above it belong to root and nobody else
    /// may write to them, and it is opened without following links.
    Script {
        /// Absolute path of the script.
        path: String,
        /// Arguments after the script's name.
        arguments: Vec<String>,
        /// Variables besides the clean environment.
        environment: Vec<(String, String)>,
    },
    /// A program of the system, found on the fixed `PATH`, for which there is no system call: `systemctl`, `modprobe`.
    Command {
        /// Program name without a slash, and its arguments.
        argv: Vec<String>,
    },
}

impl fmt::Display for Act {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Script { path, arguments, .. } => {
                out.write_str(path)?;
                arguments.iter().try_for_each(|argument| write!(out, " {argument}"))
            }
            Self::Command { argv } => out.write_str(&argv.join(" ")),
        }
    }
}

/// How something that was run ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Finished {
    /// Exit code; 128 + signal when a signal ended it, as shells say it.
    pub code: i32,
    /// What it wrote to both outputs, at most 64 KiB.
    pub output: String,
}
