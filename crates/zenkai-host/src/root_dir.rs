//! A directory that looks like a machine's root: an unpacked support bundle, a container, a fixture.

use std::{io, os::fd::OwnedFd};

use rustix::fs::{Mode, OFlags, ResolveFlags, openat2};

use crate::{
    DirEntry, Host, NotRecorded, Query, Reply,
    live::{canonical_path, list_fd, read_fd},
};

/// Reads below a root directory and never outside it.
///
/// Every path is opened with `openat2(RESOLVE_IN_ROOT)`: absolute links and `..` stay inside, whatever the
/// directory's author had in mind. Queries are not answered, since a directory holds no instructions or ioctls.
#[derive(Debug)]
pub struct RootDir {
    root: OwnedFd,
    /// Canonical path of the root, to be cut from resolved paths.
    prefix: String,
}

impl RootDir {
    /// Opens a directory as the root of a machine.
    pub fn open(path: &str) -> io::Result<Self> {
        let flags = OFlags::DIRECTORY | OFlags::RDONLY | OFlags::CLOEXEC;
        let root = rustix::fs::open(path, flags, Mode::empty())?;
        let prefix = canonical_path(&root)?;
        Ok(Self { root, prefix: if prefix == "/" { String::new() } else { prefix } })
    }

    fn open_below(&self, path: &str, flags: OFlags) -> io::Result<OwnedFd> {
        let relative = path.trim_start_matches('/');
        let relative = if relative.is_empty() { "." } else { relative };
        let flags = flags | OFlags::CLOEXEC;
        let resolve = ResolveFlags::IN_ROOT | ResolveFlags::NO_MAGICLINKS;
        Ok(openat2(&self.root, relative, flags, Mode::empty(), resolve)?)
    }
}

impl Host for RootDir {
    fn read(&self, path: &str) -> io::Result<Vec<u8>> {
        // O_NONBLOCK: a FIFO planted in the directory must not hang us.
        let file = self.open_below(path, OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY)?;
        if !rustix::fs::FileType::from_raw_mode(rustix::fs::fstat(&file)?.st_mode).is_file() {
            return Err(rustix::io::Errno::INVAL.into());
        }
        read_fd(&file, false)
    }

    fn list(&self, dir: &str) -> io::Result<Vec<DirEntry>> {
        list_fd(self.open_below(dir, OFlags::RDONLY | OFlags::DIRECTORY)?)
    }

    fn resolve(&self, path: &str) -> io::Result<String> {
        let target = canonical_path(&self.open_below(path, OFlags::PATH)?)?;
        let inside = target.strip_prefix(&self.prefix).ok_or(rustix::io::Errno::XDEV)?;
        Ok(if inside.is_empty() { "/".to_owned() } else { inside.to_owned() })
    }

    fn query(&self, _query: &Query) -> io::Result<Reply> {
        Err(NotRecorded::error())
    }
}

#[cfg(test)]
#[expect(clippy::disallowed_methods, reason = "the test builds a directory to read")]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn links_cannot_leave_the_root() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().join("root");
        std::fs::create_dir_all(root.join("etc")).unwrap();
        std::fs::write(dir.path().join("secret"), "outside").unwrap();
        std::fs::write(root.join("etc/inside"), "inside").unwrap();
        symlink("../../../../secret", root.join("etc/up")).unwrap();
        symlink("/etc/inside", root.join("etc/absolute")).unwrap();
        symlink("/proc/self/root/etc/hostname", root.join("etc/magic")).unwrap();
        let host = RootDir::open(root.to_str().unwrap()).unwrap();
        assert_eq!(host.read("/etc/absolute").unwrap(), b"inside");
        assert_eq!(host.resolve("/etc/absolute").unwrap(), "/etc/inside");
        assert_eq!(host.read("/etc/up").unwrap_err().kind(), io::ErrorKind::NotFound);
        assert_eq!(host.read("/../secret").unwrap_err().kind(), io::ErrorKind::NotFound);
        assert_eq!(host.read("/etc/magic").unwrap_err().kind(), io::ErrorKind::NotFound);
        let names: Vec<_> = host.list("/etc").unwrap().into_iter().map(|entry| entry.name).collect();
        assert_eq!(names, ["absolute", "inside", "magic", "up"]);
        assert!(NotRecorded::is(&host.query(&Query::Machine).unwrap_err()));
    }

    #[test]
    fn a_pipe_does_not_hang() {
        let dir = tempfile::tempdir().unwrap();
        rustix::fs::mknodat(
            rustix::fs::CWD,
            dir.path().join("pipe"),
            rustix::fs::FileType::Fifo,
            Mode::from_raw_mode(0o600),
            0,
        )
        .unwrap();
        let host = RootDir::open(dir.path().to_str().unwrap()).unwrap();
        assert_eq!(host.read("/pipe").unwrap_err().raw_os_error(), Some(22));
    }
}
