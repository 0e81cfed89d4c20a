//! Carrying out a plan: block after block, until every comparison has its verdict.

use crate::statistics::real;

use super::{
    analyze::{AnalyzeError, Comparison, analyze, settled_blocks},
    plan::{Plan, Settle, Status, Trial},
    store::{Store, StoreError},
};
use crate::statistics::design::Law;

/// A block is drawn so often before the experiment is given up: a machine that spoils it every time is not fit for it.
const ATTEMPTS: u32 = 5;

/// What an experiment is carried out on: something that can be brought into each arm and run the workload.
pub trait Stage {
    /// Brings the machine into `arm`, if it is not in it already. Tells whether anything was switched.
    fn enter(&mut self, arm: usize) -> Result<bool, StageError>;

    /// Leaves the machine alone until it is quiet; gives the seconds that took.
    fn settle(&mut self, settle: &Settle) -> Result<f64, StageError>;

    /// Runs the workload once and fills in what it gave. The place of the trial in the order is set; without `counts`
    /// it has none, and nothing of it is kept. `stuck` is told for the user what of it cannot be ended.
    fn run(&mut self, trial: &mut Trial, counts: bool, stuck: &mut dyn FnMut(&str))
    -> Result<(), StageError>;

    /// Looks whether the arm that was entered is still what it was. The reason if somebody else changed it.
    fn disturbed(&mut self) -> Option<String>;
}

/// Why a stage cannot go on.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum StageError {
    /// The user wants it to end.
    #[error("interrupted")]
    Interrupted,
    /// It cannot be done here.
    #[error("{0}")]
    Failed(String),
}

