//! Experiments on this machine, each in a directory of its own.

use std::{fmt::Write as _, io::Write, path::Path, time::Instant};

use zenkai_host::{LiveHost, gauges::Interrupt};
use zenkai_measure::{
    bisect::{Answer, Ask, Event, Oracle, Purpose, Set, Stop},
    experiment::{Arm, Comparison, Finish, Plan, Store, analyze, carry_out},
    workload,
};
use zenkai_tune::transaction::Session;

use super::{laid::Laid, text};
use crate::cli::{
    CommandError,
    compare::{self, ArmSpec, LiveArm, LiveStage, Teller, visible},
};

pub(super) struct LiveOracle<'a> {
    laid: &'a Laid,
    dir: &'a Path,
    session: &'a Session<'a>,
    interrupt: &'a Interrupt,
    until: Instant,
    err: &'a mut dyn Write,
    /// Whether the machine must be as it was when the search was laid down, before anything is measured.
    pub(super) resumed: bool,
    /// What could not be put back.
    pub(super) not_restored: Option<String>,
}

/// Changes that are named.
const NAMED: usize = 6;

/// Whether nothing is left to run.
fn is_over(store: &Store) -> bool {
    let finished = |comparison: &Comparison| comparison.judgement.finished;
    analyze(&store.plan, &store.trials).is_ok_and(|comparisons| comparisons.iter().all(finished))
}

fn failed(error: &CommandError) -> Stop {
    Stop::Failed(format!("{:#}", error.error))
}

impl<'a> LiveOracle<'a> {
    pub(super) fn new(
        laid: &'a Laid,
        dir: &'a Path,
        session: &'a Session<'a>,
        interrupt: &'a Interrupt,
        until: Instant,
        err: &'a mut dyn Write,
    ) -> Self {
        Self { laid, dir, session, interrupt, until, err, resumed: false, not_restored: None }
    }

    fn stage(&self, ask: &Ask) -> Result<LiveStage<'a>, CommandError> {
        let sides = &self.laid.sides;
        let prepared = workload::prepare(&self.laid.plan.workload);
        let arm = |set: &Set| {
            let on: Vec<usize> = set.iter().copied().collect();
            let spec = ArmSpec::worked_out(sides.arm(set), sides.wishes(&on), sides.are_profiles);
            LiveArm { spec, workload: prepared.clone() }
        };
        let arms: Vec<LiveArm> = ask.arms.iter().map(arm).collect();
        let metric = &self.laid.plan.metric;
        let choice = compare::choice(Some(metric.pattern.as_deref().unwrap_or(&metric.name)), &arms)?;
        let mut stage = LiveStage::new(Some(self.session), arms, choice, self.interrupt);
        stage.until = Some(self.until);
        Ok(stage)
    }

    fn plan(&self, ask: &Ask, stage: &mut LiveStage) -> Result<Plan, CommandError> {
        let mut plan = self.laid.plan.clone();
        // SplitMix's increment keeps the seeds of a search apart; the upper bits stay free for readers of JSON.
        let number = u64::try_from(ask.number).unwrap_or_default();
        plan.order_seed = plan.order_seed.wrapping_add(number.wrapping_mul(0x9e37_79b9_7f4a_7c15)) >> 12;
        let precision =
            plan.rule.precision.filter(|_| matches!(ask.purpose, Purpose::Confirm | Purpose::Rest));
        plan.rule = ask.rule(plan.rule.better, plan.order_seed);
        plan.rule.precision = precision;
        for nth in 0..stage.arms.len() {
            let name = stage.arms[nth].spec.text();
            let settings = stage.settings(nth).map_err(CommandError::usage)?;
            plan.arms.push(Arm { settings, ..Arm::new(name, "") });
        }
        Ok(plan)
    }

    /// Runs of today beside runs of yesterday say something only if the machine is the same.
    fn check(&mut self) -> Result<(), Stop> {
        if !std::mem::take(&mut self.resumed) {
            return Ok(());
        }
        let changed = self.laid.changed(&LiveHost);
        if changed.is_empty() {
            return Ok(());
        }
        let mut named = changed.iter().take(NAMED).cloned().collect::<Vec<_>>().join("; ");
        if changed.len() > NAMED {
            let _ = write!(named, "; and {} more", changed.len() - NAMED);
        }
        Err(Stop::Failed(visible(&format!(
            "this machine is not as it was when the search began, so new runs would not fit the old ones: {named}. \
             Set that back and go on, or begin a new search"
        ))))
    }

    /// The experiment as it was begun before, or a new one.
    fn store(&self, ask: &Ask, stage: &mut LiveStage, dir: &Path) -> Result<Store, CommandError> {
        if dir.join("experiment.json").try_exists()? {
            let store = Store::open(dir)?;
            let same = store.plan.arms.iter().map(|arm| arm.name.clone());
            if same.eq(stage.arms.iter().map(|arm| arm.spec.text())) {
                return Ok(store);
            }
            let error = anyhow::anyhow!("{} is not what this search asks for here", dir.display());
            return Err(CommandError::usage(error).hint("begin a new search"));
        }
        let plan = self.plan(ask, stage)?;
        compare::create(dir, plan)
    }
}

impl Oracle for LiveOracle<'_> {
    fn measure(&mut self, ask: &Ask) -> Result<Vec<Answer>, Stop> {
        let dir = self.dir.join(format!("{:02}", ask.number));
        let mut stage = self.stage(ask).map_err(|error| failed(&error))?;
        let stored = self.store(ask, &mut stage, &dir);
        let mut store = match stored {
            Ok(store) => store,
            Err(error) => {
                self.not_restored = stage.leave().err().map(|why| why.to_string());
                return Err(failed(&error));
            }
        };
        if !is_over(&store) {
            self.check()?;
        }
        stage.ready(&store.plan, &store.trials, &dir);
        let mut teller = Teller::new(store.plan.clone(), store.trials.len(), &mut *self.err);
        teller.keep(&format!("{}. {}", ask.number, text::question(ask, &self.laid.sides)));
        let finish = carry_out(&mut store, &mut stage, &mut |progress| teller.tell(progress));
        teller.end();
        let late = stage.is_late();
        // The machine first, whatever came of the experiment.
        if let Err(why) = stage.leave() {
            self.not_restored = Some(why.to_string());
            return Err(Stop::Failed(why.to_string()));
        }
        match finish {
            Ok(Finish::Done(comparisons)) => {
                Ok(comparisons.iter().map(|comparison| (&comparison.judgement).into()).collect())
            }
            Ok(Finish::Interrupted) if late => Err(Stop::Budget),
            Ok(Finish::Interrupted) => Err(Stop::Interrupted),
            Err(error) => Err(Stop::Failed(error.to_string())),
        }
    }

    fn hear(&mut self, event: &Event) {
        let _ = writeln!(self.err, "{}", text::event(event, &self.laid.sides));
    }
}
