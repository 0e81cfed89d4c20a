//! The machine we run on.

mod ata;
mod device_mapper;
mod ethtool;
mod ethtool_set;
mod file;
mod instructions;
pub(crate) mod ipmi;
mod knobs;
mod latency;
mod log;
mod module;
mod mounts;
mod run;
mod service;
mod task;
mod trusted;
mod xen;

use std::{io, os::fd::OwnedFd};

pub use latency::{HeldLatency, hold_cpu_dma_latency};
pub use log::{append_log, local_time};
pub use trusted::trusted_file;

use rustix::{
    fs::{Dir, FileType, Mode, OFlags},
    io::Errno,
};

use crate::{
    Act, DirEntry, EntryKind, FILE_SIZE_LIMIT, Finished, Host, Knob, Query, Reply, TunableHost, Value,
};

/// The live machine, read and written with plain system calls: no child process, no shell.
#[derive(Debug, Default, Clone, Copy)]
pub struct LiveHost;

impl Host for LiveHost {
    fn read(&self, path: &str) -> io::Result<Vec<u8>> {
        let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NONBLOCK | OFlags::NOCTTY;
        let file = rustix::fs::open(path, flags, Mode::empty())?;
        read_fd(&file, ends_with_a_short_read(path))
    }

    fn list(&self, dir: &str) -> io::Result<Vec<DirEntry>> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        list_fd(rustix::fs::open(dir, flags, Mode::empty())?)
    }

    fn resolve(&self, path: &str) -> io::Result<String> {
        let flags = OFlags::PATH | OFlags::CLOEXEC;
        canonical_path(&rustix::fs::open(path, flags, Mode::empty())?)
    }

    fn query(&self, query: &Query) -> io::Result<Reply> {
        match query {
            Query::Cpuid { leaf, subleaf } => instructions::cpuid(*leaf, *subleaf),
            Query::Msr { cpu, register } => read_msr(*cpu, *register),
            Query::Statfs { path } => statfs(path),
            Query::Ethtool { device, request } => ethtool::query(device, *request),
            Query::Ipmi { netfn, command, data } => ipmi::query(*netfn, *command, data),
            Query::DmTable { major, minor } => device_mapper::table(*major, *minor),
            Query::EffectiveUid => Ok(Reply::Numbers(vec![rustix::process::geteuid().as_raw().into()])),
            Query::Machine => {
                Ok(Reply::Text(rustix::system::uname().machine().to_string_lossy().into_owned()))
            }
            Query::Knob(knob) => knobs::value(knob),
            // A probe runs for seconds and loads the machine: it is started by name, never by looking.
            // A profile is understood by another crate.
            Query::Probe | Query::Profile => Err(Errno::NODATA.into()),
        }
    }
}

impl TunableHost for LiveHost {
    fn set(&self, knob: &Knob, value: &Value) -> io::Result<()> {
        knobs::set(knob, value)
    }

    fn run(&self, act: &Act) -> io::Result<Finished> {
        run::run(act)
    }
}

/// Whether a read that gives less than was asked for is the end of this file, so that the system call to hear it
/// said again is saved. So it is in sysfs, where a read gives all there is up to a page (`fs/kernfs/file.c`), and for
/// sysctls, which give everything to the first read (`kernel/sysctl.c`); and a process's name is one short record. The file systems mounted inside sysfs have
/// files of many records, whose reads end early where a record does not fit any more (`fs/seq_file.c`).
fn ends_with_a_short_read(path: &str) -> bool {
    const MANY_RECORDS: [&str; 3] = ["/sys/fs/cgroup/", "/sys/kernel/debug/", "/sys/kernel/tracing/"];
    path.starts_with("/proc/sys/")
        || (path.starts_with("/proc/") && path.ends_with("/comm"))
        || (path.starts_with("/sys/") && !MANY_RECORDS.iter().any(|place| path.starts_with(place)))
}

/// Reads a descriptor to its end; `short_is_end` as [`ends_with_a_short_read`] tells.
pub(crate) fn read_fd(file: &OwnedFd, short_is_end: bool) -> io::Result<Vec<u8>> {
    let mut chunk = [0_u8; 4096];
    let mut content = Vec::new();
    loop {
        let count = match rustix::io::read(file, &mut chunk) {
            Err(Errno::INTR) => continue,
            result => result?,
        };
        content.extend_from_slice(&chunk[..count]);
        if count == 0 || (short_is_end && count < chunk.len()) {
            return Ok(content);
        }
        if content.len() > FILE_SIZE_LIMIT {
            return Err(Errno::FBIG.into());
        }
    }
}

/// Lists a directory descriptor, sorted by name.
pub(crate) fn list_fd(dir: OwnedFd) -> io::Result<Vec<DirEntry>> {
    let mut entries = Vec::new();
    for entry in Dir::new(dir)? {
        let entry = entry?;
        let Ok(name) = entry.file_name().to_str() else { continue };
        if name == "." || name == ".." {
            continue;
        }
        let kind = match entry.file_type() {
            FileType::Directory => EntryKind::Directory,
            FileType::Symlink => EntryKind::Link,
            _ => EntryKind::File,
        };
        entries.push(DirEntry { name: name.to_owned(), kind });
    }
    entries.sort();
    Ok(entries)
}

/// The canonical path behind an open descriptor, as procfs tells it: one system call for any number of links.
pub(crate) fn canonical_path(fd: &OwnedFd) -> io::Result<String> {
    use std::os::fd::AsRawFd;
    let link = format!("/proc/self/fd/{}", fd.as_raw_fd());
    let target = rustix::fs::readlink(link, Vec::new())?;
    target.into_string().map_err(|_| Errno::ILSEQ.into())
}

/// One register of one CPU; the msr driver takes the register as file offset (msr(4)).
fn read_msr(cpu: u32, register: u32) -> io::Result<Reply> {
    let flags = OFlags::RDONLY | OFlags::CLOEXEC;
    let file = rustix::fs::open(format!("/dev/cpu/{cpu}/msr"), flags, Mode::empty())?;
    let mut bytes = [0_u8; 8];
    let count = rustix::io::pread(&file, &mut bytes, register.into())?;
    if count != bytes.len() {
        return Err(Errno::IO.into());
    }
    Ok(Reply::Numbers(vec![u64::from_ne_bytes(bytes)]))
}

fn statfs(path: &str) -> io::Result<Reply> {
    let stat = rustix::fs::statfs(path)?;
    Ok(Reply::Named(vec![
        ("type".into(), stat.f_type.cast_unsigned()),
        ("block_size_bytes".into(), stat.f_bsize.cast_unsigned()),
        ("blocks".into(), stat.f_blocks),
        ("blocks_available".into(), stat.f_bavail),
        ("files".into(), stat.f_files),
        ("files_free".into(), stat.f_ffree),
        ("flags".into(), stat.f_flags.cast_unsigned()),
    ]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn where_a_short_read_is_the_end() {
        for path in [
            "/sys/devices/system/cpu/online",
            "/proc/sys/vm/swappiness",
            "/proc/1/comm",
            "/sys/fs/resctrl/schemata",
        ] {
            assert!(ends_with_a_short_read(path), "{path}");
        }
        for path in ["/proc/interrupts", "/sys/fs/cgroup/cgroup.procs", "/sys/kernel/debug/kprobes/list"] {
            assert!(!ends_with_a_short_read(path), "{path}");
        }
    }
}
