//! Text files and directories as knobs.

use std::{
    io,
    os::fd::{AsFd, OwnedFd},
};

use rustix::{
    fs::{AtFlags, FileType, Mode, OFlags, Stat, XattrFlags},
    io::Errno,
};

use super::{canonical_path, trusted};
use crate::{Reply, Value};

/// SELinux keeps a file's label here; without it services may no longer read the file.
const LABEL: &str = "security.selinux";
/// Labels are a few words; the kernel allows a page.
const LABEL_SIZE: usize = 4096;
/// Stands on a directory that was made for a file of ours, so that it goes with the last file in it. Only root sees
/// and sets attributes of this class (xattr(7)).
const MADE: &str = "trusted.zenkai-made";

/// Replaces, creates or removes a text file, so that at any moment either the old or the new one is there whole.
///
/// A link at the end is followed, but only along directories that root alone may change. An old file's owner, mode and
/// label are kept; a new file gets mode 0644. A missing directory is made (0755) only where that is the custom:
/// `/etc/tuned`, `/usr/lib/tuned` and drop-in directories, whose names end in `.d`. A directory made so goes when the
/// last file in it is taken away; on a file system that cannot mark it as ours it stays.
pub(super) fn set(path: &str, value: &Value) -> io::Result<()> {
    let kernels_own = ["/proc/", "/sys/", "/dev/"].iter().any(|place| path.starts_with(place));
    if kernels_own || path.split('/').any(|part| part == "..") {
        return Err(Errno::INVAL.into());
    }
    let target = target(path)?;
    let (parent, name) = trusted::split(&target)?;
    let dir = open_parent(parent, value)?;
    let old = match rustix::fs::statat(&dir, name, AtFlags::SYMLINK_NOFOLLOW) {
        Err(Errno::NOENT) => None,
        stat => Some(stat?),
    };
    if old.is_some_and(|stat| FileType::from_raw_mode(stat.st_mode) != FileType::RegularFile) {
        return Err(Errno::INVAL.into());
    }
    match value.text() {
        Some(text) => replace(&dir, name, text, old.as_ref())?,
        None if old.is_none() => return Ok(()),
        None => {
            rustix::fs::unlinkat(&dir, name, AtFlags::empty())?;
            if is_made_by_us(&dir) {
                remove_empty(parent)?;
            }
        }
    }
    Ok(rustix::fs::fsync(&dir)?)
}

fn is_made_by_us(dir: &OwnedFd) -> bool {
    rustix::fs::fgetxattr(dir, MADE, &mut [0_u8; 1][..]).is_ok()
}

/// Removes the directory, unless somebody has put something into it.
fn remove_empty(path: &str) -> io::Result<()> {
    match rustix::fs::rmdir(path) {
        Err(Errno::NOTEMPTY | Errno::EXIST | Errno::BUSY | Errno::NOENT) => Ok(()),
        result => Ok(result?),
    }
}

/// Where the file really is.
fn target(path: &str) -> io::Result<String> {
    let flags = OFlags::PATH | OFlags::CLOEXEC;
    match rustix::fs::open(path, flags, Mode::empty()) {
        Ok(file) => {
            let target = canonical_path(&file)?;
            if target != path {
                trusted::open_dir(trusted::split(&target)?.0)?;
            }
            Ok(target)
        }
        // A link that leads nowhere opens as itself only with O_NOFOLLOW.
        Err(Errno::NOENT) => match rustix::fs::open(path, flags | OFlags::NOFOLLOW, Mode::empty()) {
            Ok(_) => Err(io::Error::other(format!("{path} is a link that leads nowhere"))),
            Err(Errno::NOENT) => Ok(path.to_owned()),
            Err(error) => Err(error.into()),
        },
        Err(error) => Err(error.into()),
    }
}

fn open_parent(parent: &str, value: &Value) -> io::Result<OwnedFd> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let custom = ["/etc/tuned", "/usr/lib/tuned"].contains(&parent) || parent.as_bytes().ends_with(b".d");
    match rustix::fs::open(parent, flags, Mode::empty()) {
        Err(Errno::NOENT) if custom && value.text().is_some() => {
            rustix::fs::mkdir(parent, Mode::from_raw_mode(0o755))?;
            let dir = rustix::fs::open(parent, flags, Mode::empty())?;
            // Without the mark the directory stays in the end, which harms nobody.
            let _ = rustix::fs::fsetxattr(&dir, MADE, b"1", XattrFlags::empty());
            Ok(dir)
        }
        result => Ok(result?),
    }
}

