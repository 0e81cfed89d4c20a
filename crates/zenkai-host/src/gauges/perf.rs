//! Counters of the kernel's perf subsystem (perf_event_open(2), `include/uapi/linux/perf_event.h`).

#![expect(unsafe_code, reason = "neither std nor rustix wraps perf_event_open")]

use std::{
    io,
    os::fd::{AsRawFd as _, FromRawFd as _, OwnedFd},
};

use rustix::{
    fs::{Mode, OFlags},
    io::Errno,
};

/// What can be counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Event {
    /// PERF_COUNT_HW_CPU_CYCLES: at the actual clock, while not idle.
    Cycles,
    /// PERF_COUNT_HW_INSTRUCTIONS: retired.
    Instructions,
    /// PERF_COUNT_HW_REF_CPU_CYCLES: at a fixed clock, while not idle.
    ReferenceCycles,
    /// PERF_COUNT_HW_CACHE_MISSES: mostly of the last level.
    CacheMisses,
    /// PERF_COUNT_HW_BRANCH_MISSES.
    BranchMisses,
    /// PERF_COUNT_SW_TASK_CLOCK: nanoseconds on a CPU.
    TaskClock,
    /// PERF_COUNT_SW_CONTEXT_SWITCHES.
    ContextSwitches,
    /// PERF_COUNT_SW_CPU_MIGRATIONS.
    Migrations,
    /// PERF_COUNT_SW_PAGE_FAULTS.
    PageFaults,
}

impl Event {
    /// `type` and `config` of the attributes.
    fn code(self) -> (u32, u64) {
        const HARDWARE: u32 = 0;
        const SOFTWARE: u32 = 1;
        match self {
            Self::Cycles => (HARDWARE, 0),
            Self::Instructions => (HARDWARE, 1),
            Self::CacheMisses => (HARDWARE, 3),
            Self::BranchMisses => (HARDWARE, 5),
            Self::ReferenceCycles => (HARDWARE, 9),
            Self::TaskClock => (SOFTWARE, 1),
            Self::PageFaults => (SOFTWARE, 2),
            Self::ContextSwitches => (SOFTWARE, 3),
            Self::Migrations => (SOFTWARE, 4),
        }
    }
}

/// Whose events are counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Subject<'path> {
    /// A process, and the threads and children that it starts from now on.
    Process(u32),
    /// Everything in a cgroup while it runs on this CPU.
    Group {
        /// The group's directory.
        dir: &'path str,
        /// The CPU.
        cpu: usize,
    },
}

/// What a counter shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Count {
    /// Events so far.
    pub value: u64,
    /// Nanoseconds for which it should have counted.
    pub enabled_ns: u64,
    /// Nanoseconds for which it did. Less than `enabled_ns` when it shared a register with other counters; the value
    /// is then a part and no measurement.
    pub running_ns: u64,
}

/// An open counter.
#[derive(Debug)]
pub struct Counter(OwnedFd);

const FLAG_PID_CGROUP: libc::c_ulong = 1 << 2;
const FLAG_FD_CLOEXEC: libc::c_ulong = 1 << 3;
/// PERF_FORMAT_TOTAL_TIME_ENABLED and PERF_FORMAT_TOTAL_TIME_RUNNING.
const BOTH_TIMES: u64 = 0b11;
/// The second bit of the flags: count the children too.
const INHERIT: u64 = 0b10;

impl Counter {
    /// Starts to count.
    pub fn open(event: Event, subject: Subject) -> io::Result<Self> {
        let (kind, config) = event.code();
        // PERF_ATTR_SIZE_VER0 (64 bytes), which every kernel accepts: type and size share the first word, then
        // config, sample_period, sample_type, read_format and the flags.
        let mut attributes = [u64::from(kind) | 64 << 32, config, 0, 0, BOTH_TIMES, 0, 0, 0];
        match subject {
            Subject::Process(pid) => {
                attributes[5] = INHERIT;
                let pid = libc::pid_t::try_from(pid).map_err(|_| Errno::SRCH)?;
                open(&attributes, pid, -1, FLAG_FD_CLOEXEC)
            }
            Subject::Group { dir, cpu } => {
                let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
                let dir = rustix::fs::open(dir, flags, Mode::empty())?;
                let cpu = libc::c_int::try_from(cpu).map_err(|_| Errno::INVAL)?;
                open(&attributes, dir.as_raw_fd(), cpu, FLAG_FD_CLOEXEC | FLAG_PID_CGROUP)
            }
        }
    }

    /// What was counted since it was opened.
    pub fn read(&self) -> io::Result<Count> {
        let mut bytes = [0_u8; 24];
        if rustix::io::read(&self.0, &mut bytes)? != bytes.len() {
            return Err(Errno::IO.into());
        }
        let word =
            |at: usize| bytes[at * 8..].first_chunk().map_or(0, |word: &[u8; 8]| u64::from_ne_bytes(*word));
        Ok(Count { value: word(0), enabled_ns: word(1), running_ns: word(2) })
    }
}

fn open(
    attributes: &[u64; 8],
    pid: libc::c_int,
    cpu: libc::c_int,
    flags: libc::c_ulong,
) -> io::Result<Counter> {
    let no_group: libc::c_int = -1;
    // SAFETY: perf_event_open reads 64 bytes at its first argument, which is a live array of 64 bytes that begins
    // with their number, and writes no memory of ours.
    let fd =
        unsafe { libc::syscall(libc::SYS_perf_event_open, attributes.as_ptr(), pid, cpu, no_group, flags) };
    if fd < 0 {
        return Err(io::Error::last_os_error());
    }
    let fd = libc::c_int::try_from(fd).map_err(|_| Errno::BADF)?;
    // SAFETY: the kernel has just opened this descriptor for us, and nothing else owns it.
    Ok(Counter(unsafe { OwnedFd::from_raw_fd(fd) }))
}

#[cfg(test)]
mod tests {
    use std::hint::black_box;

    use super::*;
    use crate::gauges::thread_cpu_ns;

    #[test]
    fn the_cpu_time_of_a_thread_started_later_is_counted() {
        let us = rustix::thread::gettid().as_raw_nonzero().get().unsigned_abs();
        let counter = match Counter::open(Event::TaskClock, Subject::Process(us)) {
            Ok(counter) => counter,
            Err(error) => {
                // Containers and strict settings of perf_event_paranoid forbid it.
                println!("not tested: {error}");
                return;
            }
        };
        let used = std::thread::spawn(|| {
            let before = thread_cpu_ns();
            let mut sum = 0_u64;
            while thread_cpu_ns() - before < 5_000_000 {
                sum = black_box(sum.wrapping_mul(31).wrapping_add(7));
            }
            thread_cpu_ns() - before
        })
        .join()
        .unwrap();
        let count = counter.read().unwrap();
        assert!(count.value >= used, "{count:?}, the thread says {used} ns");
        assert_eq!(count.running_ns, count.enabled_ns, "a clock needs no register");
    }

    #[test]
    fn nobodys_process_cannot_be_counted() {
        let error = Counter::open(Event::TaskClock, Subject::Process(u32::MAX)).unwrap_err();
        assert_eq!(error.raw_os_error(), Some(Errno::SRCH.raw_os_error()));
    }
}
