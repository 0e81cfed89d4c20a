//! `zenkai bisect`: which of many differences is to blame?

mod laid;
mod oracle;
mod text;
mod toggles;

use std::{
    io::Write,
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

use anyhow::anyhow;
use zenkai_host::gauges::Interrupt;
use zenkai_measure::{
    bisect::{Settings, Stop, bisect, expected},
    experiment::{Plan, Stage as _, Status, Trial},
    statistics::design::switches_per_run,
    workload,
};
use zenkai_tune::transaction::Session;

use super::{
    CommandError, Exit, change,
    compare::{self, ArmSpec, LiveArm, LiveStage, Measuring, visible},
    guard::Guard,
    output, time,
};
use laid::Laid;
use oracle::LiveOracle;
use toggles::Sides;

/// The file that makes a directory one of a search.
pub(super) const FILE: &str = laid::FILE;

/// Find which of the differences to another machine, or between two profiles, make this one slower
///
/// What can be changed while the machine runs is set as on the other machine: all of it first, to see whether there is a
/// difference to explain, then halves of it, then what is suspected alone. Only fresh experiments accuse: an innocent
/// setting is blamed in at most 5 % of searches. Whatever happens, the machine ends as it began.
///
/// Exit code: 0 it came to its end or its budget is used up (the answer is in the output), 2 it could not be done, 5
/// something could not be put back, 77 not root, 130 interrupted.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// Two profiles instead of two machines: `profile:GOOD profile:BAD`
    #[arg(value_name = "PROFILE", num_args = 2, conflicts_with_all = ["from", "to"])]
    profiles: Vec<String>,
    /// What is run; fio, iperf3, sysbench, wrk, stress-ng and others give their own numbers
    #[arg(last = true, value_name = "COMMAND")]
    command: Vec<String>,
    /// The other machine, or this one before: a capture file, a directory, a label
    #[arg(long, value_name = "A")]
    from: Option<String>,
    /// The machine in question; only `now` can be measured
    #[arg(long, value_name = "B", default_value = "now")]
    to: String,
    /// End after this time, with what is known by then
    #[arg(long, value_name = "TIME", default_value = "60m", value_parser = time::duration)]
    budget: Duration,
    #[command(flatten)]
    measuring: Measuring,
    /// Toggle settings too that protect this machine
    #[arg(long)]
    allow_insecure: bool,
    /// Where the experiments are kept [default: zenkai-bisect-DATE in this directory]
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Go on with a search that was interrupted, or whose budget was used up
    #[arg(long, value_name = "DIR", conflicts_with_all = ["profiles", "from", "to", "command", "metric", "better", "rho", "precision", "pairs", "seed", "out", "allow_insecure"])]
    resume: Option<PathBuf>,
    /// Write JSON
    #[arg(long)]
    json: bool,
}

pub(super) fn run(args: &Args, out: &mut dyn Write, err: &mut dyn Write) -> Result<Exit, CommandError> {
    let interrupt = Interrupt::watch()?;
    // A time that no clock can tell is none.
    let until = Instant::now().checked_add(args.budget);
    if let (None, Some(wrong)) = (&args.resume, mistake(args)) {
        return Err(wrong);
    }
    change::changing_and_telling(err, |session, err| {
        // It lives as long as the session, as in `compare`.
        let _guard = Guard::start()?;
        let (laid, dir) = match &args.resume {
            Some(dir) => {
                // Going on is doing what its files say.
                let dir = compare::trusted_dir(dir, &[laid::FILE])?;
                (Laid::read(&dir)?, dir)
            }
            None => lay_down(args, session, &interrupt, err)?,
        };
        search(args, &laid, &dir, (session, &interrupt, until), out, err)
    })
}

fn mistake(args: &Args) -> Option<CommandError> {
    let usage = "zenkai bisect --from OLD.capture -- COMMAND";
    let wrong = |text: String| Some(CommandError::usage(anyhow!(text)).hint(usage));
    if args.from.is_none() && args.profiles.is_empty() {
        return wrong("there is nothing to compare this machine with".to_owned());
    }
    if args.to != "now" {
        return wrong(format!("{} cannot be measured from here: run this on that machine", args.to));
    }
    if args.command.is_empty() {
        return wrong("there is no command to run".to_owned());
    }
    None
}

