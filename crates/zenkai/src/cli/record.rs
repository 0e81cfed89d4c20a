//! `zenkai record`

mod live;
mod runs;
mod show;

use std::{
    fs::OpenOptions,
    io::Write,
    path::{Path, PathBuf},
    process::Child,
    time::{Duration, Instant},
};

use anyhow::{Context as _, anyhow};
use clap::builder::ArgPredicate;
use zenkai_host::gauges::{Happened, Interrupt, Process, wait};
use zenkai_measure::sampler::{Live, Options, Recording, Sampler};

use super::{CommandError, Exit};
pub(super) use runs::CAPTURE;

/// Record what the machine does: while a command runs, for some time, or until Ctrl-C
///
/// At the end every channel is shown with its mean, least and greatest value, and what could not be measured with the
/// reason. The recorder's own CPU time is told. Exit code: 1 when the command failed.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// How long: 500ms, 60s, 5m, 1h [default: until the command ends, or Ctrl-C]
    #[arg(long = "for", value_name = "TIME", value_parser = super::time::duration)]
    time: Option<Duration>,
    /// From one sample to the next: 10ms to 1s [with --runs: 250ms]
    #[arg(long, value_name = "TIME", default_value = "1s", default_value_if("runs", ArgPredicate::IsPresent, "250ms"), value_parser = super::time::duration)]
    interval: Duration,
    /// Write the recording to this file, which must not exist yet
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Show a line every second, as vmstat does
    #[arg(long)]
    live: bool,
    /// Also record this cgroup (version 2): a service or a container
    #[arg(long, value_name = "DIR")]
    cgroup: Option<String>,
    /// Also record this process and what it starts from now on
    #[arg(long, value_name = "PID", conflicts_with = "cgroup")]
    pid: Option<u32>,
    /// Keep the recorder on this CPU
    #[arg(long, value_name = "CPU")]
    cpu: Option<usize>,
    /// Show a recording that was made before
    #[arg(long, value_name = "FILE", conflicts_with_all = ["time", "output", "live", "cgroup", "pid", "cpu", "command"])]
    show: Option<PathBuf>,
    #[command(flatten)]
    several: runs::Several,
    /// Show channels that stayed at zero too
    #[arg(long)]
    all: bool,
    /// Write JSON
    #[arg(long, conflicts_with = "live")]
    json: bool,
    /// The command to run, with its arguments
    #[arg(last = true, value_name = "COMMAND")]
    command: Vec<String>,
}

pub(super) fn run(args: &Args, out: &mut dyn Write, err: &mut dyn Write) -> Result<Exit, CommandError> {
    if let Some(path) = &args.show {
        show::show(&read(path)?, args.all, args.json, out)?;
        return Ok(Exit::Fine);
    }
    if !Options::INTERVALS.contains(&args.interval) {
        return Err(CommandError::usage(anyhow!("--interval must be 10ms to 1s")));
    }
    if let Some(runs) = args.several.runs {
        return args.several.carry_out(runs, &args.command, args.interval, args.json, out, err);
    }
    let interrupt = Interrupt::watch()?;
    let mut file = args.output.as_deref().map(create).transpose()?;
    let mut options =
        Options { interval: args.interval, cgroup: args.cgroup.clone(), pid: args.pid, cpu: args.cpu };
    if options.cgroup.is_none() && options.pid.is_none() && !args.command.is_empty() {
        // What we start from now on belongs to us.
        options.pid = Some(std::process::id());
    }
    let sampler = Sampler::start(&options)?;
    let child = start(&args.command, &interrupt)?;
    let session = Session { args, interrupt, sampler, live: Live::default(), body: Recording::mark() };
    let (recording, exit) = session.follow(child, file.as_mut(), out, err)?;
    if !args.live {
        show::show(&recording, args.all, args.json, out)?;
    }
    if let Some(path) = &args.output {
        let shown = path.display();
        writeln!(err, "zenkai: wrote {shown}; zenkai record --show {shown} shows it again")?;
    }
    Ok(exit)
}

fn read(path: &Path) -> Result<Recording, CommandError> {
    let shown = path.display();
    Recording::read(path).map_err(|error| CommandError::usage(anyhow!("{shown}: {error}")))
}