fn replace(dir: &OwnedFd, name: &str, text: &str, old: Option<&Stat>) -> io::Result<()> {
    // Programs that read whole directories skip hidden files and such an ending.
    let temporary = format!(".{name}.zenkai-new");
    // What a crash left behind. We hold the journal's lock, so that nobody else is writing it now.
    match rustix::fs::unlinkat(dir, temporary.as_str(), AtFlags::empty()) {
        Err(Errno::NOENT) => {}
        result => result?,
    }
    let written = write_new(dir, &temporary, name, text, old)
        .and_then(|()| Ok(rustix::fs::renameat(dir, temporary.as_str(), dir, name)?));
    if written.is_err() {
        // The first error is the one worth telling.
        let _ = rustix::fs::unlinkat(dir, temporary.as_str(), AtFlags::empty());
    }
    written
}

fn write_new(dir: &OwnedFd, temporary: &str, name: &str, text: &str, old: Option<&Stat>) -> io::Result<()> {
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let file = rustix::fs::openat(dir, temporary, flags, Mode::RUSR | Mode::WUSR)?;
    write_all(&file, text.as_bytes())?;
    let now = rustix::fs::fstat(&file)?;
    if let Some(old) = old
        && (now.st_uid, now.st_gid) != (old.st_uid, old.st_gid)
    {
        let (uid, gid) = (rustix::fs::Uid::from_raw(old.st_uid), rustix::fs::Gid::from_raw(old.st_gid));
        rustix::fs::fchown(&file, Some(uid), Some(gid))?;
    }
    let mode = old.map_or(Mode::from_raw_mode(0o644), |old| Mode::from_raw_mode(old.st_mode));
    // The EFI system partition is FAT, where the mount decides the mode of all files and refuses another.
    if Mode::from_raw_mode(now.st_mode) != mode {
        match rustix::fs::fchmod(&file, mode) {
            Err(Errno::PERM) if old.is_none() => {}
            result => result?,
        }
    }
    if old.is_some() {
        copy_label(dir, name, &file)?;
    }
    Ok(rustix::fs::fsync(&file)?)
}

/// Writes everything, however many calls that takes.
pub(super) fn write_all(file: &OwnedFd, mut bytes: &[u8]) -> io::Result<()> {
    while !bytes.is_empty() {
        match rustix::io::write(file, bytes) {
            Err(Errno::INTR) => {}
            Ok(0) => return Err(Errno::IO.into()),
            count => bytes = &bytes[count?..],
        }
    }
    Ok(())
}

fn copy_label(dir: &OwnedFd, name: &str, to: &OwnedFd) -> io::Result<()> {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let from = rustix::fs::openat(dir, name, flags, Mode::empty())?;
    let mut label = vec![0_u8; LABEL_SIZE];
    let size = match rustix::fs::fgetxattr(from.as_fd(), LABEL, &mut label[..]) {
        Err(Errno::NODATA | Errno::OPNOTSUPP) => return Ok(()),
        size => size?,
    };
    Ok(rustix::fs::fsetxattr(to, LABEL, &label[..size], XattrFlags::empty())?)
}

/// Whether a directory is there.
pub(super) fn directory(path: &str) -> io::Result<Reply> {
    rustix::fs::open(path, OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())?;
    Ok(Reply::Text("present".into()))
}

/// Makes a directory, or removes an empty one: in a control group hierarchy that is how a group is made and removed.
pub(super) fn set_directory(path: &str, value: &Value) -> io::Result<()> {
    if !path.starts_with('/') || path.split('/').any(|part| part == "..") {
        return Err(Errno::INVAL.into());
    }
    match value.text() {
        Some("present") => match rustix::fs::mkdir(path, Mode::from_raw_mode(0o755)) {
            Err(Errno::EXIST) => directory(path).map(drop),
            result => Ok(result?),
        },
        Some(_) => Err(Errno::INVAL.into()),
        None => match rustix::fs::rmdir(path) {
            Err(Errno::NOENT) => Ok(()),
            result => Ok(result?),
        },
    }
}

#[cfg(test)]
#[expect(clippy::disallowed_methods, reason = "the tests look at what was written")]
mod tests {
    use std::{fs, os::unix::fs::PermissionsExt};

