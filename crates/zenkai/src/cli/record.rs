//! `zenkai record`

mod about;
mod command;
mod live;
mod runs;
mod session;
pub(super) mod show;

use std::{
    fs::OpenOptions,
    io::{ErrorKind, Write},
    path::{Path, PathBuf},
    thread,
    time::Duration,
};

use anyhow::anyhow;
use clap::builder::ArgPredicate;
use zenkai_host::{gauges::Interrupt, workload};
use zenkai_measure::sampler::{Live, Options, ReadError, Recording, Sampler};

use super::{CommandError, Exit};
use command::Command;
pub(super) use runs::CAPTURE;
use session::{Kept, Session};

/// Record what the machine does: while a command runs, for some time, or until Ctrl-C
///
/// At the end every channel is shown with its mean, least and greatest value, and what could not be measured with the
/// reason. The recorder's own CPU time is told.
///
/// The command keeps the terminal: it reads and writes there, and Ctrl-C reaches it. Where it can have a cgroup of its
/// own, what it and its children use is recorded by itself. What it leaves running goes on.
///
/// Exit code: the command's; 0 when it was ended because its time was over, 130 when zenkai was told to end.
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
    if let Some(name) = &args.several.resume {
        return args.several.go_on(name, args.json, out, err);
    }
    if !Options::INTERVALS.contains(&args.interval) {
        return Err(CommandError::usage(anyhow!("--interval must be 10ms to 1s")));
    }
    if let Some(runs) = args.several.runs {
        return args.several.carry_out(runs, &args.command, args.interval, args.json, out, err);
    }
    let interrupt = Interrupt::watch()?;
    // Ctrl-Z stops the command; if we went on the shell would not come back.
    interrupt.may_be_stopped()?;
    let about = Recording::about_record(&about::about(&args.command));
    let mut file = args.output.as_deref().map(|path| create(path, &about)).transpose()?;
    let job = command::job(&args.command);
    let prepared = (!args.command.is_empty()).then(|| workload::prepare(&job)).transpose()?;
    let options = options(args, prepared.as_ref());
    let (kept, over, ran) = thread::scope(|scope| {
        let mut sampler = Sampler::start(&options).map_err(|error| not_started(args, error))?;
        let started = prepared.map(|prepared| Command::start(scope, prepared)).transpose();
        let command = started.map_err(|error| not_started(args, error))?;
        let no_cgroup = command.as_ref().and_then(|command| command.no_cgroup.clone());
        if no_cgroup.is_some() && options.cgroup != args.cgroup {
            // It stayed outside of the cgroup that is watched, which will not tell anything.
            let pid = options.pid.or_else(|| Some(std::process::id()));
            let options = Options { cgroup: args.cgroup.clone(), no_cgroup, pid, ..options.clone() };
            sampler = Sampler::start(&options)?;
        }
        let kept =
            file.as_mut().map_or_else(|| Kept::Memory([Recording::mark(), about].concat()), Kept::File);
        let live = args.live.then(Live::default);
        Session { interrupt: &interrupt, sampler, time: args.time, live, kept }.follow(command, out, err)
    })?;
    let lost = if let Kept::Lost(error) = &kept { Some(error.to_string()) } else { None };
    let recording = match (session::body(kept)?, &args.output) {
        (None, Some(path)) if lost.is_some() => read(path).ok(),
        (None, Some(path)) => Some(read(path)?),
        (recording, _) => recording,
    };
    if let Some(recording) = recording.filter(|_| !args.live) {
        show::show(&recording, args.all, args.json, out)?;
    }
    let exit = session::exit(over, ran.as_ref(), err)?;
    told(args, lost, exit, err)
}

/// Where the recording is, and whether it is whole.
fn told(args: &Args, lost: Option<String>, exit: Exit, err: &mut dyn Write) -> Result<Exit, CommandError> {
    let Some(path) = &args.output else { return Ok(exit) };
    let shown = path.display();
    if let Some(why) = lost {
        writeln!(err, "zenkai: {shown} could not be written to its end: {why}; it holds what came before")?;
        return Ok(if exit == Exit::Fine { Exit::Usage } else { exit });
    }
    writeln!(
        err,
        "zenkai: wrote {shown}; zenkai report {shown} shows it again, with -o FILE.html as a page"
    )?;
    Ok(exit)
}

/// What is sampled: the command's own cgroup, or without one, what we start from now on.
fn options(args: &Args, prepared: Option<&workload::Prepared>) -> Options {
    let mut options = Options {
        interval: args.interval,
        cgroup: args.cgroup.clone(),
        no_cgroup: None,
        pid: args.pid,
        cpu: args.cpu,
    };
    if let Some(prepared) = prepared.filter(|_| options.cgroup.is_none() && options.pid.is_none()) {
        match prepared.cgroup().map(Path::to_str) {
            Ok(Some(dir)) => options.cgroup = Some(dir.to_owned()),
            Ok(None) => options.no_cgroup = Some("its name is not UTF-8".to_owned()),
            Err(why) => options.no_cgroup = Some(why.to_owned()),
        }
        options.pid = Some(std::process::id()).filter(|_| options.cgroup.is_none());
    }
    options
}

/// The command or the sampler could not be started. The file, which has nothing in it, would be in the way of the next try.
fn not_started(args: &Args, error: std::io::Error) -> CommandError {
    if let Some(path) = &args.output {
        // It is ours: it did not exist before. Where it stays it does no harm.
        let _ = rustix::fs::unlink(path);
    }
    CommandError::usage(anyhow!("{error}"))
}

pub(super) fn read(path: &Path) -> Result<Recording, CommandError> {
    let shown = path.display();
    Recording::read(path).map_err(|error| {
        let told = anyhow!("{shown}: {error}");
        match error {
            ReadError::Io(error) if error.kind() == ErrorKind::PermissionDenied => {
                CommandError::not_permitted(told)
            }
            _ => CommandError::usage(told),
        }
    })
}

/// A recording goes to its file as it comes, so that an end in mid-work leaves what there is.
fn create(path: &Path, about: &[u8]) -> Result<std::fs::File, CommandError> {
    let shown = path.display();
    let file = OpenOptions::new().write(true).create_new(true).open(path);
    let mut file = file.map_err(|error| CommandError::usage(anyhow!("cannot write {shown}: {error}")))?;
    file.write_all(&[Recording::mark().as_slice(), about].concat())?;
    Ok(file)
}