/// A recording goes to its file as it comes, so that an end in mid-work leaves what there is.
fn create(path: &Path) -> Result<std::fs::File, CommandError> {
    let shown = path.display();
    let file = OpenOptions::new().write(true).create_new(true).open(path);
    let mut file = file.map_err(|error| CommandError::usage(anyhow!("cannot write {shown}: {error}")))?;
    file.write_all(&Recording::mark())?;
    Ok(file)
}

/// The user's own command, with the user's terminal.
#[expect(clippy::disallowed_methods, reason = "the user asked to run this command")]
fn start(command: &[String], interrupt: &Interrupt) -> Result<Option<Child>, CommandError> {
    let Some((program, args)) = command.split_first() else { return Ok(None) };
    let mut command = std::process::Command::new(program);
    command.args(args);
    let child = interrupt.spawn(command);
    Ok(Some(child.with_context(|| format!("cannot run {program}")).map_err(CommandError::usage)?))
}

/// A recording that is being made.
struct Session<'args> {
    args: &'args Args,
    interrupt: Interrupt,
    sampler: Sampler,
    live: Live,
    /// What has been recorded so far, where it is not in a file.
    body: Vec<u8>,
}

/// How often the newest samples are written to the file and shown.
const STEP: Duration = Duration::from_secs(1);

impl Session<'_> {
    fn follow(
        mut self,
        mut child: Option<Child>,
        mut file: Option<&mut std::fs::File>,
        out: &mut dyn Write,
        err: &mut dyn Write,
    ) -> Result<(Recording, Exit), CommandError> {
        let process = child.as_ref().map(|child| Process::open(child.id())).transpose()?;
        let start = Instant::now();
        let mut lines = 0;
        loop {
            let next = STEP * (lines + 1);
            let end = self.args.time.unwrap_or(Duration::MAX);
            let left = next.min(end).saturating_sub(start.elapsed());
            let happened = wait(&self.interrupt, process.as_ref(), left)?;
            let over = happened != Happened::Nothing || start.elapsed() >= end;
            if start.elapsed() >= next || over {
                lines += 1;
                self.keep(file.as_deref_mut())?;
            }
            if over {
                break;
            }
            if self.args.live {
                live::line(&self.live.values(), lines - 1, out)?;
            }
        }
        let exit = self.end(child.as_mut(), err)?;
        let mark = Recording::mark().len();
        let rest = self.sampler.stop().to_bytes().split_off(mark);
        if let Some(file) = file {
            file.write_all(&rest)?;
            file.sync_all()?;
        }
        self.body.extend(rest);
        let recording = match &self.args.output {
            Some(path) => read(path)?,
            None => Recording::from_bytes(&self.body).map_err(|error| CommandError::usage(anyhow!(error)))?,
        };
        Ok((recording, exit))
    }

    /// Takes over what was recorded since the last time.
    fn keep(&mut self, file: Option<&mut std::fs::File>) -> Result<(), CommandError> {
        let piece = self.sampler.take();
        if self.args.live {
            self.live.feed(&piece);
        }
        match file {
            Some(file) => file.write_all(&piece)?,
            None => self.body.extend(piece),
        }
        Ok(())
    }

    /// Ends the command if it still runs: Ctrl-C reaches it from the terminal, the end of the time does not.
    fn end(&self, child: Option<&mut Child>, err: &mut dyn Write) -> Result<Exit, CommandError> {
        let Some(child) = child else { return Ok(Exit::Fine) };
        let mut status = child.try_wait()?;
        if status.is_none() {
            self.interrupt.take();
            let pid = rustix::process::Pid::from_child(child);
            rustix::process::kill_process(pid, rustix::process::Signal::TERM)
                .map_err(std::io::Error::from)?;
            let process = Process::open(child.id())?;
            if wait(&self.interrupt, Some(&process), Duration::from_secs(5))? != Happened::Ended {
                child.kill()?;
            }
            status = Some(child.wait()?);
        }
        if let Some(status) = status.filter(|status| !status.success()) {
            writeln!(err, "zenkai: the command ended with {status}")?;
            return Ok(Exit::Findings);
        }
        Ok(Exit::Fine)
    }
}
