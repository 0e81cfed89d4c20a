//! Looking at all processes at little cost.

use std::{fmt::Write as _, io, mem::MaybeUninit, os::fd::OwnedFd};

use rustix::{
    fs::{Mode, OFlags, RawDir, SeekFrom},
    io::Errno,
};

/// Room for a `/proc/PID/stat`: 52 numbers of up to 20 digits and a name of 64 bytes (`fs/proc/array.c`).
const STAT: usize = 2048;

/// `/proc`, kept open to look at all processes again and again.
#[derive(Debug)]
pub struct ProcessTable {
    dir: OwnedFd,
    /// Room for entries of the directory.
    names: Vec<MaybeUninit<u8>>,
}

impl ProcessTable {
    /// Opens the directory.
    pub fn open() -> io::Result<Self> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let dir = rustix::fs::open("/proc", flags, Mode::empty())?;
        Ok(Self { dir, names: vec![MaybeUninit::uninit(); 8 * 1024] })
    }

    /// Hands over the number and `/proc/PID/stat` (proc_pid_stat(5)) of each process that there is, in three system calls
    /// each. One that ends meanwhile is left out.
    pub fn stats(&mut self, each: &mut dyn FnMut(u32, &[u8])) -> io::Result<()> {
        rustix::fs::seek(&self.dir, SeekFrom::Start(0))?;
        let mut entries = RawDir::new(&self.dir, &mut self.names);
        let mut path = String::new();
        let mut text = [0_u8; STAT];
        while let Some(entry) = entries.next() {
            let entry = entry?;
            let Some(pid) = entry.file_name().to_str().ok().and_then(|name| name.parse::<u32>().ok()) else {
                continue;
            };
            path.clear();
            // Writing to a string does not fail.
            let _ = write!(path, "{pid}/stat");
            let mut read = || -> Result<usize, Errno> {
                let file = rustix::fs::openat(
                    &self.dir,
                    path.as_str(),
                    OFlags::RDONLY | OFlags::CLOEXEC,
                    Mode::empty(),
                )?;
                // One record, which comes whole (`single_open` in `fs/proc/base.c`).
                rustix::io::read(&file, &mut text)
            };
            if let Ok(length) = read() {
                each(pid, text.get(..length).unwrap_or_default());
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn we_are_among_them_each_time() {
        let us = rustix::process::getpid().as_raw_nonzero().get().unsigned_abs();
        let mut table = ProcessTable::open().unwrap();
        for _ in 0..2 {
            let mut ours = Vec::new();
            table
                .stats(&mut |pid, text| {
                    if pid == us {
                        ours.push(text.to_vec());
                    }
                })
                .unwrap();
            let [text] = ours.as_slice() else { panic!("{} times", ours.len()) };
            assert!(text.starts_with(format!("{us} (").as_bytes()));
            assert_eq!(text.last(), Some(&b'\n'));
        }
    }
}
