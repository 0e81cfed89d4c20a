//! APERF and MPERF: what the CPU itself counted of its clock. Both count only while the CPU is not idle, APERF
//! at the actual clock and MPERF at a fixed one, so the quotient of their advances is the clock relative to the
//! fixed one (Intel SDM vol. 3, "Hardware Feedback"; AMD APM vol. 2, "Effective Frequency").
//!
//! Two ways to them: the kernel's `msr` perf PMU, which needs CAP_PERFMON or perf_event_paranoid <= 1 and counts
//! for our thread, and `/dev/cpu/N/msr`, which needs root and the msr module. Hypervisors mostly offer neither.

#[cfg(target_arch = "x86_64")]
pub(super) use x86::Counters;

#[cfg(not(target_arch = "x86_64"))]
pub(super) use absent::Counters;

use super::stats::{round, to_f64};

/// Both counters at one moment.
#[derive(Debug, Clone, Copy)]
pub(super) struct Counts {
    pub(super) aperf: u64,
    pub(super) mperf: u64,
}

impl Counts {
    /// ΔAPERF/ΔMPERF since an earlier moment.
    pub(super) fn ratio_since(self, before: Self) -> Result<f64, String> {
        let aperf = self.aperf.wrapping_sub(before.aperf);
        let mperf = self.mperf.wrapping_sub(before.mperf);
        if aperf == 0 || mperf == 0 {
            return Err("APERF or MPERF stands still: the hypervisor does not pass them on".to_owned());
        }
        Ok(round(to_f64(aperf) / to_f64(mperf), 5))
    }
}

#[cfg(target_arch = "x86_64")]
mod x86 {
    use std::io;
    use std::os::fd::{FromRawFd, OwnedFd};

    use rustix::fs::{Mode, OFlags};

    use super::Counts;
    use crate::probe::limits::read_text;

    const PMU: &str = "/sys/bus/event_source/devices/msr";
    /// `linux/perf_event.h`: PERF_FLAG_FD_CLOEXEC.
    const FD_CLOEXEC: usize = 1 << 3;
    const IA32_MPERF: u64 = 0xe7;
    const IA32_APERF: u64 = 0xe8;

    /// An open way to the counters of the calling thread's CPU.
    #[derive(Debug)]
    pub(in crate::probe) enum Counters {
        /// Counts of the calling thread.
        Perf { aperf: OwnedFd, mperf: OwnedFd },
        /// Registers of the CPU.
        Msr(OwnedFd),
    }

    impl Counters {
        /// Must be opened and read by the thread that is pinned to `cpu`.
        pub(in crate::probe) fn open(cpu: u32) -> Result<Self, String> {
            let perf_error = match Self::perf("aperf", "mperf") {
                Ok(counters) => return Ok(counters),
                Err(reason) => reason,
            };
            let path = format!("/dev/cpu/{cpu}/msr");
            rustix::fs::open(path.as_str(), OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty())
                .map(Self::Msr)
                .map_err(|error| format!("{perf_error}; {path}: {}", io::Error::from(error)))
        }

        /// Through the perf PMU, by the names that its events have in sysfs.
        pub(in crate::probe) fn perf(aperf: &str, mperf: &str) -> Result<Self, String> {
            Ok(Self::Perf { aperf: perf_event(aperf)?, mperf: perf_event(mperf)? })
        }

        pub(in crate::probe) fn read(&self) -> Result<Counts, String> {
            let read = |fd: &OwnedFd, offset: Option<u64>| {
                let mut bytes = [0_u8; 8];
                let length = match offset {
                    Some(register) => rustix::io::pread(fd, &mut bytes, register),
                    None => rustix::io::read(fd, &mut bytes),
                };
                match length {
                    Ok(8) => Ok(u64::from_ne_bytes(bytes)),
                    Ok(length) => Err(format!("a counter gave {length} bytes, not 8")),
                    Err(error) => Err(format!("a counter cannot be read: {}", io::Error::from(error))),
                }
            };
            Ok(match self {
                Self::Perf { aperf, mperf } => {
                    Counts { aperf: read(aperf, None)?, mperf: read(mperf, None)? }
                }
                Self::Msr(fd) => {
                    Counts { aperf: read(fd, Some(IA32_APERF))?, mperf: read(fd, Some(IA32_MPERF))? }
                }
            })
        }
    }

    /// A counter of the `msr` PMU for the calling thread, by its name in sysfs. Kernels offer only the events
    /// that their CPU has.
    fn perf_event(name: &str) -> Result<OwnedFd, String> {
        let sysfs = |path: String| read_text(&path).map_err(|error| format!("{path}: {error}"));
        let pmu = sysfs(format!("{PMU}/type"))?;
        let event = sysfs(format!("{PMU}/events/{name}"))?;
        let kind = pmu.trim().parse::<u32>().ok();
        let config = event.trim().strip_prefix("event=0x").and_then(|hex| u64::from_str_radix(hex, 16).ok());
        let (Some(kind), Some(config)) = (kind, config) else {
            return Err(format!("{PMU}: cannot make sense of {pmu:?} and {event:?}"));
        };
        perf_event_open(kind, config)
            .map_err(|error| format!("perf_event_open(msr/{name}/): {error} (perf_event_paranoid?)"))
    }

    /// perf_event_open(2) for the calling thread on any CPU.
    fn perf_event_open(kind: u32, config: u64) -> io::Result<OwnedFd> {
        // The first published layout, PERF_ATTR_SIZE_VER0 (64 bytes), which every kernel accepts: type and size
        // share the first word, config is the second, all else (no sampling, nothing excluded) is zero.
        let attributes: [u64; 8] = [u64::from(kind) | 64 << 32, config, 0, 0, 0, 0, 0, 0];
        let this_thread = 0_usize;
        let any_cpu_or_group = -1_isize;
        let result: isize;
        // SAFETY: system call 298 of x86-64 is perf_event_open. It reads 64 bytes at the first argument, which
        // is a live array of 64 bytes, and writes no memory of ours. The kernel clobbers rcx and r11.
        #[expect(unsafe_code, reason = "neither std nor rustix wraps this system call")]
        unsafe {
            core::arch::asm!(
                "syscall",
                inlateout("rax") 298_isize => result,
                in("rdi") attributes.as_ptr(),
                in("rsi") this_thread,
                in("rdx") any_cpu_or_group,
                in("r10") any_cpu_or_group,
                in("r8") FD_CLOEXEC,
                lateout("rcx") _,
                lateout("r11") _,
                options(nostack),
            );
        }
        let number = i32::try_from(result).unwrap_or(i32::MIN);
        if number < 0 {
            return Err(io::Error::from_raw_os_error(number.saturating_neg()));
        }
        // SAFETY: the kernel has just opened this descriptor for us, and nothing else owns it.
        #[expect(unsafe_code, reason = "to own the descriptor")]
        Ok(unsafe { OwnedFd::from_raw_fd(number) })
    }
}

#[cfg(not(target_arch = "x86_64"))]
mod absent {
    use super::Counts;

    /// No such counters on this architecture.
    #[derive(Debug)]
    pub(in crate::probe) enum Counters {}

    impl Counters {
        pub(in crate::probe) fn open(_cpu: u32) -> Result<Self, String> {
            Err("APERF and MPERF are registers of x86 CPUs".to_owned())
        }

        pub(in crate::probe) fn read(&self) -> Result<Counts, String> {
            match *self {}
        }
    }
}
