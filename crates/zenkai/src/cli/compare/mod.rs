//! `zenkai compare`: does it make a difference, and how large is it?

mod arm;
mod options;
mod progress;
mod quiet;
mod stage;
mod trust;

use std::{
    fs::OpenOptions,
    io::Write,
    path::{Path, PathBuf},
};

use anyhow::anyhow;
use zenkai_host::{LiveHost, gauges::Interrupt};
use zenkai_measure::{
    experiment::{Arm, Finish, Metric, Plan, RunError, StageError, Store, StoreError, carry_out},
    metric::Choice,
    workload,
};

use super::{CommandError, Exit, change, experiment::Stored, guard::Guard, output, report};
use arm::ArmSpec;
pub(super) use options::Args;
use progress::Teller;
use stage::{LiveArm, LiveStage};

pub(super) fn run(args: &Args, out: &mut dyn Write, err: &mut dyn Write) -> Result<Exit, CommandError> {
    let interrupt = Interrupt::watch()?;
    let asked = match &args.resume {
        Some(dir) => Asked::resumed(dir)?,
        None => Asked::fresh(args)?,
    };
    let arms = asked.arms()?;
    if !arms.iter().any(|arm| arm.spec.changes_machine()) {
        return carry_on(args, asked, arms, None, &interrupt, out, err);
    }
    change::changing_and_telling(err, |session, err| {
        // It lives as long as the session: when both are gone by SIGKILL, the guard gets the lock.
        let _guard = Guard::start()?;
        carry_on(args, asked, arms, Some(session), &interrupt, out, err)
    })
}

/// What is compared, before anything is known of the machine.
struct Asked {
    specs: Vec<ArmSpec>,
    workload: Vec<String>,
    metric: Option<String>,
    /// An experiment to go on with.
    store: Option<(Store, PathBuf)>,
}

impl Asked {
    fn fresh(args: &Args) -> Result<Self, CommandError> {
        let words = if args.aa && args.arms.is_empty() { vec!["now".to_owned()] } else { args.arms.clone() };
        let mut specs = arm::arms(&words)?;
        if args.aa {
            let [spec] = specs.as_slice() else {
                return Err(CommandError::usage(anyhow!("--aa compares one arm with itself"))
                    .hint("zenkai compare --aa -- COMMAND"));
            };
            specs = vec![spec.clone(), spec.clone()];
        }
        if specs.len() < 2 {
            return Err(CommandError::usage(anyhow!(
                "there is nothing to compare `{}` with",
                words.join(" ")
            ))
            .hint("zenkai compare now set:vm.swappiness=10 -- COMMAND"));
        }
        if let Some(twice) = specs.iter().enumerate().find(|(nth, spec)| specs[..*nth].contains(spec))
            && !args.aa
        {
            let error = anyhow!("`{}` is there twice", twice.1.text());
            return Err(CommandError::usage(error).hint("--aa compares one arm with itself"));
        }
        Ok(Self { specs, workload: args.command.clone(), metric: args.metric.clone(), store: None })
    }

    fn resumed(dir: &Path) -> Result<Self, CommandError> {
        let dir = trust::dir(dir)?;
        let store = Store::open(&dir)?;
        let plan = &store.plan;
        let specs: Vec<ArmSpec> =
            plan.arms.iter().map(|arm| arm::one(&arm.parts)).collect::<Result<_, _>>()?;
        let metric = plan.metric.pattern.clone().unwrap_or_else(|| plan.metric.name.clone());
        let (workload, metric) = (plan.workload.clone(), Some(metric));
        Ok(Self { specs, workload, metric, store: Some((store, dir)) })
    }

    /// Each arm with its workload.
    fn arms(&self) -> Result<Vec<LiveArm>, CommandError> {
        let with_workload = |spec: &ArmSpec| {
            let command = spec.command().unwrap_or_else(|| self.workload.clone());
            if command.is_empty() {
                return Err(CommandError::usage(anyhow!("there is no command to run"))
                    .hint("zenkai compare ARM ARM -- COMMAND"));
            }
            Ok(LiveArm { spec: spec.clone(), workload: workload::prepare(&command) })
        };
        self.specs.iter().map(with_workload).collect()
    }
}

/// The number that is compared: the one asked for, or the tool's own.
fn choice(asked: Option<&str>, arms: &[LiveArm]) -> Result<Choice, CommandError> {
    let tool = &arms.first().ok_or_else(|| anyhow!("there is no arm"))?.workload;
    Choice::parse(asked.unwrap_or(tool.primary())).map_err(|why| CommandError::usage(anyhow!(why)))
}