/// What is told while it runs.
#[derive(Debug)]
pub enum Progress<'a> {
    /// A run that does not count is about to start.
    WarmUp {
        /// The arm.
        arm: usize,
    },
    /// It ended.
    WarmedUp {
        /// What it gave.
        trial: &'a Trial,
    },
    /// Every arm ran once, and the first trial is about to start.
    Begins {
        /// The plan, with as many pairs as [`Plan::fill`] found room for.
        plan: &'a Plan,
    },
    /// A trial ended.
    Trial {
        /// The trial.
        trial: &'a Trial,
    },
    /// A block was spoilt and is drawn again; why.
    Again(&'a str),
    /// Something of the workload was killed and does not end; what, and what can be done.
    Stuck(&'a str),
    /// The trials were judged.
    Look(&'a [Comparison]),
}

/// How an experiment ended.
#[derive(Debug, Clone, PartialEq)]
pub enum Finish {
    /// Every comparison has its verdict, or the cap is reached.
    Done(Vec<Comparison>),
    /// The user wanted it to end; what was measured is kept.
    Interrupted,
}

/// Why an experiment could not be carried out to its end. What was measured is kept.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// A stage failed.
    #[error("{0}")]
    Stage(String),
    /// The workload failed in every arm before anything was measured.
    #[error("the workload fails in every arm: {0}")]
    NothingWorks(String),
    /// It would never come to an end: somebody changed the plan.
    #[error(
        "the plan's looks, levels and arms do not belong together, so it would never end: begin a new experiment"
    )]
    Endless,
    /// A block could not be brought to its end.
    #[error("a block of trials was spoilt {ATTEMPTS} times, the last time because {0}")]
    Spoilt(String),
    /// See [`StoreError`].
    #[error(transparent)]
    Store(#[from] StoreError),
    /// See [`AnalyzeError`].
    #[error(transparent)]
    Analyze(#[from] AnalyzeError),
}

/// Goes on with the experiment in `store` until it is decided. A block that an earlier run left unfinished is drawn
/// again.
pub fn carry_out(
    store: &mut Store,
    stage: &mut dyn Stage,
    told: &mut dyn FnMut(&Progress),
) -> Result<Finish, RunError> {
    if is_endless(&store.plan) {
        return Err(RunError::Endless);
    }
    let blocks = settled_blocks(&store.plan, &store.trials)?.len();
    let mut comparisons = if blocks > 0 { judged(&store.plan, &store.trials)? } else { Vec::new() };
    if is_over(&store.plan, blocks, &comparisons) {
        return Ok(Finish::Done(comparisons));
    }
    match run_on(store, stage, told, &mut comparisons) {
        Ok(()) => Ok(Finish::Done(comparisons)),
        Err(Stop::Stage(StageError::Interrupted)) => Ok(Finish::Interrupted),
        Err(Stop::Stage(StageError::Failed(why))) => Err(RunError::Stage(why)),
        Err(Stop::Run(error)) => Err(error),
    }
}

enum Stop {
    Stage(StageError),
    Run(RunError),
}

impl From<StageError> for Stop {
    fn from(error: StageError) -> Self {
        Self::Stage(error)
    }
}

impl From<RunError> for Stop {
    fn from(error: RunError) -> Self {
        Self::Run(error)
    }
}

impl From<StoreError> for Stop {
    fn from(error: StoreError) -> Self {
        Self::Run(error.into())
    }
}

impl From<AnalyzeError> for Stop {
    fn from(error: AnalyzeError) -> Self {
        Self::Run(error.into())
    }
}

/// The verdicts; none where a single arm is recorded, to be put beside another recording later.
fn judged(plan: &Plan, trials: &[Trial]) -> Result<Vec<Comparison>, AnalyzeError> {
    if plan.arms.len() == 1 { Ok(Vec::new()) } else { analyze(plan, trials) }
}

/// Whether nothing more is to be run after so many blocks.
fn is_over(plan: &Plan, blocks: usize, comparisons: &[Comparison]) -> bool {
    if plan.arms.len() == 1 {
        return plan.rule.looks.last().is_none_or(|last| blocks >= *last);
    }
    !comparisons.is_empty() && comparisons.iter().all(|comparison| comparison.judgement.finished)
}

fn run_on(
    store: &mut Store,
    stage: &mut dyn Stage,
    told: &mut dyn FnMut(&Progress),
    comparisons: &mut Vec<Comparison>,
) -> Result<(), Stop> {
    let run_s = warm_up(&store.plan, stage, told)?;
    let mut plan = store.plan.clone();
    if store.trials.is_empty() && plan.fill(run_s) {
        store.replan(plan)?;
    }
    told(&Progress::Begins { plan: &store.plan });
    loop {
        let settled = settled_blocks(&store.plan, &store.trials)?.len();
        let block = u32::try_from(settled).unwrap_or(u32::MAX);
        whole_block(store, stage, told, block)?;
        if is_look(&store.plan, settled + 1) {
            *comparisons = judged(&store.plan, &store.trials)?;
            told(&Progress::Look(comparisons));
            if is_over(&store.plan, settled + 1, comparisons) {
                return Ok(());
            }
        }
    }
}

/// Whether the trials are judged after so many blocks.
fn is_look(plan: &Plan, blocks: usize) -> bool {
    plan.rule.looks.contains(&(blocks * of_each_arm(plan)))
}

/// Trials of each arm in a block.
fn of_each_arm(plan: &Plan) -> usize {
    plan.block(0, 0).len() / plan.arms.len().max(1)
}

/// Whether some look never comes, or none is the last.
fn is_endless(plan: &Plan) -> bool {
    let (rule, of_each_arm) = (&plan.rule, of_each_arm(plan).max(1));
    plan.arms.is_empty()
        || (plan.arms.len() > 2 && rule.law != Law::Pairs)
        || rule.looks.is_empty()
        || rule.looks.len() != rule.levels.len()
        || rule.looks.iter().any(|look| look % of_each_arm != 0)
}

/// One run in every arm that does not count: caches are filled, and what cannot work is known before the first trial.
/// Gives the seconds that a run takes.
fn warm_up(plan: &Plan, stage: &mut dyn Stage, told: &mut dyn FnMut(&Progress)) -> Result<f64, Stop> {
    let mut failures = Vec::new();
    let mut elapsed_s = 0.0;
    for arm in 0..plan.arms.len() {
        told(&Progress::WarmUp { arm });
        stage.enter(arm)?;
        let mut trial = Trial::new(0, 0, 0, arm, Status::Failed, None);
        stage.run(&mut trial, false, &mut |why| told(&Progress::Stuck(why)))?;
        told(&Progress::WarmedUp { trial: &trial });
        elapsed_s += trial.elapsed_s;
        if trial.status != Status::Ok {
            failures.push(trial.reason.unwrap_or_else(|| "it gave no number".to_owned()));
        }
    }
    match failures.pop() {
        Some(why) if failures.len() + 1 == plan.arms.len() => Err(RunError::NothingWorks(why).into()),
        _ => Ok(elapsed_s / real(plan.arms.len().max(1))),
    }
}

/// Runs a block until it is whole, drawing it anew each time that it is spoilt.
fn whole_block(
    store: &mut Store,
    stage: &mut dyn Stage,
    told: &mut dyn FnMut(&Progress),
    block: u32,
) -> Result<(), Stop> {
    let drawn = store.trials.iter().filter(|trial| trial.block == block).map(|trial| trial.attempt).max();
    let first = drawn.map_or(0, |last| last.saturating_add(1));
    let mut spoilt = String::new();
    for attempt in first..first.saturating_add(ATTEMPTS) {
        match run_block(store, stage, told, (block, attempt))? {
            None => return Ok(()),
            Some(why) => {
                told(&Progress::Again(&why));
                spoilt = why;
            }
        }
    }
    Err(RunError::Spoilt(spoilt).into())
}

/// Runs the trials of a block; gives the reason when it was spoilt.
fn run_block(
    store: &mut Store,
    stage: &mut dyn Stage,
    told: &mut dyn FnMut(&Progress),
    (block, attempt): (u32, u32),
) -> Result<Option<String>, Stop> {
    for (place, arm) in store.plan.block(block, attempt).into_iter().enumerate() {
        let mut trial = Trial::new(block, attempt, place, arm, Status::Failed, None);
        let switched = stage.enter(arm)?;
        if switched {
            trial.settled_s = stage.settle(&store.plan.settle)?;
        }
        stage.run(&mut trial, true, &mut |why| told(&Progress::Stuck(why)))?;
        if let Some(why) = stage.disturbed() {
            trial.status = Status::Discarded;
            trial.reason = Some(why);
        }
        let spoilt = (trial.status == Status::Discarded)
            .then(|| trial.reason.clone().unwrap_or_else(|| "it was disturbed".to_owned()));
        store.append(trial)?;
        if let Some(trial) = store.trials.last() {
            told(&Progress::Trial { trial });
        }
        if spoilt.is_some() {
            return Ok(spoilt);
        }
    }
    Ok(None)
}
