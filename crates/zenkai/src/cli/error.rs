//! How a command ends.

use std::{io, io::Write, process::ExitCode};

use zenkai_measure::experiment::StageError;
use zenkai_report::printable_lines;

/// Exit codes, the same for every command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Exit {
    /// Done; for `doctor`: nothing found.
    Fine,
    /// Findings.
    Findings,
    /// The command line or an input file is wrong.
    Usage,
    /// With `--exit-code`: there is something to do.
    Changes,
    /// Nothing found, but parts could not be looked at, mostly for lack of permission.
    PartlyUnreadable,
    /// Something was refused: everything was put back, or with `--keep-going` the good part was kept.
    Refused,
    /// Something could not be put back; the machine needs attention.
    NotRestored,
    /// Not permitted.
    NotPermitted,
    /// The user ended it; as shells tell it.
    Interrupted,
    /// Whatever the user's own command ended with.
    Command(u8),
}

impl Exit {
    /// The number the shell sees.
    pub fn code(self) -> u8 {
        match self {
            Self::Fine => 0,
            Self::Findings => 1,
            Self::Usage | Self::Changes => 2,
            Self::PartlyUnreadable => 3,
            Self::Refused => 4,
            Self::NotRestored => 5,
            Self::NotPermitted => 77,
            Self::Interrupted => 130,
            Self::Command(code) => code,
        }
    }
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        exit.code().into()
    }
}

/// What kind of failure ended a command; it decides the exit code.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// The user asked for something that does not exist, or gave a file that cannot be used.
    Usage,
    /// The system refused.
    NotPermitted,
    /// Something could not be put back.
    NotRestored,
    /// The user ended it, and the machine is as it was.
    Interrupted,
    /// Whoever read our output went away.
    OutputClosed,
}

/// What to do when something could not be put back.
pub(super) const PUT_RIGHT: &str = "put right what stands in the way; the next zenkai command tries again";

/// A failure with what to do about it.
#[derive(Debug)]
pub struct CommandError {
    /// Decides the exit code.
    pub kind: Kind,
    /// What was being done and why it failed.
    pub error: anyhow::Error,
    /// What to try.
    pub hints: Vec<String>,
}

impl CommandError {
    /// A mistake of the user or in an input file.
    pub fn usage(error: impl Into<anyhow::Error>) -> Self {
        Self { kind: Kind::Usage, error: error.into(), hints: Vec::new() }
    }

    fn of(error: anyhow::Error) -> Self {
        let kind = match error.downcast_ref::<io::Error>().map(io::Error::kind) {
            Some(io::ErrorKind::BrokenPipe) => Kind::OutputClosed,
            Some(io::ErrorKind::PermissionDenied) => Kind::NotPermitted,
            _ => Kind::Usage,
        };
        Self { kind, error, hints: Vec::new() }
    }

    /// The system refuses, or would.
    pub fn not_permitted(error: impl Into<anyhow::Error>) -> Self {
        Self { kind: Kind::NotPermitted, error: error.into(), hints: Vec::new() }
    }

    /// The machine is not as it was.
    pub fn not_restored(error: impl Into<anyhow::Error>) -> Self {
        Self { kind: Kind::NotRestored, error: error.into(), hints: vec![PUT_RIGHT.to_owned()] }
    }

    /// Adds something to try.
    #[must_use]
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hints.push(hint.into());
        self
    }

    pub(super) fn report(&self, err: &mut dyn Write) -> Exit {
        if self.kind != Kind::OutputClosed {
            // A message may quote what a program wrote or how a file is called.
            let _ = writeln!(err, "zenkai: {}", printable_lines(&format!("{:#}", self.error)));
            for hint in &self.hints {
                let _ = writeln!(err, "  try: {}", printable_lines(hint));
            }
        }
        match self.kind {
            Kind::Usage => Exit::Usage,
            Kind::NotPermitted => Exit::NotPermitted,
            Kind::NotRestored => Exit::NotRestored,
            Kind::Interrupted => Exit::Interrupted,
            Kind::OutputClosed => Exit::Fine,
        }
    }
}

/// An experiment ended before its first trial.
impl From<StageError> for CommandError {
    fn from(error: StageError) -> Self {
        let kind = if error == StageError::Interrupted { Kind::Interrupted } else { Kind::Usage };
        Self { kind, error: error.into(), hints: Vec::new() }
    }
}

/// An I/O error while writing output, mostly.
impl From<io::Error> for CommandError {
    fn from(error: io::Error) -> Self {
        Self::of(error.into())
    }
}

impl From<serde_json::Error> for CommandError {
    fn from(error: serde_json::Error) -> Self {
        Self::of(error.into())
    }
}

impl From<anyhow::Error> for CommandError {
    fn from(error: anyhow::Error) -> Self {
        Self::of(error)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_program_wrote_does_not_steer_the_terminal() {
        let error = CommandError::usage(anyhow::anyhow!("it said \u{1b}]0;title\u{7}\r\nthen"))
            .hint("--out a\u{1b}b");
        let mut told = Vec::new();
        assert_eq!(error.report(&mut told), Exit::Usage);
        let told = String::from_utf8(told).unwrap();
        assert_eq!(told, "zenkai: it said \\u{1b}]0;title\\u{7}\\r\n  then\n  try: --out a\\u{1b}b\n");
        assert_eq!(
            CommandError::not_restored(anyhow::anyhow!("x")).report(&mut Vec::new()),
            Exit::NotRestored
        );
    }
}
