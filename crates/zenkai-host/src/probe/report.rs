//! What the probe found: plain data, where an absent value is a reason and never a zero.

use serde::{Deserialize, Serialize};

/// A measured value, or why there is none.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Reading<T> {
    /// It was measured.
    Value(T),
    /// It was not, for this reason, in words for the reader of the report.
    Absent(String),
}

impl<T> Reading<T> {
    /// The value, when there is one.
    pub fn value(&self) -> Option<&T> {
        match self {
            Self::Value(value) => Some(value),
            Self::Absent(_) => None,
        }
    }

    /// Why there is no value, when there is none.
    pub fn reason(&self) -> Option<&str> {
        match self {
            Self::Value(_) => None,
            Self::Absent(reason) => Some(reason),
        }
    }

    pub(super) fn absent(reason: impl Into<String>) -> Self {
        Self::Absent(reason.into())
    }
}

/// The result of one run of the probe.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Probe {
    /// One entry for every CPU in our affinity mask, in ascending order.
    pub cpus: Vec<CpuClock>,
    /// Rate of the time-stamp counter against CLOCK_MONOTONIC_RAW, kHz: the median over the CPUs. x86-64 only.
    pub tsc_khz: Reading<u32>,
    /// Cost of the cheapest real system call (getppid), ns, median of batches. Holds the price of the
    /// mitigations at kernel entry, and of any seccomp filter or tracer this process runs under.
    pub syscall_ns: Reading<f64>,
    /// Cost of one clock_gettime(CLOCK_MONOTONIC), ns, median of batches, through the vDSO where the kernel
    /// offers it (rustix resolves the vDSO itself, so a static libc plays no part). A value near or above
    /// `syscall_ns` means that the kernel is entered for every clock read: its clocksource cannot be read
    /// from user space.
    pub clock_gettime_ns: Reading<f64>,
    /// Wake-up latency of timers, one entry per period; a failed period says why.
    pub wake: Vec<Reading<WakeLatency>>,
    /// Streaming bandwidth: one core, then all allowed CPUs.
    pub memory: Vec<MemoryBandwidth>,
    /// Wall-clock time of the whole probe, ms.
    pub elapsed_ms: u32,
}

/// The real clock of one CPU.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CpuClock {
    /// CPU number as the kernel counts.
    pub cpu: u32,
    /// While every allowed CPU was busy.
    pub all_busy: Reading<BusyClock>,
    /// While this CPU was the only one that we kept busy.
    pub one_busy: Reading<BusyClock>,
}

/// What a CPU did while it was kept busy with chains of dependent instructions.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct BusyClock {
    /// Core clock, kHz: the median over short slices, so that preemption, interrupts and steal, which lengthen
    /// some slices, do not lower it. Absent when the two instruction chains contradict each other.
    pub clock_khz: Reading<u32>,
    /// Core clock in the fastest slice, kHz.
    pub peak_khz: Reading<u32>,
    /// Share of the wall time that the scheduler gave to our thread (CLOCK_THREAD_CPUTIME_ID), 0 to 1. Well
    /// below 1: other work, a CPU quota, or steal that the kernel accounts.
    pub cpu_share: f64,
    /// Share of the wall time missing from the work done, had it all run at `clock_khz`, 0 to 1. What exceeds
    /// `1 - cpu_share` was lost behind the scheduler's back: steal that is not accounted, interrupts, firmware.
    pub lost_share: f64,
    /// Time of a dependent multiplication over time of a dependent addition, fastest slices: the self-check.
    pub mul_add_ratio: Reading<f64>,
    /// Slices of each chain that were timed.
    pub slices: u32,
    /// ΔAPERF/ΔMPERF over the same time: actual clock over the clock MPERF counts at, which is the TSC's on
    /// every server CPU of the last decade. Intel SDM vol. 3, "Hardware Feedback / IA32_MPERF, IA32_APERF".
    pub aperf_mperf_ratio: Reading<f64>,
}

/// How late a sleeping thread runs after its timer expires, on one pinned CPU while we leave the others idle.
/// Timer interrupt, exit from the idle state and context switch are all in it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct WakeLatency {
    /// The CPU that slept.
    pub cpu: u32,
    /// Time between two timers, µs.
    pub period_us: u32,
    /// Wake-ups measured.
    pub samples: u32,
    /// Least latency, µs.
    pub wake_min_us: f64,
    /// Median latency, µs.
    pub wake_p50_us: f64,
    /// 95th percentile, µs.
    pub wake_p95_us: f64,
    /// 99th percentile, µs.
    pub wake_p99_us: f64,
    /// Greatest latency, µs: one interrupt or steal is enough to set it.
    pub wake_max_us: f64,
}

/// Streaming memory bandwidth, GB/s of 10^9 bytes. A lower bound: plain vectorisable loops, no wider vectors
/// than the baseline of the architecture (SSE2, NEON), no non-temporal stores, no NUMA placement other than
/// first touch.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct MemoryBandwidth {
    /// Threads, each pinned to its own CPU.
    pub threads: u32,
    /// Bytes that each thread streams through: the least of all threads.
    pub buffer_bytes_per_thread: Reading<u64>,
    /// All buffers over the last-level caches they run through. Below 2 the caches may serve part of the
    /// traffic and the bandwidth may be too high.
    pub buffers_per_llc: Reading<f64>,
    /// Reading only (a sum), GB/s.
    pub read_gb_per_s: Reading<f64>,
    /// `a[i] = b[i] + c[i]`, GB/s, counted as STREAM does: 24 bytes per element, the line fetch that the store
    /// causes not counted (McCalpin, <https://www.cs.virginia.edu/~mccalpin/papers/bandwidth/node3.html>).
    pub add_gb_per_s: Reading<f64>,
    /// Share of the wall time that the scheduler gave to the threads, mean, 0 to 1. Below 1 the bandwidth is
    /// that of a machine with other work, not of the memory.
    pub cpu_share: Reading<f64>,
}
