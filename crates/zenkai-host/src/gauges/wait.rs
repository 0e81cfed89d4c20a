//! Waiting for an interrupt, the end of a process, or a while.

#![expect(unsafe_code, reason = "neither std nor rustix makes a signalfd")]

use std::{
    io,
    mem::MaybeUninit,
    os::fd::{AsFd as _, BorrowedFd, FromRawFd as _, OwnedFd},
    os::unix::process::CommandExt as _,
    process::Command,
    time::Duration,
};

use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    io::Errno,
    process::{Pid, PidfdFlags, pidfd_open},
};

/// SIGINT, SIGTERM and SIGHUP as something to wait for instead of an end in mid-work.
#[derive(Debug)]
pub struct Interrupt(OwnedFd);

impl Interrupt {
    /// From now on these signals wait to be seen. To be called before threads are started, which take the mask of
    /// signals over. Processes that [`crate::workload`] starts do not.
    ///
    /// Ctrl-Z (SIGTSTP) does nothing from now on: stopped in mid-work we would leave the machine as it just is, and count
    /// the pause as the workload's time.
    ///
    /// What is ignored when we begin stays ignored: nohup(1) has us go on after the end of the session, and a shell without
    /// job control keeps Ctrl-C from what it runs in the background.
    pub fn watch() -> io::Result<Self> {
        let ends = [libc::SIGINT, libc::SIGTERM, libc::SIGHUP];
        // Blocked it would come all the same (kernel/signal.c, `sig_ignored`).
        let set = signals(ends.into_iter().filter(|signal| !is_ignored(*signal)));
        mask(libc::SIG_BLOCK, &set)?;
        mask(libc::SIG_BLOCK, &signals([libc::SIGTSTP]))?;
        // SAFETY: reads the set and makes a new descriptor.
        let fd = unsafe { libc::signalfd(-1, &raw const set, libc::SFD_CLOEXEC | libc::SFD_NONBLOCK) };
        if fd < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: the kernel has just opened this descriptor for us, and nothing else owns it.
        Ok(Self(unsafe { OwnedFd::from_raw_fd(fd) }))
    }

    /// Lets Ctrl-Z stop us as usual: for a command that shares our terminal, which it stops too. To be called before
    /// threads are started.
    pub fn may_be_stopped(&self) -> io::Result<()> {
        mask(libc::SIG_UNBLOCK, &signals([libc::SIGTSTP]))
    }

    /// Readable as soon as a signal has come.
    pub fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }

    /// Takes a signal that has come, so that the next can be waited for, and tells whom it reached.
    pub fn take(&self) -> Option<Sent> {
        // struct signalfd_siginfo (signalfd(2)): the signal's number, an error and a code, four bytes each.
        let mut information = [0_u8; 128];
        let length = rustix::io::read(&self.0, &mut information).ok()?;
        let code = information.get(..length)?.get(8..)?.first_chunk()?;
        let number = information.first_chunk()?;
        let by_kernel = i32::from_ne_bytes(*code) == libc::SI_KERNEL;
        let is_interrupt = i32::from_ne_bytes(*number) == libc::SIGINT;
        Some(if by_kernel && is_interrupt { Sent::ByTerminal } else { Sent::ToUs })
    }
}

/// Whom a signal reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sent {
    /// All that run in the terminal's foreground: somebody pressed Ctrl-C (drivers/tty/n_tty.c, `isig`).
    ByTerminal,
    /// This process, as far as one can know.
    ToUs,
}

/// Lets a command begin with no signal blocked, whatever is blocked here: a mask outlives `execve` (signal(7)), and
/// `std::process::Command` leaves it as it is. A daemon that is started so could not be ended by SIGTERM.
pub(crate) fn with_no_signal_blocked(command: &mut Command) -> &mut Command {
    let none = no_signals();
    // SAFETY: pthread_sigmask may be called between fork and exec (signal-safety(7)); nothing is allocated.
    unsafe { command.pre_exec(move || mask(libc::SIG_SETMASK, &none)) }
}

fn no_signals() -> libc::sigset_t {
    let mut set = MaybeUninit::<libc::sigset_t>::uninit();
    // SAFETY: sigemptyset fills in the set that it is given.
    unsafe { libc::sigemptyset(set.as_mut_ptr()) };
    // SAFETY: sigemptyset has just filled it in.
    unsafe { set.assume_init() }
}

fn signals(signals: impl IntoIterator<Item = libc::c_int>) -> libc::sigset_t {
    let mut set = no_signals();
    for signal in signals {
        // SAFETY: a set that was filled in and a signal that exists.
        unsafe { libc::sigaddset(&raw mut set, signal) };
    }
    set
}

fn is_ignored(signal: libc::c_int) -> bool {
    let mut action = MaybeUninit::<libc::sigaction>::uninit();
    // SAFETY: without a new action it only fills in the one that is in force.
    let told = unsafe { libc::sigaction(signal, std::ptr::null(), action.as_mut_ptr()) } == 0;
    // SAFETY: filled in, as it said so.
    told && unsafe { action.assume_init() }.sa_sigaction == libc::SIG_IGN
}

fn mask(how: libc::c_int, set: &libc::sigset_t) -> io::Result<()> {
    // SAFETY: reads the set; the old mask is not asked for.
    match unsafe { libc::pthread_sigmask(how, set, std::ptr::null_mut()) } {
        0 => Ok(()),
        error => Err(io::Error::from_raw_os_error(error)),
    }
}

