//! Error numbers by name, so that a capture can be read and written by people.

use std::{error, fmt, io};

use rustix::io::Errno;

/// The host holds no record of what was asked: it was never read on the machine this capture came from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NotRecorded;

impl fmt::Display for NotRecorded {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("not in this capture")
    }
}

impl error::Error for NotRecorded {}

impl NotRecorded {
    /// Wraps itself into the error type of [`crate::Host`].
    pub fn error() -> io::Error {
        io::Error::other(Self)
    }

    /// Whether an error from a host means "not recorded".
    pub fn is(error: &io::Error) -> bool {
        matches!(error.get_ref(), Some(inner) if inner.is::<Self>())
    }
}

const NAMES: &[(Errno, &str)] = &[
    (Errno::PERM, "EPERM"),
    (Errno::NOENT, "ENOENT"),
    (Errno::INTR, "EINTR"),
    (Errno::IO, "EIO"),
    (Errno::NXIO, "ENXIO"),
    (Errno::TOOBIG, "E2BIG"),
    (Errno::BADF, "EBADF"),
    (Errno::AGAIN, "EAGAIN"),
    (Errno::NOMEM, "ENOMEM"),
    (Errno::ACCESS, "EACCES"),
    (Errno::FAULT, "EFAULT"),
    (Errno::BUSY, "EBUSY"),
    (Errno::EXIST, "EEXIST"),
    (Errno::XDEV, "EXDEV"),
    (Errno::NODEV, "ENODEV"),
    (Errno::NOTDIR, "ENOTDIR"),
    (Errno::ISDIR, "EISDIR"),
    (Errno::INVAL, "EINVAL"),
    (Errno::NFILE, "ENFILE"),
    (Errno::MFILE, "EMFILE"),
    (Errno::NOTTY, "ENOTTY"),
    (Errno::FBIG, "EFBIG"),
    (Errno::NOSPC, "ENOSPC"),
    (Errno::ROFS, "EROFS"),
    (Errno::RANGE, "ERANGE"),
    (Errno::NAMETOOLONG, "ENAMETOOLONG"),
    (Errno::NOSYS, "ENOSYS"),
    (Errno::LOOP, "ELOOP"),
    (Errno::NODATA, "ENODATA"),
    (Errno::OVERFLOW, "EOVERFLOW"),
    (Errno::OPNOTSUPP, "EOPNOTSUPP"),
    (Errno::NETDOWN, "ENETDOWN"),
    (Errno::TIMEDOUT, "ETIMEDOUT"),
    (Errno::REMOTEIO, "EREMOTEIO"),
];

/// The symbolic name of an error (`EINVAL`), `errno-N` for a rare one, `not-recorded`, or `EIO` for an error
/// that carries no number at all.
pub fn errno_name(error: &io::Error) -> String {
    if NotRecorded::is(error) {
        return "not-recorded".to_owned();
    }
    let Some(number) = error.raw_os_error() else { return "EIO".to_owned() };
    match NAMES.iter().find(|(errno, _)| errno.raw_os_error() == number) {
        Some((_, name)) => (*name).to_owned(),
        None => format!("errno-{number}"),
    }
}

/// The error a name stands for; `None` when it is no name that [`errno_name`] gives.
pub(crate) fn errno_from_name(name: &str) -> Option<i32> {
    if let Some((errno, _)) = NAMES.iter().find(|(_, known)| *known == name) {
        return Some(errno.raw_os_error());
    }
    let number = name.strip_prefix("errno-")?.parse::<i32>().ok()?;
    (1..4096).contains(&number).then_some(number)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_round_trip() {
        for (errno, name) in NAMES {
            assert_eq!(errno_name(&io::Error::from(*errno)), *name);
            assert_eq!(errno_from_name(name), Some(errno.raw_os_error()));
        }
        assert_eq!(errno_name(&io::Error::from_raw_os_error(131)), "errno-131");
        assert_eq!(errno_from_name("errno-131"), Some(131));
        assert_eq!(errno_from_name("errno--1"), None);
        assert_eq!(errno_name(&NotRecorded::error()), "not-recorded");
    }
}
