//! The first process of a job.

use std::{
    ffi::{CString, OsStr, c_char, c_int, c_void},
    io::{self, PipeReader, PipeWriter},
    os::{
        fd::{AsRawFd, OwnedFd, RawFd},
        unix::ffi::{OsStrExt, OsStringExt},
    },
    path::Path,
    ptr,
    time::Duration,
};

use rustix::{
    fs::{AtFlags, CWD, Mode, OFlags},
    io::retry_on_intr,
    process::{Pid, PidfdFlags, Signal, WaitOptions, kill_process_group, pidfd_open, waitpid},
};

use super::{
    Drain, Ended, Job,
    cgroup::{self, Cgroup},
    family::{self, Member},
};

/// Room for `execvpe`, which builds paths and a shell's argument list on the stack (execvp(3)).
const STACK: usize = 512 * 1024;
/// The most arguments and variables together; what execvpe puts on the stack for them stays below half of it.
const WORDS: usize = 30_000;

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
    /// Where it is in our process group: those that were told to end.
    family: Option<Vec<Member>>,
}

/// What `wait4` tells.
pub(super) struct Reaped {
    pub(super) ended: Ended,
    pub(super) user: Duration,
    pub(super) system: Duration,
    pub(super) max_rss_bytes: u64,
}

/// Starts `job` in `group`. When this returns the program has taken the place of our code.
///
/// The new process shares our memory until then, as with posix_spawn(3): a copy of our memory would have to be thrown
/// away by `execve`, which takes milliseconds when we are large, and would count as the workload's time.
pub(super) fn spawn(job: &Job, group: Option<&Cgroup>) -> io::Result<Child> {
    let Some(program) = job.argv.first() else {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "no command"));
    };
    let streams = if job.terminal { None } else { Some(Streams::open()?) };
    let doors = group.map_or_else(|| Ok(Vec::new()), Cgroup::doors)?;
    let argv = c_strings(job.argv.iter().map(|word| word.as_bytes().to_vec()))?;
    let environment = c_strings(variables(&job.environment))?;
    if argv.len() + environment.len() > WORDS {
        return Err(io::Error::new(io::ErrorKind::ArgumentListTooLong, "too many arguments and variables"));
    }
    let arguments = pointers(&argv);
    let variables = pointers(&environment);
    let doors_raw: Vec<RawFd> = doors.iter().map(AsRawFd::as_raw_fd).collect();
    let mut launch = Launch {
        argv: arguments.as_ptr(),
        environment: variables.as_ptr(),
        doors: &doors_raw,
        streams: streams.as_ref().map(Streams::ends),
        start: libc::timespec { tv_sec: 0, tv_nsec: 0 },
        joined: true,
        error: 0,
    };
    let floor_bytes = floor_bytes();
    let pid = clone(&mut launch)?;
    if launch.error != 0 {
        retry_on_intr(|| waitpid(Some(pid), WaitOptions::empty()))?;
        return Err(explain(program, &io::Error::from_raw_os_error(launch.error)));
    }
    let attach = || {
        let (out, err) =
            streams.map_or_else(|| Ok(Default::default()), |streams| streams.drains(job.output_limit))?;
        Ok(Child {
            pid,
            pidfd: pidfd_open(pid, PidfdFlags::empty())?,
            out,
            err,
            start: super::duration(rustix::time::Timespec {
                tv_sec: launch.start.tv_sec,
                tv_nsec: launch.start.tv_nsec,
            }),
            floor_bytes,
            joined: launch.joined,
            family: job.terminal.then(Vec::new),
        })
    };
    let attached = attach();
    if attached.is_err() {
        let _ = rustix::process::kill_process(pid, rustix::process::Signal::KILL);
        retry_on_intr(|| waitpid(Some(pid), WaitOptions::empty()))?;
    }
    attached
}

/// Where a process reads and writes that does not have the user's terminal.
struct Streams {
    null: OwnedFd,
    out: (PipeReader, PipeWriter),
    err: (PipeReader, PipeWriter),
}

impl Streams {
    fn open() -> io::Result<Self> {
        let null = rustix::fs::open("/dev/null", OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty())?;
        Ok(Self { null, out: io::pipe()?, err: io::pipe()? })
    }

    /// What the process gets.
    fn ends(&self) -> [RawFd; 3] {
        [self.null.as_raw_fd(), self.out.1.as_raw_fd(), self.err.1.as_raw_fd()]
    }

