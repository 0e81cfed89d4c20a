//! Why a transaction was refused. Each of these comes before the first write to the machine.

use std::io;

use zenkai_host::errno_name;

/// Why nothing was done.
#[derive(Debug, thiserror::Error)]
pub enum TransactionError {
    /// A file of the state directory could not be read or written.
    #[error("{path}: {doing}: {}", errno_name(.source))]
    State {
        /// The file or directory.
        path: String,
        /// What was tried.
        doing: &'static str,
        /// Why it failed.
        source: io::Error,
    },
    /// The folder that the state directory belongs in is missing, as in a minimal root.
    #[error(
        "{path} cannot be made, and nothing is changed without it: {parent} does not exist; `mkdir -p {parent}`"
    )]
    NoParent {
        /// The state directory.
        path: String,
        /// The missing folder.
        parent: String,
    },
    /// Others could have written what we would obey.
    #[error("{path}: {why}; make it belong to root alone, or remove it")]
    Insecure {
        /// The file or directory.
        path: String,
        /// What is wrong with it.
        why: &'static str,
    },
    /// Another zenkai is changing the machine.
    #[error("{path} is held by {holder}; try again when it has finished")]
    Locked {
        /// The lock file.
        path: String,
        /// Process id and command of the holder, as it wrote them.
        holder: String,
    },
    /// A journal makes no sense, so nothing is done from it.
    #[error("{path}:{line}: {why}; nothing was changed. Move the file away once you know what it was")]
    Corrupt {
        /// The journal.
        path: String,
        /// The line, counted from 1.
        line: usize,
        /// What is wrong with it.
        why: String,
    },
    /// Without it nobody can tell later which boot a change was made in.
    #[error("/proc/sys/kernel/random/boot_id cannot be read, so nothing is changed; mount /proc")]
    NoBootId,
    /// The profile itself is wrong.
    #[error("nothing was changed, because the profile has mistakes:\n  {}", .0.join("\n  "))]
    Mistakes(Vec<String>),
    /// There is no transaction of this number.
    #[error("transaction {0} does not exist; `zenkai log` lists them")]
    NoSuch(u64),
    /// There is no transaction left to undo.
    #[error("there is nothing to undo")]
    NothingToUndo,
    /// It cannot be undone.
    #[error("transaction {id} cannot be undone: {why}")]
    NotUndoable {
        /// Which.
        id: u64,
        /// Why.
        why: &'static str,
    },
}

impl TransactionError {
    pub(super) fn state(path: &str, doing: &'static str, source: impl Into<io::Error>) -> Self {
        Self::State { path: path.to_owned(), doing, source: source.into() }
    }

    pub(super) fn corrupt(path: &str, line: usize, why: impl ToString) -> Self {
        Self::Corrupt { path: path.to_owned(), line, why: why.to_string() }
    }
}
