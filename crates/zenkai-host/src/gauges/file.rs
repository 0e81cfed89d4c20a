//! Files that stay open.

use std::{io, os::fd::OwnedFd};

use rustix::{
    buffer::spare_capacity,
    fs::{Mode, OFlags},
    io::Errno,
};

use crate::FILE_SIZE_LIMIT;

/// Room for most files of procfs at one go.
const ROOM: usize = 16 * 1024;

/// A file of procfs, sysfs or a cgroup that stays open and is read from its start each time.
#[derive(Debug)]
pub struct Gauge {
    file: OwnedFd,
    /// A read that gives less than there was room for is the end: the system call to hear that said is saved.
    whole: bool,
}

impl Gauge {
    /// Opens a file for reading. It is never waited for: a FIFO without a writer is no gauge.
    pub fn open(path: &str) -> io::Result<Self> {
        let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NONBLOCK | OFlags::NOCTTY;
        let file = rustix::fs::open(path, flags, Mode::empty())?;
        Ok(Self { file, whole: comes_whole(path) })
    }

    /// Appends what the file holds now. On failure `text` is as long as before.
    pub fn read(&self, text: &mut Vec<u8>) -> io::Result<()> {
        let start = text.len();
        let result = self.read_to_end(text, start);
        if result.is_err() {
            text.truncate(start);
        }
        result
    }

    fn read_to_end(&self, text: &mut Vec<u8>, start: usize) -> io::Result<()> {
        loop {
            let length = text.len() - start;
            if length > FILE_SIZE_LIMIT {
                return Err(Errno::FBIG.into());
            }
            text.reserve(ROOM);
            let offset = u64::try_from(length).map_err(|_| Errno::FBIG)?;
            match rustix::io::pread(&self.file, spare_capacity(text), offset) {
                Ok(0) => return Ok(()),
                Ok(_) if self.whole && text.len() < text.capacity() => return Ok(()),
                Ok(_) | Err(Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
        }
    }
}

/// Whether all of a file comes with the first read that has room for it: an attribute of sysfs, at most a page
/// (`fs/kernfs/file.c`), and what the kernel writes as one record (`single_open` in `fs/proc`, `net/ipv4/proc.c` and
/// `kernel/sched/psi.c`). Files of many records come in pieces of what the kernel had room for (`fs/seq_file.c`).
fn comes_whole(path: &str) -> bool {
    const ONE_RECORD: [&str; 5] =
        ["/proc/stat", "/proc/meminfo", "/proc/softirqs", "/proc/net/snmp", "/proc/net/netstat"];
    path.starts_with("/sys/") && !path.starts_with("/sys/fs/cgroup/")
        || path.starts_with("/proc/pressure/")
        || ONE_RECORD.contains(&path)
}

/// The model-specific registers of one CPU (`/dev/cpu/N/msr`), which need root and the msr module. Reading one
/// interrupts that CPU.
#[derive(Debug)]
pub struct Register(OwnedFd);

impl Register {
    /// Opens the registers of a CPU.
    pub fn open(cpu: usize) -> io::Result<Self> {
        let path = format!("/dev/cpu/{cpu}/msr");
        Ok(Self(rustix::fs::open(path, OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty())?))
    }

    /// One register, by its address (`arch/x86/include/asm/msr-index.h`).
    pub fn read(&self, address: u32) -> io::Result<u64> {
        let mut bytes = [0_u8; 8];
        match rustix::io::pread(&self.0, &mut bytes, u64::from(address))? {
            8 => Ok(u64::from_ne_bytes(bytes)),
            _ => Err(Errno::IO.into()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_read_anew_each_time_and_whole() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("numbers");
        let long = "123456789\n".repeat(10_000);
        #[expect(clippy::disallowed_methods, reason = "a test's own file")]
        std::fs::write(&path, &long).unwrap();
        let gauge = Gauge::open(path.to_str().unwrap()).unwrap();
        let mut text = b"before ".to_vec();
        gauge.read(&mut text).unwrap();
        assert_eq!(text, format!("before {long}").into_bytes());
        #[expect(clippy::disallowed_methods, reason = "a test's own file")]
        std::fs::write(&path, "5").unwrap();
        text.clear();
        gauge.read(&mut text).unwrap();
        assert_eq!(text, b"5");
    }

    #[test]
    fn what_comes_whole_is_whole() {
        for path in ["/proc/stat", "/proc/meminfo", "/proc/softirqs", "/proc/net/snmp", "/proc/net/netstat"] {
            let Ok(gauge) = Gauge::open(path) else { continue };
            assert!(gauge.whole);
            let mut text = Vec::new();
            gauge.read(&mut text).unwrap();
            // What else there is would come from here on.
            let rest = rustix::io::pread(&gauge.file, &mut [0_u8; 64], u64::try_from(text.len()).unwrap());
            assert_eq!(rest, Ok(0), "{path}");
        }
    }

    #[test]
    fn a_failure_leaves_the_text_as_it_was() {
        let mut text = b"kept".to_vec();
        // A directory opens but cannot be read.
        let gauge = Gauge::open("/proc").unwrap();
        assert_eq!(gauge.read(&mut text).unwrap_err().raw_os_error(), Some(Errno::ISDIR.raw_os_error()));
        assert_eq!(text, b"kept");
    }
}