    /// Our ends. The writing ends are closed here: they would keep the reading ends from ever ending.
    fn drains(self, limit: usize) -> io::Result<(Drain, Drain)> {
        Ok((Drain::new(self.out.0.into(), limit)?, Drain::new(self.err.0.into(), limit)?))
    }
}

fn c_strings(words: impl IntoIterator<Item = Vec<u8>>) -> io::Result<Vec<CString>> {
    words.into_iter().map(|word| Ok(CString::new(word)?)).collect()
}

/// The inherited variables and those of the job, as `NAME=VALUE`; of two with one name the job's.
fn variables(own: &[(String, String)]) -> Vec<Vec<u8>> {
    let mut all: Vec<Vec<u8>> = std::env::vars_os()
        .filter(|(name, _)| !own.iter().any(|(own, _)| OsStr::new(own) == name))
        .map(|(name, value)| [&name.into_vec(), b"=".as_slice(), value.as_bytes()].concat())
        .collect();
    all.extend(own.iter().map(|(name, value)| format!("{name}={value}").into_bytes()));
    all
}

/// As C wants a list of strings: with a null at the end.
fn pointers(strings: &[CString]) -> Vec<*const c_char> {
    strings.iter().map(|string| string.as_ptr()).chain([ptr::null()]).collect()
}

/// What the new process needs, and what it tells.
struct Launch<'a> {
    argv: *const *const c_char,
    environment: *const *const c_char,
    doors: &'a [RawFd],
    /// `None`: it keeps ours, and our process group.
    streams: Option<[RawFd; 3]>,
    /// CLOCK_MONOTONIC right before `execve`.
    start: libc::timespec,
    /// Whether all doors opened.
    joined: bool,
    /// Why `execve` failed; 0 when it did not.
    error: c_int,
}

/// Runs [`launch`] in a new process and waits until that has become the program or ended.
fn clone(launch_it: &mut Launch) -> io::Result<Pid> {
    let mut stack = vec![0_u8; STACK];
    // Stacks grow downwards on every machine that Linux runs on but one (PA-RISC), from an aligned end.
    let end = stack.as_mut_ptr_range().end;
    let end = end.wrapping_sub(end.addr() % 64);
    // A handler of ours must not run in the other process, which shares our memory.
    let blocked = set_mask(&all_signals())?;
    let flags = libc::CLONE_VM | libc::CLONE_VFORK | libc::SIGCHLD;
    // SAFETY: with CLONE_VFORK this thread stands still until the new process has called execve or ended, so that the
    // stack and what `launch_it` refers to outlive their use, and nobody else touches them meanwhile.
    #[expect(unsafe_code, reason = "neither std nor rustix can do something between vfork and exec")]
    let pid = unsafe { libc::clone(launch, end.cast(), flags, ptr::from_mut(launch_it).cast()) };
    let error = io::Error::last_os_error();
    set_mask(&blocked)?;
    Pid::from_raw(pid).filter(|_| pid > 0).ok_or(error)
}

/// The new process: it enters the cgroups, asks to end when we do, takes its streams, and becomes the program.
extern "C" fn launch(launch: *mut c_void) -> c_int {
    // SAFETY: `clone` passes a `Launch` that nobody else uses meanwhile.
    #[expect(unsafe_code, reason = "clone hands over a raw pointer")]
    let launch = unsafe { &mut *launch.cast::<Launch>() };
    for door in launch.doors {
        // "0" stands for the writer (Documentation/admin-guide/cgroup-v2.rst, "Processes").
        // SAFETY: the buffer is a literal of two bytes.
        #[expect(unsafe_code, reason = "a descriptor's bare number")]
        let written = unsafe { libc::write(*door, c"0\n".as_ptr().cast(), 2) };
        launch.joined &= written == 2;
    }
    default_signals();
    // SAFETY: system calls on this process alone: its table of descriptors and of signal handlers are copies. The
    // strings and lists are alive, see `clone`. Nothing is allocated and no lock is taken.
    #[expect(unsafe_code, reason = "between vfork and exec there are only bare system calls")]
    #[expect(clippy::multiple_unsafe_ops_per_block, reason = "they have one reason to be sound")]
    unsafe {
        let apart = launch.streams.is_none_or(|[input, output, error]| {
            libc::setsid() != -1
                && libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL) == 0
                && libc::dup2(input, 0) == 0
                && libc::dup2(output, 1) == 1
                && libc::dup2(error, 2) == 2
        });
        if apart && libc::clock_gettime(libc::CLOCK_MONOTONIC, &raw mut launch.start) == 0 {
            libc::execvpe(*launch.argv, launch.argv, launch.environment);
        }
        launch.error = *libc::__errno_location();
        libc::_exit(127)
    }
}

