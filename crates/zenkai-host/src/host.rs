//! The two traits: looking, and changing.

use std::io;

use crate::{Act, Finished, Knob, Query, Reply, Value};

/// Files are read up to this many bytes; a larger one is an error (`EFBIG`), never a truncated value.
/// The largest file zenkai reads, `/proc/interrupts` with 1 024 CPUs and 4 000 lines, comes to about 45 MiB.
pub const FILE_SIZE_LIMIT: usize = 64 << 20;

/// What a directory entry is, as `getdents` tells it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum EntryKind {
    /// A directory.
    Directory,
    /// A symbolic link, not followed.
    Link,
    /// Anything else.
    File,
}

/// One name in a directory.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct DirEntry {
    /// The bare name. Names that are not UTF-8 are skipped by every host: no kernel attribute has one.
    pub name: String,
    /// What kind of entry it is.
    pub kind: EntryKind,
}

/// A read-only view of one machine: the live one, a directory, or a capture.
///
/// Paths are absolute (`/proc/stat`) and are interpreted inside the host's own root. Errors keep their errno:
/// that `speed` of a NIC without carrier reads `EINVAL` is information. A host that simply does not know
/// (a capture that never read the file) answers with [`crate::NotRecorded`], so that "not there" and "not
/// looked at" stay apart.
pub trait Host: Send + Sync {
    /// The whole content of a file, at most [`FILE_SIZE_LIMIT`] bytes.
    fn read(&self, path: &str) -> io::Result<Vec<u8>>;

    /// The entries of a directory, sorted by name, without `.` and `..`.
    fn list(&self, dir: &str) -> io::Result<Vec<DirEntry>>;

    /// The canonical path a link (or a path through links) leads to, inside this host's root.
    fn resolve(&self, path: &str) -> io::Result<String>;

    /// What the machine answers to a question that is no file: an instruction, an ioctl, a system call.
    fn query(&self, query: &Query) -> io::Result<Reply>;
}

/// A machine that can be changed. Only the executor (apply, undo, recover) ever asks for one.
pub trait TunableHost: Host {
    /// Turns the knob: one `write` call for a kernel attribute, as sysfs demands; an atomic replacement that keeps
    /// owner, mode and label for a file; [`Value::Absent`] removes what may be absent.
    fn set(&self, knob: &Knob, value: &Value) -> io::Result<()>;

    /// Does what is no knob: a script, or a program for which the kernel offers no system call.
    fn run(&self, act: &Act) -> io::Result<Finished>;
}

impl<H: Host + ?Sized> Host for Box<H> {
    fn read(&self, path: &str) -> io::Result<Vec<u8>> {
        (**self).read(path)
    }

    fn list(&self, dir: &str) -> io::Result<Vec<DirEntry>> {
        (**self).list(dir)
    }

    fn resolve(&self, path: &str) -> io::Result<String> {
        (**self).resolve(path)
    }

    fn query(&self, query: &Query) -> io::Result<Reply> {
        (**self).query(query)
    }
}