fn carry_on(
    args: &Args,
    asked: Asked,
    arms: Vec<LiveArm>,
    session: Option<&zenkai_tune::transaction::Session>,
    interrupt: &Interrupt,
    out: &mut dyn Write,
    err: &mut dyn Write,
) -> Result<Exit, CommandError> {
    let choice = choice(asked.metric.as_deref(), &arms)?;
    let mut stage = LiveStage::new(session, arms, choice, interrupt);
    let (mut store, dir) = if let Some(opened) = asked.store {
        opened
    } else {
        let plan = lay_down(args, &asked.workload, &mut stage)?;
        let dir = args.directory(plan.created_unix_s)?;
        (create(&dir, plan)?, dir)
    };
    stage.ready(&store.plan, &dir);
    let mut teller = Teller::new(store.plan.clone(), store.trials.len(), err);
    options::tell_plan(&store.plan, &dir, &mut |line| teller.keep(line));
    let finish = carry_out(&mut store, &mut stage, &mut |progress| teller.tell(progress));
    teller.end();
    // The machine first, whatever came of the experiment.
    if let Err(why) = stage.leave() {
        teller.keep(&format!("zenkai: {why}"));
        return Ok(Exit::NotRestored);
    }
    match finish {
        Ok(finish) => {
            let exit = told(&finish, &dir, &mut teller);
            show(args, &dir, out, err)?;
            Ok(exit)
        }
        Err(error) => {
            let error = run_error(error);
            // With nothing measured there is nothing to go on with: most likely a word has to be typed again.
            if store.trials.is_empty() {
                return Err(error);
            }
            writeln!(err, "{} runs are kept in {}", store.trials.len(), dir.display())?;
            Err(error.hint(format!("zenkai compare --resume {}", dir.display())))
        }
    }
}

fn told(finish: &Finish, dir: &Path, teller: &mut Teller) -> Exit {
    match finish {
        Finish::Done(_) => Exit::Fine,
        Finish::Interrupted => {
            teller.keep("interrupted; the machine is as it was");
            teller.keep(&format!("to go on: zenkai compare --resume {}", dir.display()));
            Exit::Interrupted
        }
    }
}

/// The plan, with what each arm changes on this machine: every arm is entered and left once before it is written.
fn lay_down(args: &Args, workload: &[String], stage: &mut LiveStage) -> Result<Plan, CommandError> {
    let mut arms = Vec::new();
    for nth in 0..stage.arms.len() {
        let settings = stage.settings(nth).map_err(stage_error)?;
        let spec = &stage.arms[nth].spec;
        let name = match (args.aa, nth) {
            (true, 0) => format!("{} (A)", spec.text()),
            (true, _) => format!("{} (B)", spec.text()),
            (false, _) => spec.text(),
        };
        let command = spec.command().unwrap_or_default();
        arms.push(Arm { settings, command, parts: spec.words.clone(), ..Arm::new(name, spec.text()) });
    }
    let choice = &stage.choice;
    let name = choice.name();
    let known = stage.arms.first().and_then(|arm| arm.workload.describe(&name));
    let better = match (args.better, known.and_then(|(_, better)| better)) {
        (Some(asked), _) => asked.into(),
        (None, Some(better)) => better,
        (None, None) => {
            return Err(CommandError::usage(anyhow!("which direction of `{name}` is better is not known"))
                .hint("--better lower")
                .hint("--better higher"));
        }
    };
    let unit = known.map_or("", |(unit, _)| unit).to_owned();
    let metric = Metric { name, unit, pattern: choice.pattern() };
    let mut plan = Plan::new(arms, workload.to_vec(), metric, better, args.seed(), args.pairs());
    args.adjust(&mut plan, stage.session.is_some());
    Ok(plan)
}

fn create(dir: &Path, plan: Plan) -> Result<Store, CommandError> {
    let failed = |error| anyhow::Error::new(error).context(dir.display().to_string());
    std::fs::create_dir_all(dir).map_err(failed)?;
    // Both must be ours: a link that waits here could lead root anywhere.
    std::fs::create_dir(dir.join("samples")).map_err(failed)?;
    let store = Store::create(dir, plan)?;
    let facts = serde_json::to_vec_pretty(&zenkai_facts::observe(&LiveHost))?;
    OpenOptions::new()
        .write(true)
        .create_new(true)
        .open(dir.join("host.json"))
        .and_then(|mut file| file.write_all(&facts))
        .map_err(|error| anyhow::Error::new(error).context("host.json"))?;
    Ok(store)
}

fn run_error(error: RunError) -> CommandError {
    CommandError::usage(error)
}

fn stage_error(error: StageError) -> CommandError {
    CommandError::usage(error)
}

impl From<StoreError> for CommandError {
    fn from(error: StoreError) -> Self {
        // Its text tells the system's reason already.
        Self::usage(anyhow!("{error}"))
    }
}

/// The result, and a page with all of it beside the trials.
fn show(args: &Args, dir: &Path, out: &mut dyn Write, err: &mut dyn Write) -> Result<(), CommandError> {
    let stored = Stored::open(dir)?.with_everything(dir)?;
    let shown = stored.shown();
    let page = dir.join("report.html");
    report::save_here(&page, zenkai_report::experiment_html(&shown).as_bytes())?;
    if args.json {
        output::write_json(out, &zenkai_report::experiment_json(&shown)?)?;
    } else {
        output::write_blocks(out, &zenkai_report::experiment(&shown))?;
    }
    writeln!(err, "graphs: {}", page.display())?;
    Ok(())
}

/// A small count as a real number.
fn real(count: usize) -> f64 {
    f64::from(u32::try_from(count).unwrap_or(u32::MAX))
}
