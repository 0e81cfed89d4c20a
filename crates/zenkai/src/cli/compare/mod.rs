//! `zenkai compare`: does it make a difference, and how large is it?

mod aa;
mod arm;
mod confirm;
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
    experiment::{Arm, Confirms, Finish, Metric, Plan, Store, StoreError, carry_out},
    metric::Choice,
    statistics::verdict::Better,
    workload,
};

use super::{CommandError, Exit, change, error, experiment::Stored, guard::Guard, output, report};
pub(super) use arm::ArmSpec;
use confirm::Confirmation;
pub(super) use options::{Args, Better as Direction, Measuring, directory, now_unix_s};
pub(super) use progress::{Teller, stuck};
pub(super) use stage::{LiveArm, LiveStage};
pub(super) use trust::{dir as trusted_experiment, dir_with as trusted_dir, make as make_dir};
pub(super) use zenkai_report::printable as visible;

pub(super) fn run(args: &Args, out: &mut dyn Write, err: &mut dyn Write) -> Result<Exit, CommandError> {
    let interrupt = Interrupt::watch()?;
    let asked = match &args.resume {
        Some(dir) => Asked::resumed(dir)?,
        None => Asked::fresh(args)?,
    };
    let arms = asked.arms()?;
    // Before it is done for the first time, which is when the plan is made.
    for arm in arms.iter().filter(|arm| arm.spec.stays()) {
        writeln!(
            err,
            "Warning: {} has no leave=, so what it does stays; leave=true says that there is nothing to undo",
            visible(&arm.spec.text())
        )?;
    }
    if !arms.iter().any(|arm| arm.spec.changes_machine()) {
        return all(args, asked, arms, None, &interrupt, out, err);
    }
    change::changing_and_telling(err, |session, err| {
        // It lives as long as the session: when both are gone by SIGKILL, the guard gets the lock.
        let _guard = Guard::start()?;
        all(args, asked, arms, Some(session), &interrupt, out, err)
    })
}

/// The experiment, and those that prove single settings of it.
fn all(
    args: &Args,
    asked: Asked,
    arms: Vec<LiveArm>,
    session: Option<&zenkai_tune::transaction::Session>,
    interrupt: &Interrupt,
    out: &mut dyn Write,
    err: &mut dyn Write,
) -> Result<Exit, CommandError> {
    let (mut exit, store, dir) = carry_on(args, asked, arms, session, interrupt, err)?;
    let mut pages = Vec::new();
    // A program that reads JSON wants one document: it has the confirmations in it.
    if !args.json || args.confirm.is_empty() || exit != Exit::Fine {
        match show(args, &dir, out, err) {
            Ok(page) => pages.extend(page),
            // That something was not put back is graver, and the exit code of it.
            Err(why) if exit == Exit::NotRestored => _ = why.report(err),
            Err(why) => return Err(why),
        }
    }
    for knob in &args.confirm {
        if exit != Exit::Fine {
            break;
        }
        // From memory: what lies in the directory could have been exchanged meanwhile, and arms are commands.
        let confirmation = match confirm::confirmation(&dir, &store.plan, &store.trials, knob)? {
            Ok(confirmation) => Confirmation { among: args.confirm.len(), ..confirmation },
            Err(why) => {
                writeln!(err, "zenkai: nothing to confirm: {why}")?;
                continue;
            }
        };
        writeln!(err, "\nzenkai: what does {knob} do alone?")?;
        let asked = Asked::confirming(confirmation);
        let arms = asked.arms()?;
        let (ended, _, of_knob) = carry_on(args, asked, arms, session, interrupt, err)?;
        if !args.json {
            pages.extend(show(args, &of_knob, out, err)?);
        }
        exit = ended;
    }
    if !args.confirm.is_empty() && exit == Exit::Fine {
        let stored = Stored::open(&dir)?.with_everything(&dir)?;
        if args.json {
            output::write_json(out, &zenkai_report::experiment_json(&stored.shown())?)?;
        }
        let page = save_page(&stored, &dir, err)?;
        if args.json {
            pages = page.into_iter().collect();
        }
    }
    for page in pages {
        writeln!(err, "graphs: {}", page.display())?;
    }
    Ok(exit)
}

