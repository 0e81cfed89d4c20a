//! The first process of a job.

use std::{
    io::{self, Read},
    os::{fd::OwnedFd, unix::process::CommandExt},
    process::{Command, Stdio},
    time::Duration,
};

use rustix::{
    fs::{AtFlags, CWD},
    io::{Errno, retry_on_intr},
    process::{Pid, PidfdFlags, Signal, WaitOptions, pidfd_open, set_parent_process_death_signal},
};

use super::{Drain, Ended, Job, cgroup::Cgroup, monotonic};

/// Nanoseconds of CLOCK_MONOTONIC, KiB resident, and whether the cgroups were joined, eight bytes each.
const MESSAGE: usize = 24;

/// A process that runs the job's program.
#[derive(Debug)]
pub(super) struct Child {
    pub(super) pid: Pid,
    /// Readable when it has ended.
    pub(super) pidfd: OwnedFd,
    pub(super) out: Drain,
    pub(super) err: Drain,
    /// CLOCK_MONOTONIC right before `execve`.
    pub(super) start: Duration,
    /// What was resident then.
    pub(super) floor_bytes: u64,
    /// Whether it is in the job's cgroup.
    pub(super) joined: bool,
}

/// What `wait4` tells.
pub(super) struct Reaped {
    pub(super) ended: Ended,
    pub(super) user: Duration,
    pub(super) system: Duration,
    pub(super) max_rss_bytes: u64,
}

/// Starts `job` in `group`. When this returns the program has replaced our copy.
pub(super) fn spawn(job: &Job, group: Option<&Cgroup>) -> io::Result<Child> {
    let Some((program, arguments)) = job.argv.split_first() else {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "no command"));
    };
    let (out, out_end) = io::pipe()?;
    let (err, err_end) = io::pipe()?;
    let (mut told, tell) = io::pipe()?;
    let mut command = command(program);
    command.args(arguments).envs(job.environment.iter().map(|(name, value)| (name, value)));
    command.stdin(Stdio::null()).stdout(out_end).stderr(err_end).process_group(0);
    before_exec(&mut command, group.map_or_else(|| Ok(Vec::new()), Cgroup::doors)?, tell.into());
    let mut child = command.spawn().map_err(|error| explain(program, &error))?;
    // The command holds the writing ends, which would keep the reading ends from ever ending.
    drop(command);
    let attached = attach(child.id(), &mut told, out.into(), err.into(), job.output_limit);
    if attached.is_err() {
        child.kill()?;
        child.wait()?;
    }
    attached
}

/// Takes what the process told before it became the program.
fn attach(
    pid: u32,
    told: &mut io::PipeReader,
    out: OwnedFd,
    err: OwnedFd,
    limit: usize,
) -> io::Result<Child> {
    let pid = i32::try_from(pid).ok().and_then(Pid::from_raw).ok_or(Errno::SRCH)?;
    let mut message = [0; MESSAGE];
    told.read_exact(&mut message)?;
    let word = |index: usize| {
        let bytes = message.get(index * 8..index * 8 + 8).and_then(|bytes| bytes.try_into().ok());
        bytes.map_or(0, u64::from_ne_bytes)
    };
    Ok(Child {
        pid,
        pidfd: pidfd_open(pid, PidfdFlags::empty())?,
        out: Drain::new(out, limit)?,
        err: Drain::new(err, limit)?,
        start: Duration::from_nanos(word(0)),
        floor_bytes: word(1).saturating_mul(1024),
        joined: word(2) == 1,
    })
}

#[expect(clippy::disallowed_methods, reason = "the one place where the user's own command is run")]
fn command(program: &str) -> Command {
    Command::new(program)
}

/// What the copy of us does right before it becomes the program: it enters the cgroups, asks to end when we do, and
/// tells its clock and its size.
fn before_exec(command: &mut Command, doors: Vec<OwnedFd>, tell: OwnedFd) {
    let prepare = move || {
        // "0" stands for the writer (Documentation/admin-guide/cgroup-v2.rst, "Processes").
        let refused = doors
            .iter()
            .filter(|door| {
                rustix::io::write(
                    door, b"0
",
                )
                .is_err()
            })
            .count();
        set_parent_process_death_signal(Some(Signal::KILL))?;
        let size = resident_kib();
        let mut message = [0; MESSAGE];
        let start = u64::try_from(monotonic().as_nanos()).unwrap_or(u64::MAX);
        for (place, word) in message.chunks_exact_mut(8).zip([start, size, u64::from(refused == 0)]) {
            place.copy_from_slice(&word.to_ne_bytes());
        }
        rustix::io::write(&tell, &message)?;
        Ok(())
    };
    // SAFETY: after the fork only system calls are made and only the stack is written: no allocation, no lock, no
    // panic; the descriptors are owned by the closure, which lives as long as `command`.
    #[expect(unsafe_code, reason = "there is no other way to do something between fork and exec")]
    unsafe {
        command.pre_exec(prepare);
    }
}

