//! Files that a user names, or that lie in a directory of anybody's.

use std::{io, os::fd::OwnedFd, path::Path};

use rustix::{
    fs::{FileType, Mode, OFlags},
    io::Errno,
};

/// Reads a whole file of at most `limit` bytes. Only regular files are read: a named pipe would make us wait for
/// somebody to write, and a device may do anything when it is opened. A pipe that the shell itself hands over
/// (`/dev/stdin`, `/dev/fd/63` of `<(COMMAND)`) is read to its end, since whoever named it wants it read.
///
/// Errors: the system's, or what kind of file it is, or that it is larger.
pub fn read_plain_file(path: &Path, limit: u64) -> io::Result<Vec<u8>> {
    // O_NONBLOCK: opening a named pipe must not wait for its writer.
    let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NOCTTY | OFlags::NONBLOCK;
    let file = rustix::fs::open(path, flags, Mode::empty())?;
    match FileType::from_raw_mode(rustix::fs::fstat(&file)?.st_mode) {
        FileType::RegularFile => {}
        FileType::Fifo if is_handed_over(path) => rustix::fs::fcntl_setfl(&file, OFlags::empty())?,
        // As `read` would say it.
        FileType::Directory => return Err(Errno::ISDIR.into()),
        _ => return Err(io::Error::other("not a regular file")),
    }
    read_to_end(&file, limit)
}

/// Whether the path means a descriptor that we were started with.
fn is_handed_over(path: &Path) -> bool {
    path == Path::new("/dev/stdin") || ["/dev/fd", "/proc/self/fd"].iter().any(|dir| path.starts_with(dir))
}

fn read_to_end(file: &OwnedFd, limit: u64) -> io::Result<Vec<u8>> {
    let mut content = Vec::new();
    let mut chunk = vec![0_u8; 64 * 1024];
    loop {
        let count = match rustix::io::read(file, &mut chunk) {
            Err(Errno::INTR) => continue,
            count => count?,
        };
        if count == 0 {
            return Ok(content);
        }
        content.extend_from_slice(chunk.get(..count).unwrap_or_default());
        if u64::try_from(content.len()).is_ok_and(|length| length > limit) {
            return Err(io::Error::other(format!("larger than {} MiB", limit >> 20)));
        }
    }
}

#[cfg(test)]
mod tests {
    use std::os::fd::AsRawFd as _;

    use super::*;

    #[test]
    fn only_regular_files_of_moderate_size_are_read() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("file");
        #[expect(clippy::disallowed_methods, reason = "a test's own file")]
        std::fs::write(&file, vec![b'x'; 100_000]).unwrap();
        assert_eq!(read_plain_file(&file, 100_000).unwrap().len(), 100_000);
        let error = read_plain_file(&file, 99_999).unwrap_err();
        assert!(error.to_string().contains("larger than"), "{error}");
        assert_eq!(read_plain_file(&dir.path().join("none"), 9).unwrap_err().kind(), io::ErrorKind::NotFound);
        assert_eq!(read_plain_file(dir.path(), 9).unwrap_err().kind(), io::ErrorKind::IsADirectory);
        assert!(read_plain_file(Path::new("/dev/zero"), 9).unwrap_err().to_string().contains("regular"));
        let pipe = dir.path().join("pipe");
        rustix::fs::mknodat(rustix::fs::CWD, &pipe, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
        assert!(read_plain_file(&pipe, 9).unwrap_err().to_string().contains("regular"));
    }

    #[test]
    fn a_pipe_of_the_shells_is_read_to_its_end() {
        let (reader, mut writer) = io::pipe().unwrap();
        let path = format!("/dev/fd/{}", reader.as_raw_fd());
        let writing = std::thread::spawn(move || {
            std::thread::sleep(std::time::Duration::from_millis(50));
            io::Write::write_all(&mut writer, b"late").unwrap();
        });
        assert_eq!(read_plain_file(Path::new(&path), 9).unwrap(), b"late");
        writing.join().unwrap();
    }
}
