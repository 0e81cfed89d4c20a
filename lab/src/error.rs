//! What can go wrong in the laboratory.

use std::path::Path;
use std::time::Duration;

use crate::Tier;

/// An error of the laboratory. A command that fails inside a guest is no error: see [`crate::Outcome::code`].
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LabError {
    /// A part of the laboratory is not built, or was built from older sources.
    #[error("the lab's `{tier}` tier is not built; {how}")]
    Missing {
        /// The tier that is needed.
        tier: Tier,
        /// What to do about it, as a sentence.
        how: String,
    },
    /// There is no such machine.
    #[error("no machine is named {name:?}; there are: {known}")]
    UnknownMachine {
        /// The name asked for.
        name: String,
        /// The names there are, joined by commas.
        known: String,
    },
    /// A file of the laboratory (a machine or an ailment) does not say what it should.
    #[error("{path}: {what}")]
    BadFile {
        /// The file.
        path: String,
        /// What is wrong with it.
        what: String,
    },
    /// The guest did not finish in time, and was ended.
    #[error("machine {machine}: {doing} took longer than {limit:?}; its console ends with:\n{console}")]
    TimedOut {
        /// The machine's name.
        machine: String,
        /// What it was doing.
        doing: &'static str,
        /// The time limit.
        limit: Duration,
        /// The end of the guest's serial console.
        console: String,
    },
    /// The guest's kernel came to a standstill, and the guest was ended.
    #[error("machine {machine}: its kernel came to a standstill: {line}")]
    StoodStill {
        /// The machine's name.
        machine: String,
        /// What the kernel said of it.
        line: String,
    },
    /// The guest ended without handing back a result, or could not be prepared.
    #[error("machine {machine}: {what}; its console ends with:\n{console}")]
    GuestFailed {
        /// The machine's name.
        machine: String,
        /// What happened, with QEMU's own message where there is one.
        what: String,
        /// The end of the guest's serial console.
        console: String,
    },
    /// A build script of the laboratory failed.
    #[error("building the lab's `{tier}` tier failed:\n{log}")]
    BuildFailed {
        /// The tier that was being built.
        tier: Tier,
        /// The end of what the script said.
        log: String,
    },
    /// The host's system refused something.
    #[error("{what}: {source}")]
    Io {
        /// What was being done.
        what: String,
        /// The system's answer.
        source: std::io::Error,
    },
}

/// Turns an I/O error into a [`LabError::Io`] that says what was being done.
pub(crate) trait Doing<T> {
    /// Adds what was being done.
    fn doing(self, what: impl FnOnce() -> String) -> Result<T, LabError>;

    /// Adds what was being done to which file.
    fn with_path(self, verb: &str, path: &Path) -> Result<T, LabError>
    where
        Self: Sized,
    {
        self.doing(|| format!("cannot {verb} {}", path.display()))
    }
}

impl<T> Doing<T> for std::io::Result<T> {
    fn doing(self, what: impl FnOnce() -> String) -> Result<T, LabError> {
        self.map_err(|source| LabError::Io { what: what(), source })
    }
}
