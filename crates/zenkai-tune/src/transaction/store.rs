//! The state directory. Our own files are the one thing that is written past `TunableHost`, and only here.

use std::{
    cell::Cell,
    collections::HashMap,
    io,
    os::fd::OwnedFd,
    sync::{Arc, Mutex, MutexGuard, PoisonError, mpsc},
    thread,
    time::Duration,
};

use rustix::{
    fs::{AtFlags, Dir, FallocateFlags, FlockOperation, Mode, OFlags},
    io::Errno,
};

use zenkai_host::is_hidden;

use super::{TransactionError, journal::Journal};

/// A journal larger than this is not ours: 10 000 knobs come to about 4 MiB.
const JOURNAL_LIMIT: usize = 64 << 20;

/// The state directory: a lock, and one journal for each transaction, `transactions/0001.jsonl`.
#[derive(Debug)]
pub struct Store {
    path: String,
    dir: OwnedFd,
    journals: OwnedFd,
    /// Whom all of it must belong to: the user we run as.
    owner: u32,
    known: Arc<Mutex<Known>>,
}

/// The transactions: while we hold the lock nobody else adds one, so that one look at each is enough.
#[derive(Debug, Default)]
struct Known {
    locked: bool,
    ids: Option<Vec<u64>>,
    /// Those that have their end: nothing is added to them any more.
    ended: HashMap<u64, Journal>,
}

/// The lock of the state directory. It is let go when dropped, or by the kernel when we die.
#[derive(Debug)]
pub(super) struct Lock {
    _file: OwnedFd,
    known: Arc<Mutex<Known>>,
}

impl Drop for Lock {
    fn drop(&mut self) {
        // The lock itself goes after this, with the file.
        *known(&self.known) = Known::default();
    }
}

/// A journal that is being written.
#[derive(Debug)]
pub(super) struct JournalFile {
    path: String,
    file: OwnedFd,
    /// How many bytes are in it: only we write to it.
    length: Cell<u64>,
}

impl Store {
    /// Where the state directory is unless something else is asked for.
    pub const DEFAULT: &str = "/var/lib/zenkai";

    /// Opens the state directory, making it (but not its parent) when it is missing. It must belong to the user we
    /// run as, be no link, and be writable for nobody else.
    pub fn open(path: &str) -> Result<Self, TransactionError> {
        let owner = rustix::process::geteuid().as_raw();
        let open = |at: Option<&OwnedFd>, name: &str, shown: &str| {
            let at = at.map_or(rustix::fs::CWD, |dir| std::os::fd::AsFd::as_fd(dir));
            let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
            let opened = match rustix::fs::openat(at, name, flags, Mode::empty()) {
                Err(Errno::NOENT) => rustix::fs::mkdirat(at, name, Mode::RWXU)
                    .and_then(|()| rustix::fs::fsync(at).or(Ok(())))
                    .and_then(|()| rustix::fs::openat(at, name, flags, Mode::empty())),
                other => other,
            };
            let dir = opened.map_err(|error| match path.trim_end_matches('/').rsplit_once('/') {
                Some((parent, _)) if error == Errno::NOENT && !parent.is_empty() => {
                    TransactionError::NoParent { path: path.to_owned(), parent: parent.to_owned() }
                }
                _ => TransactionError::state(shown, "open", error),
            })?;
            check_owner(&dir, shown, owner)?;
            Ok(dir)
        };
        let dir = open(None, path, path)?;
        let journals = open(Some(&dir), "transactions", &format!("{path}/transactions"))?;
        Ok(Self { path: path.to_owned(), dir, journals, owner, known: Arc::default() })
    }

