//! Threads, each pinned to a CPU of its own, that start together.

use std::io;
use std::sync::{Barrier, OnceLock, mpsc};
use std::thread;

use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

use super::time;

/// A thread of the crew needs room for its own frames only; buffers are on the heap.
const STACK_BYTES: usize = 256 * 1024;

/// The CPUs that this thread may run on, ascending: its affinity mask, which the kernel has already cut down to
/// the cgroup's cpuset and to the CPUs that are online. Fails on machines with more than 1024 possible CPUs,
/// where the kernel rejects the fixed-size mask.
pub(super) fn allowed_cpus() -> io::Result<Vec<u32>> {
    let mask = sched_getaffinity(None)?;
    Ok((0_u32..).take(CpuSet::MAX_CPU).filter(|&cpu| mask.is_set(cpu as usize)).collect())
}

/// A thread at work, pinned to its CPU.
pub(super) struct Member<'crew> {
    pub(super) cpu: u32,
    start: &'crew Start,
}

/// Common to all members that could be pinned.
struct Start {
    barrier: Barrier,
    at_ns: u64,
}

impl Member<'_> {
    /// When the crew was let go (CLOCK_MONOTONIC_RAW), the same for all.
    pub(super) fn started_ns(&self) -> u64 {
        self.start.at_ns
    }

    /// Wait for all others to come here too. Every member must come here equally often.
    pub(super) fn meet(&self) {
        self.start.barrier.wait();
    }
}

/// Run `work` on each of the CPUs at once, in a thread pinned to it. They are let go together once all threads
/// exist and are pinned. A CPU that could not be pinned to (it went offline, or the cpuset changed) gives an
/// error of its own; the others work without it.
pub(super) fn on_each<T: Send>(
    cpus: &[u32],
    work: &(dyn Fn(&Member<'_>) -> T + Sync),
) -> io::Result<Vec<(u32, io::Result<T>)>> {
    // `None`: a thread could not be started, go home.
    let gate: OnceLock<Option<Start>> = OnceLock::new();
    let (arrived, arrivals) = mpsc::channel();
    thread::scope(|scope| {
        let mut members = Vec::with_capacity(cpus.len());
        for &cpu in cpus {
            let (arrived, gate) = (arrived.clone(), &gate);
            let spawned = thread::Builder::new().stack_size(STACK_BYTES).spawn_scoped(scope, move || {
                let pinned = pin(cpu);
                // The receiver outlives the scope, so this cannot fail.
                let _ = arrived.send(pinned.is_ok());
                pinned?;
                match gate.wait() {
                    Some(start) => Ok(work(&Member { cpu, start })),
                    None => Err(io::Error::other("not started")),
                }
            });
            match spawned {
                Ok(member) => members.push((cpu, member)),
                Err(error) => {
                    let _ = gate.set(None);
                    return Err(error);
                }
            }
        }
        let pinned = arrivals.iter().take(members.len()).filter(|&ok| ok).count();
        let _ = gate.set(Some(Start { barrier: Barrier::new(pinned), at_ns: time::raw_ns() }));
        Ok(members
            .into_iter()
            .map(|(cpu, member)| {
                let result = member.join().unwrap_or_else(|_| Err(io::Error::other("the thread panicked")));
                (cpu, result)
            })
            .collect())
    })
}

/// As [`on_each`], for a single CPU.
pub(super) fn on_one<T: Send>(
    cpu: u32,
    work: &(dyn Fn(&Member<'_>) -> T + Sync),
) -> io::Result<io::Result<T>> {
    let only = on_each(&[cpu], work)?.pop();
    Ok(only.map_or_else(|| Err(io::Error::other("no thread ran")), |(_, result)| result))
}

/// Pin the calling thread.
fn pin(cpu: u32) -> io::Result<()> {
    let mut only = CpuSet::new();
    only.set(cpu as usize);
    Ok(sched_setaffinity(None, &only)?)
}
