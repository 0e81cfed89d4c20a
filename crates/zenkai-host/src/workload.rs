//! Running the user's own command and telling what it took: the workload of an experiment.
//!
//! Unlike a profile's script ([`crate::Act`]) it is started as a shell would start it: the user's environment, the
//! user's `PATH`, the user's directory. It has a session of its own, so that Ctrl-C reaches only us, and so that a program
//! that asks for a password at the terminal (ssh, sudo) fails; in the background of our session it would be stopped, and
//! we would wait for ever. Or it keeps the user's terminal, where that is asked for.

mod cgroup;
mod child;
mod family;
mod output;
mod stuck;

use std::{
    io,
    os::fd::BorrowedFd,
    path::Path,
    time::{Duration, Instant},
};

use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    io::Errno,
    process::Signal,
    time::{ClockId, clock_gettime},
};

pub use cgroup::end_leftovers;
pub use child::fork_and_wait;

use cgroup::Cgroup;
use output::Drain;

/// Between the request to end (SIGTERM) and the order (SIGKILL) after a timeout or an interrupt: time enough to remove
/// temporary files.
const GRACE: Duration = Duration::from_secs(1);
/// How long a killed process may take to go before the user hears of it. Freeing the memory of a large one takes a second
/// or two; one in uninterruptible sleep goes when what it waits for has come (a disk, a server of NFS), and that may never
/// be.
const PATIENCE: Duration = Duration::from_secs(3);

/// What to run, and within what bounds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Job {
    /// Program, looked for in the user's `PATH` unless it has a slash, and its arguments. No shell is between.
    pub argv: Vec<String>,
    /// Variables besides the inherited ones.
    pub environment: Vec<(String, String)>,
    /// When it is ended.
    pub timeout: Option<Duration>,
    /// Whether it gets a cgroup of its own (version 2) where one can be made.
    pub cgroup: bool,
    /// CPU bandwidth: quota and period in microseconds (`cpu.max`). Where it cannot be set the job is refused: it is
    /// there to make an effect of known size.
    pub cpu_max: Option<(u64, u64)>,
    /// How many bytes of each output are kept: the last ones.
    pub output_limit: usize,
    /// Whether it keeps the user's terminal, as under time(1): input and outputs are ours, it stays in our process group,
    /// so that Ctrl-C and Ctrl-Z reach it and it may read from the terminal, and it outlives us when we are killed.
    /// Nothing that it writes is kept then. What it leaves running goes on, in our own cgroup. When it is ended, so is
    /// all that is in its cgroup, or without one, what descends from it at that moment.
    pub terminal: bool,
}

/// How a job ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ended {
    /// With this exit code.
    Exited(i32),
    /// By this signal, which was not ours.
    Signalled(i32),
    /// We ended it: it took too long.
    TimedOut,
    /// We ended it: the user asked for that.
    Interrupted,
}

/// What is told of a job while it runs.
#[derive(Debug)]
pub enum Told<'a> {
    /// It runs. The time that whoever hears of it takes is not added to the job's, as long as the job takes longer.
    Started(Started<'a>),
    /// It was killed and is still there: why, for the user, who may give up now.
    Stuck(&'a str),
    /// The first process has ended and its cgroup is still there: whoever reads the group's counters reads them for the
    /// last time.
    Ended,
    /// Something that it left running was killed and is still there: why, for the user. Other jobs run beside it.
    Left(&'a str),
}

/// A job that has begun.
#[derive(Debug)]
pub struct Started<'a> {
    /// Its first process, whose process group has the same number.
    pub pid: i32,
    /// The directory of its cgroup, or why it is in none.
    pub cgroup: Result<&'a Path, &'a str>,
}

/// What a job took.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ran {
    /// How it ended.
    pub ended: Ended,
    /// From the moment before `execve` to the end of the first process (CLOCK_MONOTONIC). Making the process and moving
    /// it to a cgroup are not in it.
    pub elapsed: Duration,
    /// CPU time in user mode of the first process and the descendants that were waited for (`wait4`).
    pub user: Duration,
    /// CPU time in the kernel, likewise.
    pub system: Duration,
    /// The most memory that one of these processes had resident (`ru_maxrss`). Linux hands over what was resident
    /// before `execve`, so that it is never less than our own.
    pub max_rss_bytes: u64,
    /// Our own, with a margin for how exactly the kernel counts. A larger `max_rss_bytes` is the workload's; any other
    /// only says that the workload had no more than this.
    pub max_rss_floor_bytes: u64,
    /// The end of its standard output.
    pub stdout: Vec<u8>,
    /// The end of its standard error.
    pub stderr: Vec<u8>,
    /// Whether the beginning of one of them was thrown away.
    pub output_cut: bool,
    /// How long the machine was suspended meanwhile: CLOCK_BOOTTIME counts that, CLOCK_MONOTONIC does not.
    pub suspended: Duration,
    /// Whether the wall clock was set meanwhile, by more than one second.
    pub clock_step: bool,
}