    /// Takes the lock, waiting for at most this long.
    pub(super) fn lock(&self, command: &str, wait: Duration) -> Result<Lock, TransactionError> {
        let path = format!("{}/lock", self.path);
        let flags = OFlags::RDWR | OFlags::CREATE | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let file = rustix::fs::openat(&self.dir, "lock", flags, Mode::RUSR | Mode::WUSR)
            .map_err(|error| TransactionError::state(&path, "open", error))?;
        let file = match try_lock(&file) {
            Err(Errno::AGAIN) => {
                let waited = file.try_clone().and_then(|file| wait_for(file, wait));
                match waited.map_err(|error| TransactionError::state(&path, "lock", error))? {
                    Some(file) => file,
                    None => return Err(TransactionError::Locked { path, holder: holder(&file) }),
                }
            }
            result => {
                result.map_err(|error| TransactionError::state(&path, "lock", error))?;
                file
            }
        };
        let holder = format!("process {} ({command})", rustix::process::getpid().as_raw_nonzero());
        // Who holds it is told for people's sake; that it is held does not depend on it, so a full disk is no reason.
        let _ =
            rustix::fs::ftruncate(&file, 0).and_then(|()| rustix::io::pwrite(&file, holder.as_bytes(), 0));
        *known(&self.known) = Known { locked: true, ..Known::default() };
        Ok(Lock { _file: file, known: Arc::clone(&self.known) })
    }

    /// The numbers of all transactions, oldest first.
    pub(super) fn ids(&self) -> Result<Vec<u64>, TransactionError> {
        let mut known = known(&self.known);
        if let Some(ids) = &known.ids {
            return Ok(ids.clone());
        }
        let ids = self.list()?;
        if known.locked {
            known.ids = Some(ids.clone());
        }
        Ok(ids)
    }

    fn list(&self) -> Result<Vec<u64>, TransactionError> {
        let path = format!("{}/transactions", self.path);
        let failed = |error: Errno| TransactionError::state(&path, "list", error);
        let mut ids = Vec::new();
        for entry in Dir::read_from(&self.journals).map_err(failed)? {
            let entry = entry.map_err(failed)?;
            let Ok(name) = entry.file_name().to_str() else { continue };
            if let Some(id) = name.strip_suffix(".jsonl").and_then(|digits| digits.parse().ok())
                && file_name(id) == name
            {
                ids.push(id);
            }
        }
        ids.sort_unstable();
        Ok(ids)
    }

    /// The path of a journal, for messages.
    pub(super) fn journal_path(&self, id: u64) -> String {
        format!("{}/transactions/{}", self.path, file_name(id))
    }

    /// The journal of a transaction; `None` when not even its first record is whole.
    pub(super) fn load(&self, id: u64) -> Result<Option<Journal>, TransactionError> {
        if let Some(journal) = known(&self.known).ended.get(&id) {
            return Ok(Some(journal.clone()));
        }
        let journal = Journal::parse(id, &self.journal_path(id), &self.read(id)?)?;
        let mut known = known(&self.known);
        if let Some(ended) = journal.as_ref().filter(|journal| known.locked && journal.end.is_some()) {
            known.ended.insert(id, ended.clone());
        }
        Ok(journal)
    }

    /// The content of a journal.
    fn read(&self, id: u64) -> Result<Vec<u8>, TransactionError> {
        let path = self.journal_path(id);
        let file = self.open_journal(id, OFlags::RDONLY)?;
        let mut bytes = Vec::new();
        let mut chunk = vec![0_u8; 64 << 10];
        loop {
            match rustix::io::read(&file, &mut chunk) {
                Ok(0) => return Ok(bytes),
                Ok(count) if bytes.len() + count <= JOURNAL_LIMIT => bytes.extend_from_slice(&chunk[..count]),
                Ok(_) => return Err(TransactionError::corrupt(&path, 1, "too large for a journal")),
                Err(Errno::INTR) => {}
                Err(error) => return Err(TransactionError::state(&path, "read", error)),
            }
        }
    }

