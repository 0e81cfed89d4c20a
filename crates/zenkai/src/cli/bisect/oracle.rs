//! Experiments on this machine, each in a directory of its own.

use std::{fmt::Write as _, io::Write, path::Path, time::Instant};

use anyhow::anyhow;
use zenkai_host::{LiveHost, gauges::Interrupt};
use zenkai_measure::{
    bisect::{Answer, Ask, Event, Oracle, Purpose, Set, Stop},
    experiment::{Arm, Comparison, Finish, Plan, Store, analyze, carry_out},
    statistics::rng::following,
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
    until: Option<Instant>,
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
        until: Option<Instant>,
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
        stage.until = self.until;
        Ok(stage)
    }

    /// A new experiment; each arm is entered and left once, to know what it sets.
    fn lay_down(&self, ask: &Ask, stage: &mut LiveStage, dir: &Path) -> Result<Store, CommandError> {
        let mut plan = plan(&self.laid.plan, ask);
        for nth in 0..stage.arms.len() {
            let name = stage.arms[nth].spec.text();
            let settings = stage.settings(nth).map_err(CommandError::usage)?;
            plan.arms.push(Arm { settings, ..Arm::new(name, "") });
        }
        compare::create(dir, plan)
    }

    /// The experiment that was begun before, if it is the one that is asked for.
    fn begun(&self, ask: &Ask, dir: &Path) -> Result<Option<Store>, CommandError> {
        if !dir.join("experiment.json").try_exists()? {
            return Ok(None);
        }
        let store = Store::open(dir)?;
        let arms: Vec<String> = ask.arms.iter().map(|set| self.laid.sides.arm(set)).collect();
        match other(&store.plan, &plan(&self.laid.plan, ask), &arms) {
            None => Ok(Some(store)),
            Some(what) => Err(CommandError::usage(anyhow!(
                "{}: {what} is not what this search laid down, so its verdict answers another question. Begin a new search",
                dir.join("experiment.json").display()
            ))),
        }
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
}

/// The plan of an experiment of a search that laid down `base`, but for its arms.
fn plan(base: &Plan, ask: &Ask) -> Plan {
    let mut plan = base.clone();
    plan.order_seed = following(plan.order_seed, u64::try_from(ask.number).unwrap_or_default());
    let precision = plan.rule.precision.filter(|_| matches!(ask.purpose, Purpose::Confirm | Purpose::Rest));
    plan.rule = ask.rule(plan.rule.better, plan.order_seed);
    plan.rule.precision = precision;
    plan
}

/// What of `stored` is not as in `asked`, whose arms are called `arms`: of what decides the verdict anything.
fn other(stored: &Plan, asked: &Plan, arms: &[String]) -> Option<&'static str> {
    let named = stored.arms.iter().map(|arm| &arm.name);
    let of_run = |plan: &Plan| (plan.settle, plan.timeout_s, plan.sample_s);
    let differ = [
        ("its arms", !named.eq(arms) || stored.arms.iter().any(|arm| !arm.command.is_empty())),
        ("its command", stored.workload != asked.workload),
        ("its metric", stored.metric != asked.metric),
        ("its seed", stored.order_seed != asked.order_seed),
        ("its rule", stored.rule != asked.rule),
        ("how a run is made", of_run(stored) != of_run(asked)),
    ];
    differ.iter().find(|(_, differs)| *differs).map(|(what, _)| *what)
}

impl Oracle for LiveOracle<'_> {
    fn measure(&mut self, ask: &Ask) -> Result<Vec<Answer>, Stop> {
        let dir = self.dir.join(format!("{:02}", ask.number));
        let mut stage = self.stage(ask).map_err(|error| failed(&error))?;
        let begun = self.begun(ask, &dir).map_err(|error| failed(&error))?;
        // Before a plan is laid down: its arms would be those of a machine that the search is not about.
        if !begun.as_ref().is_some_and(is_over) {
            self.check()?;
        }
        let stored = begun.map_or_else(|| self.lay_down(ask, &mut stage, &dir), Ok);
        let mut store = match stored {
            Ok(store) => store,
            Err(error) => {
                self.not_restored = stage.leave().err().map(|why| why.to_string());
                return Err(failed(&error));
            }
        };
        stage.ready(&store.plan, &store.trials, &dir);
        let mut teller = Teller::new(store.plan.clone(), &store.trials, &mut *self.err);
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

#[cfg(test)]
mod tests {
    use zenkai_measure::{
        experiment::Metric,
        statistics::{sequential::looks, verdict::Better},
    };

    use super::*;

    /// What is edited, and how.
    type Edit = (&'static str, fn(&mut Plan));

    #[test]
    fn an_experiment_is_taken_for_the_one_asked_for_only_if_it_is() {
        let metric = Metric { name: "time".into(), unit: "s".into(), pattern: None };
        let base = Plan::new(Vec::new(), vec!["true".into()], metric, Better::Lower, 7, 40);
        let arms = vec![Set::new(), Set::from([1])];
        let purpose = Purpose::Confirm;
        let ask = Ask { number: 5, purpose, arms, alpha: 0.025, looks: looks(40), rho: 0.02 };
        let names = ["as in now".to_owned(), "vm.swappiness".to_owned()];
        let asked = plan(&base, &ask);
        let mut laid = asked.clone();
        laid.arms = names.iter().map(|name| Arm::new(name, "")).collect();
        // As it is read back.
        let stored: Plan = serde_json::from_str(&serde_json::to_string(&laid).unwrap()).unwrap();
        assert_eq!(other(&stored, &asked, &names), None);
        let edits: [Edit; 10] = [
            ("its arms", |plan| plan.arms.swap(0, 1)),
            ("its arms", |plan| plan.arms[1].command = vec!["false".into()]),
            ("its command", |plan| plan.workload.push("x".into())),
            ("its metric", |plan| plan.metric.name = "user".into()),
            ("its seed", |plan| plan.order_seed += 1),
            ("its rule", |plan| plan.rule.alpha = 0.5),
            ("its rule", |plan| plan.rule.better = Better::Higher),
            ("its rule", |plan| plan.rule.rho = 0.0),
            ("its rule", |plan| plan.rule.levels[0] = 1.0),
            ("how a run is made", |plan| plan.timeout_s = Some(0.1)),
        ];
        for (nth, (what, edit)) in edits.into_iter().enumerate() {
            let mut edited = stored.clone();
            edit(&mut edited);
            assert_eq!(other(&edited, &asked, &names), Some(what), "{nth}");
        }
        // The next experiment of the search is another one, although its arms are the same.
        let next = Ask { number: 6, alpha: 0.05 / 6.0, ..ask };
        assert_eq!(other(&stored, &plan(&base, &next), &names), Some("its seed"));
    }
}