/// The program starts as from a shell: no signal is blocked or has a handler, and SIGPIPE, which Rust programs ignore,
/// ends it. What else our caller made us ignore (nohup) stays ignored.
fn default_signals() {
    for signal in 1..=libc::SIGRTMAX() {
        // SAFETY: the structure holds a number and masks, for which all bits zero is a value (the default action); the
        // kernel reads or fills live places. Signals that cannot be caught give an error, which does not matter.
        #[expect(unsafe_code, reason = "neither std nor rustix sets handlers")]
        #[expect(clippy::multiple_unsafe_ops_per_block, reason = "they have one reason to be sound")]
        unsafe {
            let mut action: libc::sigaction = std::mem::zeroed();
            let known = libc::sigaction(signal, ptr::null(), &raw mut action) == 0;
            if known && (action.sa_sigaction != libc::SIG_IGN || signal == libc::SIGPIPE) {
                let default: libc::sigaction = std::mem::zeroed();
                libc::sigaction(signal, &raw const default, ptr::null_mut());
            }
        }
    }
    // SAFETY: the set is filled before it is used.
    #[expect(unsafe_code, reason = "neither std nor rustix sets masks")]
    #[expect(clippy::multiple_unsafe_ops_per_block, reason = "they have one reason to be sound")]
    unsafe {
        let mut none: libc::sigset_t = std::mem::zeroed();
        libc::sigemptyset(&raw mut none);
        libc::sigprocmask(libc::SIG_SETMASK, &raw const none, ptr::null_mut());
    }
}

fn all_signals() -> libc::sigset_t {
    // SAFETY: a set is a mask, for which all bits zero is a value; it is alive while it is filled.
    #[expect(unsafe_code, reason = "neither std nor rustix has sets of signals")]
    #[expect(clippy::multiple_unsafe_ops_per_block, reason = "they have one reason to be sound")]
    unsafe {
        let mut all: libc::sigset_t = std::mem::zeroed();
        libc::sigfillset(&raw mut all);
        all
    }
}

/// Sets the signals that this thread blocks and gives those it blocked before.
fn set_mask(mask: &libc::sigset_t) -> io::Result<libc::sigset_t> {
    let mut before = all_signals();
    // SAFETY: both sets are alive.
    #[expect(unsafe_code, reason = "neither std nor rustix sets masks")]
    let error = unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, mask, &raw mut before) };
    if error == 0 { Ok(before) } else { Err(io::Error::from_raw_os_error(error)) }
}

/// Up to what size a process's `ru_maxrss` may be ours: `exec_mmap` in fs/exec.c hands over the most that the memory
/// before `execve` had resident, and that is our memory. The kernel counts in batches on each CPU (include/linux/mm.h:
/// `get_mm_counter`), hence the margin. (Our own `ru_maxrss` would be that of whoever started us, in the same way.)
fn floor_bytes() -> u64 {
    const MARGIN: u64 = 1024 * 1024;
    let status = cgroup::read(Path::new("/proc/self/status")).unwrap_or_default();
    let kib =
        status.lines().find_map(|line| line.strip_prefix("VmHWM:")?.trim().strip_suffix(" kB")?.parse().ok());
    let ours = kib.unwrap_or(u64::MAX).saturating_mul(1024);
    ours.saturating_add(ours / 8).saturating_add(MARGIN)
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
            retry_on_intr(|| waitpid(Some(pid), WaitOptions::empty()))?;
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
    /// Sends a signal to its process group, or where that is ours too, to it and to what descends from it now.
    pub(super) fn signal(&mut self, signal: Signal) {
        let Some(family) = &mut self.family else {
            // It fails only when the whole group has gone already.
            let _ = kill_process_group(self.pid, signal);
            return;
        };
        family.extend(family::members(self.pid));
        for member in family {
            member.signal(signal);
        }
    }

    /// Kills what is left: its process group, or those that were told to end before. It is not reaped yet, so that its
    /// number still means this group.
    pub(super) fn kill_rest(&self) {
        match &self.family {
            // It fails only when nothing is left.
            None => _ = kill_process_group(self.pid, Signal::KILL),
            Some(family) => family.iter().for_each(|member| member.signal(Signal::KILL)),
        }
    }

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