    /// Writes a new journal whole, with `room` bytes reserved behind it, and makes it last. When that fails nothing
    /// is left of it.
    pub(super) fn create(&self, id: u64, block: &[u8], room: usize) -> Result<JournalFile, TransactionError> {
        let path = self.journal_path(id);
        let flags = OFlags::WRONLY
            | OFlags::CREATE
            | OFlags::EXCL
            | OFlags::APPEND
            | OFlags::NOFOLLOW
            | OFlags::CLOEXEC;
        let file = rustix::fs::openat(&self.journals, file_name(id), flags, Mode::RUSR | Mode::WUSR)
            .map_err(|error| TransactionError::state(&path, "create", error))?;
        let reserve = || match rustix::fs::fallocate(
            &file,
            FallocateFlags::KEEP_SIZE,
            0,
            (block.len() + room).try_into().unwrap_or(u64::MAX),
        ) {
            // A file system that cannot reserve (NFS) will tell when a record does not fit.
            Err(Errno::OPNOTSUPP | Errno::NOSYS) => Ok(()),
            other => other,
        };
        let written = reserve()
            .map_err(io::Error::from)
            .and_then(|()| write_all(&file, block))
            .and_then(|()| Ok(rustix::fs::fsync(&file)?))
            .and_then(|()| Ok(rustix::fs::fsync(&self.journals)?));
        if let Err(error) = written {
            let _ = rustix::fs::unlinkat(&self.journals, file_name(id), AtFlags::empty());
            return Err(TransactionError::state(&path, "write", error));
        }
        if let Some(ids) = &mut known(&self.known).ids {
            ids.push(id);
        }
        let length = Cell::new(block.len().try_into().unwrap_or(u64::MAX));
        Ok(JournalFile { path, file, length })
    }

    /// Opens an unfinished journal to close it, cutting off a record that was not written to its end.
    pub(super) fn reopen(&self, id: u64, length: usize) -> Result<JournalFile, TransactionError> {
        let path = self.journal_path(id);
        let file = self.open_journal(id, OFlags::WRONLY | OFlags::APPEND)?;
        let length = length.try_into().unwrap_or(u64::MAX);
        rustix::fs::ftruncate(&file, length).map_err(|error| TransactionError::state(&path, "cut", error))?;
        Ok(JournalFile { path, file, length: Cell::new(length) })
    }

    /// Removes a journal.
    pub(super) fn remove(&self, id: u64) -> Result<(), TransactionError> {
        rustix::fs::unlinkat(&self.journals, file_name(id), AtFlags::empty())
            .map_err(|error| TransactionError::state(&self.journal_path(id), "remove", error))?;
        let mut known = known(&self.known);
        known.ended.remove(&id);
        if let Some(ids) = &mut known.ids {
            ids.retain(|known| *known != id);
        }
        Ok(())
    }

    fn open_journal(&self, id: u64, flags: OFlags) -> Result<OwnedFd, TransactionError> {
        let path = self.journal_path(id);
        let flags = flags | OFlags::NOFOLLOW | OFlags::CLOEXEC | OFlags::NONBLOCK;
        let file = match rustix::fs::openat(&self.journals, file_name(id), flags, Mode::empty()) {
            Err(Errno::NOENT) => return Err(TransactionError::NoSuch(id)),
            other => other.map_err(|error| TransactionError::state(&path, "open", error))?,
        };
        check_owner(&file, &path, self.owner)?;
        Ok(file)
    }
}

impl JournalFile {
    /// Adds lines, all or none of them. They survive our death at once, and the machine's after
    /// [`JournalFile::sync`].
    pub(super) fn append(&self, lines: &[u8]) -> Result<(), TransactionError> {
        let length = self.length();
        write_all(&self.file, lines).map_err(|error| {
            // Half a line in front of the next record would make the journal unreadable.
            let _ = self.cut(length);
            TransactionError::state(&self.path, "write", error)
        })?;
        self.length.set(length.saturating_add(lines.len().try_into().unwrap_or(u64::MAX)));
        Ok(())
    }

    /// Makes what was added last.
    pub(super) fn sync(&self) -> Result<(), TransactionError> {
        let synced = fault(Fault::Sync).and_then(|()| Ok(rustix::fs::fdatasync(&self.file)?));
        synced.map_err(|error| TransactionError::state(&self.path, "fsync", error))
    }

    /// How many bytes are in it.
    pub(super) fn length(&self) -> u64 {
        self.length.get()
    }