/// The most that this process has had resident, in KiB: in a fresh copy, what it inherited (`dup_mm` in
/// kernel/fork.c starts the count there, and `exec_mmap` in fs/exec.c carries it over).
fn resident_kib() -> u64 {
    let mut usage = no_usage();
    // SAFETY: the kernel fills in the live structure and keeps nothing.
    #[expect(unsafe_code, reason = "neither std nor rustix wraps getrusage")]
    let failed = unsafe { libc::getrusage(libc::RUSAGE_SELF, &raw mut usage) } != 0;
    if failed { 0 } else { u64::try_from(usage.ru_maxrss).unwrap_or(0) }
}

/// Makes a copy of this process that ends at once, and waits for it: how long the kernel takes for that is one of the
/// things that zenkai measures. To be called in a process with one thread.
pub fn fork_and_wait() -> io::Result<()> {
    // SAFETY: the copy calls nothing but _exit, which is allowed after a fork whatever the process was doing.
    #[expect(unsafe_code, reason = "std has no fork without exec")]
    let pid = unsafe { libc::fork() };
    match pid {
        0 => {
            #[expect(
                unsafe_code,
                reason = "std's exit would run what was registered for the end of the original"
            )]
            // SAFETY: it ends the copy without running anything of ours.
            unsafe {
                libc::_exit(0)
            }
        }
        pid => {
            let pid = Pid::from_raw(pid).filter(|_| pid > 0).ok_or_else(io::Error::last_os_error)?;
            retry_on_intr(|| rustix::process::waitpid(Some(pid), WaitOptions::empty()))?;
            Ok(())
        }
    }
}

fn no_usage() -> libc::rusage {
    // SAFETY: rusage holds integers only, for which all bits zero is a value.
    #[expect(unsafe_code, reason = "the structure has private padding on some targets")]
    unsafe {
        std::mem::zeroed()
    }
}

/// Why `program` did not start, for its user.
fn explain(program: &str, error: &io::Error) -> io::Error {
    let here = program.contains('/');
    // execvp(3) says EACCES also when a directory of PATH is closed to the user and the program is nowhere.
    let kind = match error.kind() {
        io::ErrorKind::PermissionDenied if !here && !in_path(program) => io::ErrorKind::NotFound,
        kind => kind,
    };
    let text = match kind {
        io::ErrorKind::NotFound if here && exists(program) => {
            format!(
                "{program} cannot be run: the interpreter that its first line names, or its loader, is missing"
            )
        }
        io::ErrorKind::NotFound if here => format!("{program}: no such file"),
        io::ErrorKind::NotFound => format!("{program}: command not found; is it installed and in PATH?"),
        io::ErrorKind::PermissionDenied => {
            format!("{program} cannot be run: it is not executable for this user")
        }
        _ => format!("{program} cannot be run: {error}"),
    };
    io::Error::new(kind, text)
}

fn exists(path: impl rustix::path::Arg) -> bool {
    rustix::fs::statat(CWD, path, AtFlags::empty()).is_ok()
}

/// Whether the user's `PATH`, which is the program's too, leads to something of this name.
fn in_path(program: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).any(|dir| exists(dir.join(program)))
}

impl Child {
    /// Waits for it, which has ended or been killed, and takes what it used.
    pub(super) fn reap(&self) -> io::Result<Reaped> {
        let mut status = 0;
        let mut usage = no_usage();
        loop {
            // SAFETY: the kernel fills in the two live places and keeps nothing.
            #[expect(unsafe_code, reason = "neither std nor rustix gives the resources with the status")]
            let result = unsafe { libc::wait4(self.pid.as_raw_pid(), &raw mut status, 0, &raw mut usage) };
            if result >= 0 {
                break;
            }
            let error = io::Error::last_os_error();
            if error.kind() != io::ErrorKind::Interrupted {
                return Err(error);
            }
        }
        let ended = if libc::WIFSIGNALED(status) {
            Ended::Signalled(libc::WTERMSIG(status))
        } else {
            Ended::Exited(libc::WEXITSTATUS(status))
        };
        Ok(Reaped {
            ended,
            user: duration(&usage.ru_utime),
            system: duration(&usage.ru_stime),
            max_rss_bytes: u64::try_from(usage.ru_maxrss).unwrap_or(0).saturating_mul(1024),
        })
    }
}

fn duration(time: &libc::timeval) -> Duration {
    let seconds = u64::try_from(time.tv_sec).unwrap_or(0);
    let microseconds = u64::try_from(time.tv_usec).unwrap_or(0);
    Duration::from_secs(seconds).saturating_add(Duration::from_micros(microseconds))
}