/// What ended a wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Happened {
    /// The time is over.
    Nothing,
    /// Somebody wants us to end. It stays so until [`Interrupt::take`].
    Signal,
    /// The process has ended.
    Ended,
}

/// A process whose end can be waited for; who started it must still ask for its exit code.
#[derive(Debug)]
pub struct Process(OwnedFd);

impl Process {
    /// A process that runs.
    pub fn open(pid: u32) -> io::Result<Self> {
        let pid = i32::try_from(pid).ok().and_then(Pid::from_raw).ok_or(Errno::SRCH)?;
        Ok(Self(pidfd_open(pid, PidfdFlags::empty())?))
    }
}

/// Waits at most `time`. An interrupt goes before the end of the process.
pub fn wait(interrupt: &Interrupt, process: Option<&Process>, time: Duration) -> io::Result<Happened> {
    let time = Timespec {
        tv_sec: i64::try_from(time.as_secs()).unwrap_or(i64::MAX),
        tv_nsec: i64::from(time.subsec_nanos()),
    };
    let mut places = vec![PollFd::new(&interrupt.0, PollFlags::IN)];
    places.extend(process.map(|process| PollFd::new(&process.0, PollFlags::IN)));
    match poll(&mut places, Some(&time)) {
        // A signal of another kind; whoever waits looks at the clock anyway.
        Ok(0) | Err(Errno::INTR) => return Ok(Happened::Nothing),
        result => _ = result?,
    }
    let signal = places.first().is_some_and(|place| !place.revents().is_empty());
    Ok(if signal { Happened::Signal } else { Happened::Ended })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_end_of_a_process() {
        let interrupt = Interrupt::watch().unwrap();
        #[expect(clippy::disallowed_methods, reason = "a test needs a process")]
        let mut child = std::process::Command::new("true").spawn().unwrap();
        let process = Process::open(child.id()).unwrap();
        let happened = wait(&interrupt, Some(&process), Duration::from_secs(60)).unwrap();
        assert_eq!(happened, Happened::Ended);
        assert!(child.wait().unwrap().success());
    }

    #[test]
    fn a_command_gets_its_signals() {
        // In a thread of its own: only it has these signals blocked.
        let ended = std::thread::spawn(|| {
            let _interrupt = Interrupt::watch().unwrap();
            #[expect(clippy::disallowed_methods, reason = "a test needs a process")]
            let mut command = Command::new("sh");
            command.args(["-c", "kill -TERM $$; exit 3"]);
            with_no_signal_blocked(&mut command).spawn().unwrap().wait().unwrap()
        });
        let ended = ended.join().unwrap();
        assert_eq!(std::os::unix::process::ExitStatusExt::signal(&ended), Some(libc::SIGTERM));
    }

    /// Which of these signals are blocked where `watch` was called.
    fn blocked<const N: usize>(watch: fn() -> io::Result<Interrupt>, signals: [i32; N]) -> [bool; N] {
        // In a thread of its own: only it has these signals blocked.
        let status = std::thread::spawn(move || {
            let _interrupt = watch().unwrap();
            #[expect(clippy::disallowed_methods, reason = "a test looks at its own thread")]
            std::fs::read_to_string("/proc/thread-self/status").unwrap()
        });
        let status = status.join().unwrap();
        let blocked = status.lines().find_map(|line| line.strip_prefix("SigBlk:")).unwrap();
        let blocked = u64::from_str_radix(blocked.trim(), 16).unwrap();
        signals.map(|signal| blocked & 1 << (signal - 1) != 0)
    }

    #[test]
    fn nobody_stops_us_in_mid_work() {
        // The tests may run in the background or under nohup(1).
        let heard = [libc::SIGINT, libc::SIGTERM, libc::SIGHUP].map(|signal| !is_ignored(signal));
        assert_eq!(blocked(Interrupt::watch, [libc::SIGINT, libc::SIGTERM, libc::SIGHUP]), heard);
        assert_eq!(blocked(Interrupt::watch, [libc::SIGTSTP]), [true]);
    }

    #[test]
    fn who_shares_the_terminal_can_be_stopped() {
        let watch = || {
            let interrupt = Interrupt::watch()?;
            interrupt.may_be_stopped()?;
            Ok(interrupt)
        };
        assert_eq!(blocked(watch, [libc::SIGTERM, libc::SIGTSTP]), [true, false]);
    }

    #[test]
    fn a_signal_waits_until_it_is_seen() {
        // In a thread of its own: only it has these signals blocked.
        std::thread::spawn(|| {
            let interrupt = Interrupt::watch().unwrap();
            assert_eq!(wait(&interrupt, None, Duration::ZERO).unwrap(), Happened::Nothing);
            // SAFETY: it only tells which thread this is.
            let us = unsafe { libc::pthread_self() };
            // SAFETY: a signal to the calling thread, which has it blocked.
            unsafe { libc::pthread_kill(us, libc::SIGTERM) };
            assert_eq!(wait(&interrupt, None, Duration::from_secs(60)).unwrap(), Happened::Signal);
            assert_eq!(interrupt.take(), Some(Sent::ToUs));
            assert_eq!(interrupt.take(), None);
            assert_eq!(wait(&interrupt, None, Duration::ZERO).unwrap(), Happened::Nothing);
        })
        .join()
        .unwrap();
    }
}