    /// Cuts off what is beyond this many bytes.
    pub(super) fn cut(&self, length: u64) -> Result<(), TransactionError> {
        let cut = fault(Fault::Cut).and_then(|()| Ok(rustix::fs::ftruncate(&self.file, length)?));
        cut.map_err(|error| TransactionError::state(&self.path, "cut", error))?;
        self.length.set(length);
        Ok(())
    }
}

/// A call that tests let fail.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Fault {
    Write,
    Sync,
    Cut,
}

#[cfg(not(test))]
#[expect(clippy::unnecessary_wraps, reason = "it fails in tests")]
fn fault(_: Fault) -> io::Result<()> {
    Ok(())
}

/// What the calls of this thread's tests come to: `ENOSPC` after so many good ones.
#[cfg(test)]
pub(super) fn fault(kind: Fault) -> io::Result<()> {
    FAULTS.with_borrow_mut(|faults| match faults.iter_mut().find(|(this, _)| *this == kind) {
        Some((_, 0)) => Err(Errno::NOSPC.into()),
        Some((_, left)) => {
            *left -= 1;
            Ok(())
        }
        None => Ok(()),
    })
}

#[cfg(test)]
thread_local! {
    pub(super) static FAULTS: std::cell::RefCell<Vec<(Fault, usize)>> = const { std::cell::RefCell::new(Vec::new()) };
}

/// A panic in between leaves the list as it was or forgets it; both are true.
fn known(known: &Mutex<Known>) -> MutexGuard<'_, Known> {
    known.lock().unwrap_or_else(PoisonError::into_inner)
}

fn try_lock(file: &OwnedFd) -> Result<(), Errno> {
    loop {
        match rustix::fs::flock(file, FlockOperation::NonBlockingLockExclusive) {
            Err(Errno::INTR) => {}
            result => return result,
        }
    }
}

/// Waits for the lock that somebody else holds, or gives up with `None`. `flock` knows no time limit, so a thread waits
/// in it; one that was given up lets the lock go as soon as it has it.
fn wait_for(file: OwnedFd, limit: Duration) -> io::Result<Option<OwnedFd>> {
    if limit.is_zero() {
        return Ok(None);
    }
    let (sender, receiver) = mpsc::sync_channel(1);
    let wait = move || {
        let locked = loop {
            match rustix::fs::flock(&file, FlockOperation::LockExclusive) {
                Err(Errno::INTR) => {}
                result => break result,
            }
        };
        // When nobody listens any more the file is closed here, and the lock with it.
        let _ = sender.send(locked.map(|()| file));
    };
    thread::Builder::new().name("lock".to_owned()).spawn(wait)?;
    match receiver.recv_timeout(limit) {
        Ok(locked) => Ok(Some(locked?)),
        Err(_) => Ok(None),
    }
}

/// Who holds the lock, as they wrote it.
fn holder(file: &OwnedFd) -> String {
    let mut bytes = [0_u8; 256];
    let count = rustix::io::pread(file, &mut bytes, 0).unwrap_or(0);
    String::from_utf8_lossy(&bytes[..count]).chars().filter(|letter| !is_hidden(*letter)).collect()
}

fn file_name(id: u64) -> String {
    format!("{id:04}.jsonl")
}

fn check_owner(file: &OwnedFd, path: &str, owner: u32) -> Result<(), TransactionError> {
    let stat = rustix::fs::fstat(file).map_err(|error| TransactionError::state(path, "stat", error))?;
    let insecure = |why| Err(TransactionError::Insecure { path: path.to_owned(), why });
    if stat.st_uid != owner {
        return insecure("belongs to somebody else");
    }
    if stat.st_mode & 0o022 != 0 {
        return insecure("may be written by others");
    }
    Ok(())
}

fn write_all(file: &OwnedFd, mut bytes: &[u8]) -> io::Result<()> {
    while !bytes.is_empty() {
        if let Err(error) = fault(Fault::Write) {
            // A full disk takes the beginning of a line.
            rustix::io::write(file, &bytes[..bytes.len() / 2])?;
            return Err(error);
        }
        match rustix::io::write(file, bytes) {
            Ok(0) => return Err(Errno::IO.into()),
            Ok(count) => bytes = &bytes[count..],
            Err(Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(())
}