/// Works out what can be toggled, tries each once, and writes down how it is measured.
fn lay_down(
    args: &Args,
    session: &Session,
    interrupt: &Interrupt,
    err: &mut dyn Write,
) -> Result<(Laid, PathBuf), CommandError> {
    let mut sides = match (&args.from, args.profiles.as_slice()) {
        (Some(from), _) => Sides::machines(from, args.allow_insecure, err)?,
        (None, [good, bad]) => Sides::profiles(good, bad, args.allow_insecure)?,
        _ => return Err(CommandError::usage(anyhow!("give two profiles, or --from"))),
    };
    let prepared = workload::prepare(&args.command);
    let arm = |sides: &Sides, on: &[usize]| {
        let spec = ArmSpec::worked_out("trial".to_owned(), sides.wishes(on), sides.are_profiles);
        LiveArm { spec, workload: prepared.clone() }
    };
    let mut arms = vec![arm(&sides, &[])];
    let choice = compare::choice(args.measuring.metric.as_deref(), &arms)?;
    let (metric, better) = compare::metric(&choice, arms.first(), args.measuring.better)?;
    arms.extend((0..sides.toggles.len()).map(|toggle| arm(&sides, &[toggle])));
    let mut stage = LiveStage::new(Some(session), arms, choice, interrupt);
    let refused: Vec<Option<String>> =
        (1..stage.arms.len()).map(|nth| stage.settings(nth).err().map(|why| why.to_string())).collect();
    stage.leave().map_err(CommandError::not_restored)?;
    sides.leave_out(refused);
    if sides.toggles.is_empty() {
        return Err(sides.nothing());
    }
    let (seed, pairs) = (args.measuring.seed(), args.measuring.pairs());
    let mut plan = Plan::new(Vec::new(), args.command.clone(), metric, better, seed, pairs);
    args.measuring.adjust(&mut plan, true);
    stage.ready(&plan, &[], Path::new(""));
    let run_s = one_run(&mut stage, err)?;
    let dir = compare::directory(args.out.as_ref(), "bisect", plan.created_unix_s)?;
    let laid = Laid::new(sides, plan, run_s);
    laid.write(&dir)?;
    text::tell_plan(&laid, &dir, args.budget, err)?;
    Ok((laid, dir))
}

/// Runs the workload once, to know that it works and how long it takes.
fn one_run(stage: &mut LiveStage, err: &mut dyn Write) -> Result<f64, CommandError> {
    // What the machine does to a run, such as a clock that is set, is no fault of the workload.
    const TRIES: usize = 3;
    let mut trial = Trial::new(0, 0, 0, 0, Status::Discarded, None);
    let mut ran = stage.enter(0).map(|_| ());
    for _ in 0..TRIES {
        if ran.is_err() || trial.status != Status::Discarded {
            break;
        }
        ran = stage.run(&mut trial, false, &mut |why| _ = writeln!(err, "{}", visible(why)));
    }
    let left = stage.leave();
    left.map_err(CommandError::not_restored)?;
    ran?;
    if trial.status == Status::Ok {
        return Ok(trial.elapsed_s);
    }
    let why = trial.reason.unwrap_or_else(|| "it gave no number".to_owned());
    Err(CommandError::usage(anyhow!("the workload fails: {why}")))
}

/// How many experiments, pairs and seconds the search will take, if there is one culprit.
fn cost(laid: &Laid) -> (usize, usize, f64) {
    let (experiments, pairs) = expected(&laid.settings());
    let cost_of_two_s = 2.0 * (laid.run_s + switches_per_run(2) * laid.plan.settle.at_least_s);
    (experiments, pairs, f64::from(u32::try_from(pairs).unwrap_or(u32::MAX)) * cost_of_two_s)
}

fn search(
    args: &Args,
    laid: &Laid,
    dir: &Path,
    (session, interrupt, until): (&Session, &Interrupt, Option<Instant>),
    out: &mut dyn Write,
    err: &mut dyn Write,
) -> Result<Exit, CommandError> {
    let settings: Settings = laid.settings();
    let mut oracle = LiveOracle::new(laid, dir, session, interrupt, until, err);
    oracle.resumed = args.resume.is_some();
    let (outcome, stop) = bisect(&settings, &mut oracle);
    if let Some(why) = oracle.not_restored {
        return Err(CommandError::not_restored(anyhow!("{why}")));
    }
    let done = text::Done { laid, dir, outcome: &outcome, stop: stop.as_ref() };
    if let Some(Stop::Failed(why)) = &stop {
        return Err(CommandError::usage(anyhow!("{why}")).hint(compare::resume("bisect", dir)));
    }
    if args.json {
        output::write_json(out, &done.json())?;
    } else {
        output::write_blocks(out, &done.blocks())?;
    }
    Ok(if stop == Some(Stop::Interrupted) { Exit::Interrupted } else { Exit::Fine })
}
