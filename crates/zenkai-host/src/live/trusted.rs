//! Paths that nobody but root can change.

use std::{io, os::fd::OwnedFd};

use rustix::{
    fs::{FileType, Mode, OFlags, Stat},
    io::Errno,
};

/// Opens the directory at an absolute path, one part after the other and without following a link.
///
/// Every directory on the way must belong to root and be writable by nobody else (an ACL that lets others write shows
/// in the group bits). A directory on the way, though not the last one, may be sticky like `/tmp`: in it nobody can
/// exchange what belongs to root.
pub(super) fn open_dir(path: &str) -> io::Result<OwnedFd> {
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let rest = path.strip_prefix('/').ok_or(Errno::INVAL)?;
    let mut dir = rustix::fs::open("/", flags, Mode::empty())?;
    let mut passed = String::new();
    for part in rest.split('/').filter(|part| !part.is_empty()) {
        if part == "." || part == ".." {
            return Err(Errno::INVAL.into());
        }
        check(&format!("{passed}/"), &rustix::fs::fstat(&dir)?, true)?;
        dir = rustix::fs::openat(&dir, part, flags, Mode::empty())?;
        passed = format!("{passed}/{part}");
    }
    check(&format!("{passed}/"), &rustix::fs::fstat(&dir)?, false)?;
    Ok(dir)
}

/// Refuses what somebody other than root may change.
pub(super) fn check(path: &str, stat: &Stat, sticky_is_enough: bool) -> io::Result<()> {
    let mode = Mode::from_raw_mode(stat.st_mode);
    let writable = mode.intersects(Mode::WGRP | Mode::WOTH);
    let sticky = sticky_is_enough && mode.contains(Mode::SVTX);
    let kind = FileType::from_raw_mode(stat.st_mode);
    if stat.st_uid != 0 {
        return Err(refused(path, "does not belong to root"));
    }
    if writable && !sticky && kind != FileType::Symlink {
        return Err(refused(path, "may be written by others than root"));
    }
    Ok(())
}

/// Whether a file of the live machine, and every directory above it, belongs to root and nobody else may write to it.
/// Links are followed; what counts is where the file really is.
pub fn trusted_file(path: &str) -> io::Result<()> {
    let file = rustix::fs::open(path, OFlags::PATH | OFlags::CLOEXEC, Mode::empty())?;
    let real = super::canonical_path(&file)?;
    open_dir(split(&real)?.0)?;
    check(&real, &rustix::fs::fstat(&file)?, false)
}

/// The directory and the name in it.
pub(super) fn split(path: &str) -> io::Result<(&str, &str)> {
    let (dir, name) = path.rsplit_once('/').ok_or(Errno::INVAL)?;
    if !path.starts_with('/') || name.is_empty() || name == "." || name == ".." {
        return Err(Errno::INVAL.into());
    }
    Ok((if dir.is_empty() { "/" } else { dir }, name))
}

fn refused(path: &str, why: &str) -> io::Error {
    io::Error::new(io::ErrorKind::PermissionDenied, format!("{path} {why}"))
}
