//! Where something is written.

use std::fmt;

use serde::{Deserialize, Serialize};

/// Where a wish comes from: a line of a file, or a check, or the command line.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Origin {
    /// A line of a profile or another file.
    Line {
        /// The file.
        file: String,
        /// The line, counted from 1.
        line: u32,
    },
    /// The remedy of a check, by the check's id.
    Check(String),
    /// Typed by the user.
    CommandLine,
}

impl fmt::Display for Origin {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Line { file, line } => write!(out, "{file}:{line}"),
            Self::Check(id) => write!(out, "check {id}"),
            Self::CommandLine => out.write_str("command line"),
        }
    }
}
