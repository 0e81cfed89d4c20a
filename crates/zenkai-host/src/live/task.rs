//! Policy and CPUs of a task: `sched_setattr(2)` and `sched_setaffinity(2)`.

use std::io;

use rustix::io::Errno;

use super::LiveHost;
use crate::{Host, TaskParameter, derived::Stat};

/// CPU numbers beyond the kernel's own limit (`NR_CPUS` is at most 8 192) are refused.
const CPU_LIMIT: usize = 8192;

/// Sets one of the two; `ESRCH` when the task has ended or its number belongs to another one now.
pub(super) fn set(tid: u32, start_ticks: u64, parameter: TaskParameter, text: &str) -> io::Result<()> {
    // Number 0 would mean the calling thread.
    let id = libc::pid_t::try_from(tid).ok().filter(|id| *id > 0).ok_or(Errno::SRCH)?;
    let stat = LiveHost.read(&format!("/proc/{tid}/stat")).map_err(|_| Errno::SRCH)?;
    let stat = Stat::parse(&String::from_utf8_lossy(&stat)).ok_or(Errno::PROTO)?;
    if stat.start_ticks != start_ticks {
        return Err(Errno::SRCH.into());
    }
    match parameter {
        TaskParameter::Policy => set_policy(id, text),
        TaskParameter::Affinity => set_affinity(id, text),
    }
}

/// `f:50` and its like. What else the scheduler knows of the task (nice value, reset on fork, utilisation bounds)
/// stays.
fn set_policy(id: libc::pid_t, text: &str) -> io::Result<()> {
    let (letter, priority) = text.split_once(':').ok_or(Errno::INVAL)?;
    let policy = match letter {
        "o" => libc::SCHED_OTHER,
        "f" => libc::SCHED_FIFO,
        "r" => libc::SCHED_RR,
        "b" => libc::SCHED_BATCH,
        "i" => libc::SCHED_IDLE,
        // A deadline task has a budget that this text does not tell.
        _ => return Err(Errno::INVAL.into()),
    };
    let mut attr = get_attr(id)?;
    attr.sched_policy = policy.cast_unsigned();
    attr.sched_priority = priority.parse().map_err(|_| Errno::INVAL)?;
    set_attr(id, &mut attr)
}

#[expect(unsafe_code, reason = "rustix has no sched_getattr")]
fn get_attr(id: libc::pid_t) -> io::Result<libc::sched_attr> {
    // SAFETY: the structure is plain numbers, for which all zeros is a value.
    let mut attr: libc::sched_attr = unsafe { std::mem::zeroed() };
    let size = size_of::<libc::sched_attr>();
    // SAFETY: the kernel writes at most `size` bytes to the structure, which is that large.
    let result = unsafe { libc::syscall(libc::SYS_sched_getattr, id, &raw mut attr, size, 0) };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(attr) }
}

#[expect(unsafe_code, reason = "rustix has no sched_setattr")]
fn set_attr(id: libc::pid_t, attr: &mut libc::sched_attr) -> io::Result<()> {
    attr.size = u32::try_from(size_of::<libc::sched_attr>()).map_err(|_| Errno::OVERFLOW)?;
    // SAFETY: the kernel reads `size` bytes, which the structure has, and writes only that field.
    let result = unsafe { libc::syscall(libc::SYS_sched_setattr, id, std::ptr::from_mut(attr), 0) };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

#[expect(unsafe_code, reason = "rustix knows 1 024 CPUs only")]
fn set_affinity(id: libc::pid_t, text: &str) -> io::Result<()> {
    let mask = mask(text).ok_or(Errno::INVAL)?;
    // SAFETY: the kernel reads as many bytes as the vector has.
    let result =
        unsafe { libc::syscall(libc::SYS_sched_setaffinity, id, size_of_val(&*mask), mask.as_ptr()) };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// A kernel CPU list as the words of a mask.
fn mask(cpus: &str) -> Option<Vec<libc::c_ulong>> {
    let width = size_of::<libc::c_ulong>().saturating_mul(8);
    let mut words: Vec<libc::c_ulong> = vec![0; CPU_LIMIT / width];
    for part in cpus.trim().split(',') {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let (first, last): (usize, usize) = (first.trim().parse().ok()?, last.trim().parse().ok()?);
        if first > last {
            return None;
        }
        if last >= CPU_LIMIT {
            return None;
        }
        (first..=last).for_each(|cpu| words[cpu / width] |= 1 << (cpu % width));
    }
    Some(words)
}

#[cfg(test)]
mod tests {
    use std::{
        sync::mpsc,
        thread::{self, JoinHandle},
    };

    use super::*;
    use crate::{Knob, TunableHost, value};

    /// A thread that waits until its channel closes.
    fn sleeper() -> (u32, u64, mpsc::Sender<()>, JoinHandle<()>) {
        let (stop, wait) = mpsc::channel::<()>();
        let (tell, told) = mpsc::channel();
        let thread = thread::spawn(move || {
            tell.send(rustix::thread::gettid().as_raw_nonzero().get()).unwrap();
            let _ = wait.recv();
        });
        let tid = u32::try_from(told.recv().unwrap()).unwrap();
        let stat = LiveHost.read(&format!("/proc/{tid}/stat")).unwrap();
        let began = Stat::parse(&String::from_utf8(stat).unwrap()).unwrap().start_ticks;
        (tid, began, stop, thread)
    }

    #[test]
    fn a_thread_changes_policy_and_cpus_and_back() {
        let (tid, start_ticks, stop, thread) = sleeper();
        let policy = Knob::Task { tid, start_ticks, parameter: TaskParameter::Policy };
        let cpus = Knob::Task { tid, start_ticks, parameter: TaskParameter::Affinity };
        assert_eq!(value(&LiveHost, &policy).unwrap(), "o:0".into());
        // Batch needs no privilege; a later return to the default policy neither.
        LiveHost.set(&policy, &"b:0".into()).unwrap();
        assert_eq!(value(&LiveHost, &policy).unwrap(), "b:0".into());
        LiveHost.set(&policy, &"o:0".into()).unwrap();
        assert_eq!(value(&LiveHost, &policy).unwrap(), "o:0".into());
        let before = value(&LiveHost, &cpus).unwrap();
        let first: String = before.text().unwrap().chars().take_while(char::is_ascii_digit).collect();
        LiveHost.set(&cpus, &first.as_str().into()).unwrap();
        assert_eq!(value(&LiveHost, &cpus).unwrap(), first.into());
        LiveHost.set(&cpus, &before).unwrap();
        assert_eq!(value(&LiveHost, &cpus).unwrap(), before);
        let other = Knob::Task { tid, start_ticks: start_ticks + 1, parameter: TaskParameter::Policy };
        let refused = LiveHost.set(&other, &"b:0".into()).unwrap_err();
        assert_eq!(refused.raw_os_error(), Some(Errno::SRCH.raw_os_error()));
        drop(stop);
        thread.join().unwrap();
    }

    #[test]
    fn masks() {
        assert_eq!(mask("0-2,65").unwrap()[..2], [7, 2]);
        for bad in ["", "x", "3-1", "8192", "0-99999999999"] {
            assert!(mask(bad).is_none(), "{bad}");
        }
        assert!(set_policy(1, "d:0").is_err());
    }
}