/// What is compared, before anything is known of the machine.
struct Asked {
    specs: Vec<ArmSpec>,
    workload: Vec<String>,
    metric: Option<String>,
    /// An experiment to go on with.
    store: Option<(Store, PathBuf)>,
    /// What an earlier experiment laid down, and what of it is to be proved.
    confirmation: Option<Confirmation>,
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
        let (workload, metric) = (args.command.clone(), args.measuring.metric.clone());
        Ok(Self { specs, workload, metric, store: None, confirmation: None })
    }

    fn confirming(confirmation: Confirmation) -> Self {
        let base = &confirmation.base;
        let metric = base.metric.pattern.clone().unwrap_or_else(|| base.metric.name.clone());
        let (specs, workload) = (confirmation.specs.to_vec(), base.workload.clone());
        Self { specs, workload, metric: Some(metric), store: None, confirmation: Some(confirmation) }
    }

    fn resumed(dir: &Path) -> Result<Self, CommandError> {
        if dir.join(super::bisect::FILE).symlink_metadata().is_ok() {
            let shown = dir.display();
            return Err(CommandError::usage(anyhow!("{shown} is a search and no single experiment"))
                .hint(resume("bisect", dir)));
        }
        let dir = trust::dir(dir)?;
        let store = Store::open(&dir)?;
        let plan = &store.plan;
        if plan.arms.len() == 1 {
            return Err(CommandError::usage(anyhow!(
                "{} is a recording and compares nothing",
                dir.display()
            ))
            .hint(resume("record", &dir)));
        }
        if plan.arms.iter().any(|arm| arm.parts.is_empty()) {
            return Err(of_a_search(&dir));
        }
        let specs: Vec<ArmSpec> =
            plan.arms.iter().map(|arm| arm::one(&arm.parts)).collect::<Result<_, _>>()?;
        let metric = plan.metric.pattern.clone().unwrap_or_else(|| plan.metric.name.clone());
        let (workload, metric) = (plan.workload.clone(), Some(metric));
        Ok(Self { specs, workload, metric, store: Some((store, dir)), confirmation: None })
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

/// Experiments of `zenkai bisect` have arms that no words say.
fn of_a_search(dir: &Path) -> CommandError {
    let above = dir.parent().filter(|above| above.join(super::bisect::FILE).symlink_metadata().is_ok());
    CommandError::usage(anyhow!("{} is one experiment of a search, which goes on as a whole", dir.display()))
        .hint(resume("bisect", above.unwrap_or(Path::new("DIR"))))
        .hint(format!("zenkai report {} shows it", dir.display()))
}

/// The number that is compared: the one asked for, or the tool's own.
pub(super) fn choice(asked: Option<&str>, arms: &[LiveArm]) -> Result<Choice, CommandError> {
    let tool = &arms.first().ok_or_else(|| anyhow!("there is no arm"))?.workload;
    Choice::parse(asked.unwrap_or(tool.primary())).map_err(|why| CommandError::usage(anyhow!(why)))
}

fn carry_on(
    args: &Args,
    asked: Asked,
    arms: Vec<LiveArm>,
    session: Option<&zenkai_tune::transaction::Session>,
    interrupt: &Interrupt,
    err: &mut dyn Write,
) -> Result<(Exit, Store, PathBuf), CommandError> {
    let choice = choice(asked.metric.as_deref(), &arms)?;
    if args.measuring.no_sample && choice.energy().is_some() {
        return Err(CommandError::usage(anyhow!(
            "energy is counted by sampling: --no-sample leaves no joules"
        )));
    }
    let mut stage = LiveStage::new(session, arms, choice, interrupt);
    let (mut store, dir) = if let Some(opened) = asked.store {
        opened
    } else {
        // An arm that could not be left is graver than whatever was told first.
        let plan = lay_down(args, &asked, &mut stage)
            .or_else(|error| stage.leave().map_err(CommandError::not_restored).and(Err(error)))?;
        let dir = match asked.confirmation {
            Some(confirmation) => confirmation.dir,
            None => directory(args.out.as_ref(), "compare", plan.created_unix_s)?,
        };
        (create(&dir, plan)?, dir)
    };
    stage.ready(&store.plan, &store.trials, &dir);
    let mut teller = Teller::new(store.plan.clone(), &store.trials, err);
    options::tell_plan(&store.plan, &dir, &mut |line| teller.keep(line));
    if store.plan.confirms.is_none() {
        options::tell_confirmations(args, &mut |line| teller.keep(line));
    }
    let finish = carry_out(&mut store, &mut stage, &mut |progress| teller.tell(progress));
    teller.end();
    // The machine first, whatever came of the experiment.
    if let Err(why) = stage.leave() {
        teller.keep(&format!("zenkai: {why}"));
        teller.keep(&format!("  try: {}", error::PUT_RIGHT));
        return Ok((Exit::NotRestored, store, dir));
    }
    match finish {
        Ok(finish) => Ok((told(&finish, &dir, &mut teller), store, dir)),
        Err(error) => {
            let error = CommandError::usage(error);
            // With nothing measured there is nothing to go on with: most likely a word has to be typed again.
            if store.trials.is_empty() {
                return Err(error);
            }
            teller.keep(&format!("{} runs are kept in {}", store.trials.len(), dir.display()));
            Err(error.hint(resume("compare", &dir)))
        }
    }
}

/// The command line that goes on with what is kept in `dir`, as a shell reads it.
pub(super) fn resume(command: &str, dir: &Path) -> String {
    zenkai_report::shell(&["zenkai", command, "--resume", &dir.to_string_lossy()].map(str::to_owned))
}

fn told(finish: &Finish, dir: &Path, teller: &mut Teller) -> Exit {
    match finish {
        Finish::Done(_) => Exit::Fine,
        Finish::Interrupted => {
            teller.keep("interrupted; the machine is as it was");
            teller.keep(&format!("to go on: {}", resume("compare", dir)));
            Exit::Interrupted
        }
    }
}

/// The plan, with what each arm changes on this machine: every arm is entered and left once before it is written.
fn lay_down(args: &Args, asked: &Asked, stage: &mut LiveStage) -> Result<Plan, CommandError> {
    let confirms = asked.confirmation.as_ref().map(|confirmation| &confirmation.confirms);
    let mut arms = Vec::new();
    for nth in 0..stage.arms.len() {
        let settings = stage.settings(nth)?;
        let spec = &stage.arms[nth].spec;
        let name = match (args.aa, nth, confirms) {
            (_, 0, Some(confirms)) => format!("{} with {} as in {}", confirms.b, confirms.knob, confirms.a),
            (_, _, Some(confirms)) => confirms.b.clone(),
            (true, 0, None) => format!("{} (A)", spec.text()),
            (true, _, None) => format!("{} (B)", spec.text()),
            (false, _, None) => spec.text(),
        };
        let command = spec.command().unwrap_or_default();
        arms.push(Arm { settings, command, parts: spec.words.clone(), ..Arm::new(name, spec.text()) });
    }
    if let Some(Confirmation { base, confirms, among, nth, .. }) = &asked.confirmation {
        let (metric, better) = (base.metric.clone(), base.rule.better);
        let most = base.rule.looks.last().copied().unwrap_or_else(|| args.measuring.pairs());
        let seed = args.measuring.seed_of(*nth);
        let mut plan = Plan::new(arms, asked.workload.clone(), metric, better, seed, most);
        plan.rule.share(*among);
        options::adjust_as(base, &mut plan);
        plan.confirms = Some(Confirms { among: *among, ..confirms.clone() });
        return Ok(plan);
    }
    let measuring = &args.measuring;
    let (metric, better) = metric(&stage.choice, stage.arms.first(), measuring.better)?;
    let (seed, most) = (measuring.seed(), measuring.pairs());
    let mut plan = Plan::new(arms, asked.workload.clone(), metric, better, seed, most);
    args.adjust(&mut plan, stage.session.is_some());
    Ok(plan)
}

/// The number that is compared, as it is written down, and which direction of it is better.
pub(super) fn metric(
    choice: &Choice,
    arm: Option<&LiveArm>,
    better: Option<options::Better>,
) -> Result<(Metric, Better), CommandError> {
    let name = choice.name();
    let known = arm.and_then(|arm| arm.workload.describe(&name));
    let better = match (better, known.and_then(|(_, better)| better)) {
        (Some(asked), _) => asked.into(),
        (None, Some(better)) => better,
        (None, None) => {
            return Err(CommandError::usage(anyhow!("which direction of `{name}` is better is not known"))
                .hint("--better lower")
                .hint("--better higher"));
        }
    };
    let unit = known.map_or("", |(unit, _)| unit).to_owned();
    Ok((Metric { name, unit, pattern: choice.pattern() }, better))
}

pub(super) fn create(dir: &Path, plan: Plan) -> Result<Store, CommandError> {
    let failed = |error| anyhow::Error::new(error).context(dir.display().to_string());
    trust::make(dir)?;
    let samples = dir.join("samples");
    if dir.join("experiment.json").symlink_metadata().is_err() {
        // A start that was killed leaves it behind, empty. Neither a link nor what has something in it is removed.
        let _ = std::fs::remove_dir(&samples);
    }
    // Both must be ours: a link that waits here could lead root anywhere.
    if let Err(error) = trust::make_new(&samples) {
        let shown = dir.display();
        return Err(if error.kind() == std::io::ErrorKind::AlreadyExists {
            let command = if plan.arms.len() == 1 { "record" } else { "compare" };
            CommandError::usage(anyhow!("{shown} has been used for an experiment already"))
                .hint(format!("{}, or another directory with --out", resume(command, dir)))
        } else {
            failed(error).into()
        });
    }
    let store = Store::create(dir, plan)?;
    let facts = serde_json::to_vec_pretty(&zenkai_facts::observe(&LiveHost))?;
    OpenOptions::new()
        .write(true)
        .create_new(true)
        .open(dir.join("host.json"))
        .and_then(|mut file| file.write_all(&facts))
        .map_err(|error| anyhow::Error::new(error).context("host.json"))?;
    if !store.plan.aa {
        aa::copy(dir, &store.plan.metric).map_err(|error| anyhow::Error::new(error).context("aa.json"))?;
    }
    Ok(store)
}

impl From<StoreError> for CommandError {
    fn from(error: StoreError) -> Self {
        // Its text tells the system's reason already.
        Self::usage(anyhow!("{error}"))
    }
}

/// The result, and a page with all of it beside the trials; gives where that is, if it could be written.
fn show(
    args: &Args,
    dir: &Path,
    out: &mut dyn Write,
    err: &mut dyn Write,
) -> Result<Option<PathBuf>, CommandError> {
    let stored = Stored::open(dir)?.with_everything(dir)?;
    let shown = stored.shown();
    let finished = shown.comparisons.iter().all(|comparison| comparison.judgement.finished);
    if shown.plan.aa
        && finished
        && let Err(why) = aa::keep(dir, &shown.plan.metric, &zenkai_report::experiment_json(&shown)?)
    {
        writeln!(err, "zenkai: not kept for the reports of other experiments: {:#}", why.error)?;
    }
    if args.json {
        output::write_json(out, &zenkai_report::experiment_json(&shown)?)?;
    } else {
        output::write_blocks(out, &zenkai_report::experiment(&shown))?;
    }
    save_page(&stored, dir, err)
}

/// What cannot be written, on a full disk say, is told: the result has been shown, and can be shown again.
fn save_page(stored: &Stored, dir: &Path, err: &mut dyn Write) -> Result<Option<PathBuf>, CommandError> {
    let page = dir.join("report.html");
    match report::save_here(&page, zenkai_report::experiment_html(&stored.shown()).as_bytes()) {
        Ok(()) => Ok(Some(page)),
        Err(why) => {
            writeln!(err, "zenkai: no graphs: {:#}", why.error)?;
            Ok(None)
        }
    }
}