/// Runs `job` to its end. `interrupt` ends it early as soon as it is readable: a wish is read from it, at most 128 bytes,
/// which is one signal of a signalfd(2). Of a job that is [`Told::Stuck`] the next wish is to wait for it no longer.
///
/// What the job left running is killed: all that is in its cgroup, or without one, its process group. But for one that
/// keeps the user's terminal: see there.
///
/// Errors: it could not be started, and the message names the program and the reason; or it was given up and still runs
/// ([`io::ErrorKind::Interrupted`]).
pub fn run(job: &Job, interrupt: Option<BorrowedFd>, told: &mut dyn FnMut(&Told)) -> io::Result<Ran> {
    prepare(job)?.run(interrupt, told)
}

/// A job that has not begun, with its cgroup.
#[derive(Debug)]
pub struct Prepared<'a> {
    job: &'a Job,
    group: Result<Cgroup, String>,
}

/// Makes the cgroup that `job` is to have, so that it can be watched from before the job begins.
///
/// Errors: `cpu_max` is asked for and cannot be set.
pub fn prepare(job: &Job) -> io::Result<Prepared<'_>> {
    let group = Cgroup::make(job);
    if let (Some(_), Err(why)) = (job.cpu_max, &group) {
        return Err(io::Error::other(format!("cpu.max cannot be set: {why}")));
    }
    Ok(Prepared { job, group })
}

/// Why a process with a cgroup of its own is not in it.
const NOT_LET_IN: &str = "the process was not let in";

impl Prepared<'_> {
    /// The directory of its cgroup, or why it has none. Whether it was let in tells [`Started`].
    pub fn cgroup(&self) -> Result<&Path, &str> {
        directory(&self.group)
    }

    /// As [`run`].
    pub fn run(self, interrupt: Option<BorrowedFd>, told: &mut dyn FnMut(&Told)) -> io::Result<Ran> {
        let Self { job, mut group } = self;
        let clocks = Clocks::now();
        let mut child = child::spawn(job, group.as_ref().ok())?;
        if job.cpu_max.is_some() && !child.joined {
            abandon(&mut child, group.as_mut().ok(), PATIENCE);
            return Err(io::Error::other(format!("cpu.max cannot be set: {NOT_LET_IN}")));
        }
        let cgroup = if child.joined { directory(&group) } else { Err(NOT_LET_IN) };
        told(&Told::Started(Started { pid: child.pid.as_raw_pid(), cgroup }));
        let (forced, end) = match wait(job, interrupt, &mut child, told) {
            Ok(ended) => ended,
            Err(error) => {
                let is_given_up = error.kind() == io::ErrorKind::Interrupted;
                let patience = if is_given_up { Duration::ZERO } else { PATIENCE };
                abandon(&mut child, group.as_mut().ok(), patience);
                return Err(error);
            }
        };
        let (suspended, clock_step) = clocks.since();
        told(&Told::Ended);
        if !job.terminal || forced.is_some() {
            end_all(&child, group.as_mut().ok());
        }
        child.out.rest()?;
        child.err.rest()?;
        let reaped = child.reap()?;
        if let Some(why) = group.ok().and_then(|mut group| group.close()) {
            told(&Told::Left(&why));
        }
        Ok(Ran {
            ended: forced.unwrap_or(reaped.ended),
            elapsed: end.saturating_sub(child.start),
            user: reaped.user,
            system: reaped.system,
            max_rss_bytes: reaped.max_rss_bytes,
            max_rss_floor_bytes: child.floor_bytes,
            output_cut: child.out.cut || child.err.cut,
            stdout: std::mem::take(&mut child.out).kept(),
            stderr: std::mem::take(&mut child.err).kept(),
            suspended,
            clock_step,
        })
    }
}

fn directory(group: &Result<Cgroup, String>) -> Result<&Path, &str> {
    let group = group.as_ref().map_err(String::as_str)?;
    group.dir().ok_or("no cgroup version 2 hierarchy that can be written")
}

/// How far the first process has been brought to end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Step {
    Runs,
    /// It was asked to (SIGTERM).
    Asked,
    /// It was killed.
    Killed,
    /// It was killed, and the user knows that it does not go.
    Stuck,
}

