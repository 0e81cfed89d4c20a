//! A process and what descends from it, for a process that shares our process group.

use std::{os::fd::OwnedFd, path::Path};

use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};

use super::cgroup::{directories, read};

/// Processes that are looked for at most.
const MOST: usize = 4096;

/// A process, whatever becomes of its number.
#[derive(Debug)]
pub(super) struct Member(OwnedFd);

impl Member {
    /// Sends a signal; a process that has gone is what was wanted.
    pub(super) fn signal(&self, signal: Signal) {
        let _ = pidfd_send_signal(&self.0, signal);
    }
}

/// `first` and its descendants as they are now, by `/proc/PID/task/TID/children` (proc_tid_children(5)). A kernel without
/// that file (CONFIG_PROC_CHILDREN) gives the first only. One whose parent has ended is nobody's descendant any more.
pub(super) fn members(first: Pid) -> Vec<Member> {
    let mut pids = vec![first];
    let mut at = 0;
    while let Some(&pid) = pids.get(at)
        && pids.len() < MOST
    {
        pids.extend(children(pid));
        at += 1;
    }
    let open = |pid| pidfd_open(pid, PidfdFlags::empty()).ok().map(Member);
    pids.into_iter().filter_map(open).collect()
}

fn children(pid: Pid) -> Vec<Pid> {
    let tasks = directories(Path::new(&format!("/proc/{}/task", pid.as_raw_pid())));
    let texts = tasks.into_iter().map(|task| read(&task.join("children")).unwrap_or_default());
    let pids = |text: String| -> Vec<Pid> {
        text.split_whitespace().filter_map(|pid| Pid::from_raw(pid.parse().ok()?)).collect()
    };
    texts.flat_map(pids).collect()
}