    use super::*;

    fn mode(path: &str) -> u32 {
        fs::metadata(path).unwrap().permissions().mode() & 0o7777
    }

    #[test]
    fn a_file_is_replaced_whole_and_removed() {
        let dir = tempfile::tempdir().unwrap();
        let path = format!("{}/a.conf", dir.path().to_str().unwrap());
        set(&path, &"one\n".into()).unwrap();
        assert_eq!((fs::read_to_string(&path).unwrap().as_str(), mode(&path)), ("one\n", 0o644));
        fs::set_permissions(&path, fs::Permissions::from_mode(0o640)).unwrap();
        fs::write(dir.path().join(".a.conf.zenkai-new"), "left by a crash").unwrap();
        set(&path, &"two\n".into()).unwrap();
        assert_eq!((fs::read_to_string(&path).unwrap().as_str(), mode(&path)), ("two\n", 0o640));
        set(&path, &Value::Absent).unwrap();
        set(&path, &Value::Absent).unwrap();
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 0);
    }

    #[test]
    fn directories_are_made_only_where_that_is_the_custom() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().to_str().unwrap();
        set(&format!("{root}/x.d/a.conf"), &"1\n".into()).unwrap();
        assert_eq!(mode(&format!("{root}/x.d")), 0o755);
        set(&format!("{root}/x.d/b.conf"), &"1\n".into()).unwrap();
        set(&format!("{root}/x.d/a.conf"), &Value::Absent).unwrap();
        assert!(fs::metadata(format!("{root}/x.d")).is_ok(), "another file is in it");
        set(&format!("{root}/x.d/b.conf"), &Value::Absent).unwrap();
        // Only root may mark a directory.
        let is_root = rustix::process::geteuid().is_root();
        assert_eq!(fs::metadata(format!("{root}/x.d")).is_err(), is_root);
        fs::create_dir_all(format!("{root}/theirs.d")).unwrap();
        set(&format!("{root}/theirs.d/a.conf"), &"1\n".into()).unwrap();
        set(&format!("{root}/theirs.d/a.conf"), &Value::Absent).unwrap();
        assert!(fs::metadata(format!("{root}/theirs.d")).is_ok(), "it was there before");
        let error = set(&format!("{root}/other/a.conf"), &"1\n".into()).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::NotFound);
    }

    #[test]
    fn links_are_followed_along_trusted_directories_only() {
        let dir = tempfile::tempdir().unwrap();
        let root = fs::canonicalize(dir.path()).unwrap().to_str().unwrap().to_owned();
        fs::write(format!("{root}/real"), "old").unwrap();
        std::os::unix::fs::symlink("real", format!("{root}/link")).unwrap();
        let result = set(&format!("{root}/link"), &"new".into());
        if rustix::process::geteuid().is_root() {
            result.unwrap();
            assert_eq!(fs::read_to_string(format!("{root}/real")).unwrap(), "new");
            assert!(fs::symlink_metadata(format!("{root}/link")).unwrap().is_symlink());
        } else {
            assert_eq!(result.unwrap_err().kind(), io::ErrorKind::PermissionDenied);
        }
        fs::set_permissions(&root, fs::Permissions::from_mode(0o777)).unwrap();
        let error = set(&format!("{root}/link"), &"x".into()).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::PermissionDenied);
        std::os::unix::fs::symlink("nowhere", format!("{root}/dangling")).unwrap();
        assert!(set(&format!("{root}/dangling"), &"x".into()).is_err());
        for refused in ["/proc/sys/vm/swappiness", "relative", "/tmp/../x", "/"] {
            assert!(set(refused, &"x".into()).is_err(), "{refused}");
        }
    }

    #[test]
    fn a_directory_comes_and_goes() {
        let dir = tempfile::tempdir().unwrap();
        let path = format!("{}/group", dir.path().to_str().unwrap());
        assert_eq!(directory(&path).unwrap_err().kind(), io::ErrorKind::NotFound);
        set_directory(&path, &"present".into()).unwrap();
        set_directory(&path, &"present".into()).unwrap();
        assert_eq!(directory(&path).unwrap(), Reply::Text("present".into()));
        set_directory(&path, &Value::Absent).unwrap();
        assert!(directory(&path).is_err());
    }
}