/// Waits for the first process. Gives how we ended it, if we did, and when it had ended on CLOCK_MONOTONIC.
fn wait(
    job: &Job,
    interrupt: Option<BorrowedFd>,
    child: &mut child::Child,
    told: &mut dyn FnMut(&Told),
) -> io::Result<(Option<Ended>, Duration)> {
    let start = Instant::now();
    let mut limit = job.timeout;
    let mut forced = None;
    let mut step = Step::Runs;
    loop {
        let left = limit.map(|limit| limit.saturating_sub(start.elapsed()));
        // In between a wish waits: there is nothing more to be done then.
        let asked = interrupt.filter(|_| matches!(step, Step::Runs | Step::Stuck));
        match (next(child, asked, left)?, step) {
            (Woken::Ended, _) => return Ok((forced, monotonic())),
            (Woken::Else, _) | (Woken::Late, Step::Stuck) => continue,
            (Woken::Interrupted, Step::Stuck) => return Err(io::ErrorKind::Interrupted.into()),
            (woken @ (Woken::Interrupted | Woken::Late), Step::Runs) => {
                child.signal(Signal::TERM);
                let ended = if woken == Woken::Late { Ended::TimedOut } else { Ended::Interrupted };
                (forced, step, limit) = (Some(ended), Step::Asked, Some(GRACE));
            }
            (_, Step::Asked) => {
                child.signal(Signal::KILL);
                (step, limit) = (Step::Killed, Some(PATIENCE));
            }
            (_, Step::Killed) => {
                told(&Told::Stuck(&stuck::why(Path::new("/proc"), child.pid)));
                (step, limit) = (Step::Stuck, None);
            }
        }
        limit = limit.map(|limit| start.elapsed() + limit);
    }
}

/// What has happened.
#[derive(PartialEq, Eq)]
enum Woken {
    Ended,
    Interrupted,
    /// The time is up.
    Late,
    /// It wrote something, which has been read.
    Else,
}

fn next(
    child: &mut child::Child,
    interrupt: Option<BorrowedFd>,
    left: Option<Duration>,
) -> io::Result<Woken> {
    let mut waited = vec![PollFd::new(&child.pidfd, PollFlags::IN)];
    let [out, err, asked] = [child.out.fd(), child.err.fd(), interrupt].map(|fd| {
        waited.push(PollFd::from_borrowed_fd(fd?, PollFlags::IN));
        Some(waited.len() - 1)
    });
    let time = left.map(Timespec::try_from).transpose().map_err(|_| Errno::INVAL)?;
    match poll(&mut waited, time.as_ref()) {
        Err(Errno::INTR) => return Ok(Woken::Else),
        result => result?,
    };
    let set = |index: Option<usize>| {
        index.and_then(|index| waited.get(index)).is_some_and(|fd| !fd.revents().is_empty())
    };
    let [ended, asked, out, err] = [Some(0), asked, out, err].map(set);
    if ended {
        return Ok(Woken::Ended);
    }
    if out {
        child.out.read()?;
    }
    if err {
        child.err.read()?;
    }
    if let Some(wish) = interrupt.filter(|_| asked) {
        // Of an end that was closed there is nothing to read, and that is a wish too.
        let _ = rustix::io::read(wish, &mut [0_u8; 128]);
        return Ok(Woken::Interrupted);
    }
    // Also of a job that writes without a pause.
    let is_late = left.is_some_and(|left| left.is_zero()) || !out && !err;
    Ok(if is_late { Woken::Late } else { Woken::Else })
}

/// Kills the first process and what came of it, and waits for it so long.
fn abandon(child: &mut child::Child, group: Option<&mut Cgroup>, patience: Duration) {
    child.signal(Signal::KILL);
    end_all(child, group);
    let time = Timespec::try_from(patience).ok();
    let mut waited = [PollFd::new(&child.pidfd, PollFlags::IN)];
    // Who is still there when we end is init's.
    if poll(&mut waited, time.as_ref()) == Ok(1) {
        let _ = child.reap();
    }
}

/// Kills what is left. The first process is not reaped yet, so that its number still means this group.
fn end_all(child: &child::Child, group: Option<&mut Cgroup>) {
    child.kill_rest();
    if let Some(group) = group {
        group.kill();
    }
}

/// CLOCK_MONOTONIC.
fn monotonic() -> Duration {
    duration(clock_gettime(ClockId::Monotonic))
}

fn duration(time: Timespec) -> Duration {
    Duration::try_from(time).unwrap_or_default()
}

/// The three clocks at one moment.
#[derive(Debug, Clone, Copy)]
struct Clocks {
    real: Duration,
    boot: Duration,
    /// CLOCK_MONOTONIC before and after the others: a busy machine may let us wait in between.
    monotonic: [Duration; 2],
}

impl Clocks {
    fn now() -> Self {
        let now = |clock| duration(clock_gettime(clock));
        let before = monotonic();
        let (real, boot) = (now(ClockId::Realtime), now(ClockId::Boottime));
        Self { real, boot, monotonic: [before, monotonic()] }
    }

    /// How long the machine was suspended since, and whether its wall clock was set.
    fn since(&self) -> (Duration, bool) {
        self.until(&Self::now())
    }

    fn until(&self, now: &Self) -> (Duration, bool) {
        const STEP: Duration = Duration::from_secs(1);
        let passed = now.boot.saturating_sub(self.boot);
        // The longest that it can have been awake: what we waited between two readings is no suspend.
        let awake = now.monotonic[1].saturating_sub(self.monotonic[0]);
        let expected = self.real.saturating_add(passed);
        let suspended = Some(passed.saturating_sub(awake)).filter(|time| *time >= Duration::from_millis(1));
        (suspended.unwrap_or_default(), now.real.abs_diff(expected) > STEP)
    }
}

#[cfg(test)]
mod tests;
