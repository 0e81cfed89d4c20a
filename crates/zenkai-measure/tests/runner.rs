//! Experiments carried out on a made-up stage.

use zenkai_measure::{
    experiment::{
        Arm, Finish, Metric, Plan, Progress, RunError, Settle, Stage, StageError, Status, Store, Trial,
        analyze, carry_out,
    },
    statistics::verdict::{Better, Verdict},
};

/// A stage whose workload takes a second in arm 0 and `seconds` in the others, and where things go wrong on demand.
struct Made {
    seconds: f64,
    entered: Option<usize>,
    switches: usize,
    runs: usize,
    interrupt_at: Option<usize>,
    disturb: Vec<usize>,
    suspend: Vec<usize>,
    failing: Vec<usize>,
}

impl Made {
    fn new(seconds: f64) -> Self {
        let (interrupt_at, disturb, suspend, failing) = (None, Vec::new(), Vec::new(), Vec::new());
        Self { seconds, entered: None, switches: 0, runs: 0, interrupt_at, disturb, suspend, failing }
    }
}

impl Stage for Made {
    fn enter(&mut self, arm: usize) -> Result<bool, StageError> {
        let switched = self.entered.replace(arm) != Some(arm);
        self.switches += usize::from(switched);
        Ok(switched)
    }

    fn settle(&mut self, settle: &Settle) -> Result<f64, StageError> {
        Ok(settle.at_least_s)
    }

    fn run(&mut self, trial: &mut Trial, _: bool, stuck: &mut dyn FnMut(&str)) -> Result<(), StageError> {
        assert_eq!(self.entered, Some(trial.arm));
        self.runs += 1;
        if self.interrupt_at == Some(self.runs) {
            stuck("it waits in the kernel");
            return Err(StageError::Interrupted);
        }
        if self.failing.contains(&trial.arm) {
            trial.reason = Some("exit code 1".into());
            return Ok(());
        }
        if self.suspend.contains(&self.runs) {
            (trial.status, trial.reason) = (Status::Discarded, Some("the machine was suspended".into()));
            return Ok(());
        }
        // A little noise from the number of the run, so that no two are equal.
        let noise = f64::from(u8::try_from(self.runs * 7919 % 101).unwrap_or_default()) / 10_000.0;
        trial.status = Status::Ok;
        trial.elapsed_s = if trial.arm == 0 { 1.0 } else { self.seconds } + noise;
        trial.value = Some(trial.elapsed_s);
        Ok(())
    }

    fn disturbed(&mut self) -> Option<String> {
        self.disturb.contains(&self.runs).then(|| "somebody changed vm.swappiness".into())
    }
}

fn plan(arms: usize) -> Plan {
    let arms = (0..arms).map(|arm| Arm::new(format!("arm {arm}"), "now")).collect();
    let metric = Metric { name: "time".into(), unit: "s".into(), pattern: None };
    Plan::new(arms, vec!["true".into()], metric, Better::Lower, 7, 40)
}

fn quietly(store: &mut Store, stage: &mut Made) -> Result<Finish, RunError> {
    carry_out(store, stage, &mut |_| {})
}

#[test]
fn a_difference_is_found_and_the_experiment_ends() {
    let dir = tempfile::tempdir().unwrap();
    let mut store = Store::create(dir.path(), plan(2)).unwrap();
    let mut stage = Made::new(1.2);
    let Ok(Finish::Done(found)) = quietly(&mut store, &mut stage) else { panic!("not done") };
    assert_eq!(found[0].judgement.verdict, Verdict::Different);
    assert_eq!(found[0].judgement.decided_at, Some(6));
    assert_eq!((store.trials.len(), stage.runs), (12, 14), "two runs do not count");
    assert_eq!(analyze(&store.plan, &store.trials).unwrap(), found);
    let settled = store.trials.iter().filter(|trial| trial.settled_s > 0.0).count();
    assert!(settled <= stage.switches && settled >= stage.switches - 2, "settled only after a switch");
}

/// Runs that do not count decide how many pairs are planned, and on disk the plan is changed before the first trial.
#[test]
fn what_fits_into_the_time_is_planned_before_the_first_trial() {
    let planned = |fill_s: Option<f64>, settle_s: f64| {
        let dir = tempfile::tempdir().unwrap();
        let settle = Settle { at_least_s: settle_s, at_most_s: settle_s };
        let mut store = Store::create(dir.path(), Plan { fill_s, settle, ..plan(2) }).unwrap();
        let mut stage = Made { interrupt_at: Some(4), ..Made::new(1.0) };
        assert_eq!(quietly(&mut store, &mut stage).unwrap(), Finish::Interrupted);
        let (plan, trials) = Store::read(dir.path()).unwrap();
        assert_eq!((trials.len(), plan.rule.looks.len()), (1, plan.rule.levels.len()));
        assert_eq!(plan, store.plan);
        assert!(dir.path().join("experiment.json.new").symlink_metadata().is_err());
        // Going on does not change the plan any more.
        let mut stage = Made { interrupt_at: Some(4), ..Made::new(0.001) };
        assert_eq!(quietly(&mut store, &mut stage).unwrap(), Finish::Interrupted);
        assert_eq!(plan, store.plan);
        assert!(store.replan(plan.clone()).is_err());
        plan.rule.looks
    };
    let usual = planned(None, 0.0);
    assert_eq!(usual.last(), Some(&40));
    assert_eq!(planned(Some(79.0), 0.0), usual, "40 pairs take longer already");
    let longer = planned(Some(121.0), 0.0);
    assert_eq!((longer.first(), longer.last()), (Some(&6), Some(&60)));
    assert_eq!(planned(Some(10_000.0), 0.0).last(), Some(&200));
    assert_eq!(planned(Some(121.0), 2.0), usual, "switches cost time too");
}

#[test]
fn three_arms_run_until_all_are_decided() {
    let dir = tempfile::tempdir().unwrap();
    let mut store = Store::create(dir.path(), plan(3)).unwrap();
    let Ok(Finish::Done(found)) = quietly(&mut store, &mut Made::new(1.2)) else { panic!("not done") };
    assert_eq!(found.len(), 2);
    assert!(found.iter().all(|comparison| comparison.judgement.verdict == Verdict::Different));
    let ran = |arm| store.trials.iter().filter(|trial| trial.arm == arm).count();
    assert_eq!((ran(0), ran(1)), (ran(1), ran(2)));
}

#[test]
fn wherever_it_is_interrupted_it_goes_on_to_the_same_kind_of_end() {
    for interrupt_at in 1..14 {
        let dir = tempfile::tempdir().unwrap();
        let mut store = Store::create(dir.path(), plan(2)).unwrap();
        let mut stage = Made { interrupt_at: Some(interrupt_at), ..Made::new(1.2) };
        let mut stuck = 0;
        let mut note = |progress: &Progress| stuck += usize::from(matches!(progress, Progress::Stuck(_)));
        assert_eq!(carry_out(&mut store, &mut stage, &mut note).unwrap(), Finish::Interrupted);
        assert_eq!(stuck, 1);
        drop(store);
        let mut store = Store::open(dir.path()).unwrap();
        let Ok(Finish::Done(found)) = quietly(&mut store, &mut Made::new(1.2)) else { panic!("not done") };
        assert_eq!(found[0].judgement.verdict, Verdict::Different, "interrupted in run {interrupt_at}");
        // Once it is decided, nothing is run any more.
        let mut stage = Made::new(1.2);
        assert_eq!(quietly(&mut store, &mut stage).unwrap(), Finish::Done(found));
        assert_eq!(stage.runs, 0);
    }
}

#[test]
fn a_spoilt_block_is_drawn_again_and_kept_as_spoilt() {
    let dir = tempfile::tempdir().unwrap();
    let mut store = Store::create(dir.path(), plan(2)).unwrap();
    let mut stage = Made { disturb: vec![5, 8], ..Made::new(1.2) };
    let mut again = Vec::new();
    let mut note = |progress: &Progress| {
        if let Progress::Again(why) = progress {
            again.push((*why).to_owned());
        }
    };
    assert!(matches!(carry_out(&mut store, &mut stage, &mut note), Ok(Finish::Done(_))));
    assert_eq!(again.len(), 2);
    let spoilt = store.trials.iter().filter(|trial| trial.status == Status::Discarded);
    assert!(spoilt.clone().all(|trial| trial.reason.as_deref() == Some("somebody changed vm.swappiness")));
    assert_eq!(spoilt.count(), 2);
    let mut stage = Made { disturb: (1..100).collect(), ..Made::new(1.2) };
    let dir = tempfile::tempdir().unwrap();
    let mut store = Store::create(dir.path(), plan(2)).unwrap();
    assert!(matches!(quietly(&mut store, &mut stage), Err(RunError::Spoilt(_))));
}

#[test]
fn failures_are_the_worst_results_and_everything_failing_is_no_experiment() {
    let dir = tempfile::tempdir().unwrap();
    let mut store = Store::create(dir.path(), plan(2)).unwrap();
    let mut stage = Made { failing: vec![1], ..Made::new(1.2) };
    let Ok(Finish::Done(found)) = quietly(&mut store, &mut stage) else { panic!("not done") };
    let last = found[0].judgement.looks.last().unwrap();
    assert_eq!((found[0].judgement.verdict, last.change.is_none()), (Verdict::Different, true));
    assert_eq!(last.failed, [0, last.pairs]);
    let dir = tempfile::tempdir().unwrap();
    let mut store = Store::create(dir.path(), plan(2)).unwrap();
    let mut stage = Made { failing: vec![0, 1], ..Made::new(1.2) };
    let Err(RunError::NothingWorks(why)) = quietly(&mut store, &mut stage) else { panic!("it went on") };
    assert_eq!((why.as_str(), store.trials.len()), ("exit code 1", 0));
}

#[test]
fn a_run_during_a_suspend_has_its_block_drawn_again() {
    let dir = tempfile::tempdir().unwrap();
    let mut store = Store::create(dir.path(), plan(2)).unwrap();
    // Two warm up; run 4 is the second of the first block, run 9 the first of the third.
    let mut stage = Made { suspend: vec![4, 9], ..Made::new(1.2) };
    let mut told = Vec::new();
    let done = carry_out(&mut store, &mut stage, &mut |progress| {
        if let Progress::Again(why) = progress {
            told.push((*why).to_owned());
        }
    });
    let Ok(Finish::Done(found)) = done else { panic!("not done") };
    assert_eq!(told, ["the machine was suspended"; 2]);
    assert_eq!(found[0].judgement.decided_at, Some(6));
    let discarded: Vec<_> = store.trials.iter().filter(|trial| trial.status == Status::Discarded).collect();
    assert_eq!(
        discarded.iter().map(|trial| (trial.block, trial.attempt, trial.place)).collect::<Vec<_>>(),
        [(0, 0, 1), (1, 0, 0),]
    );
    assert_eq!(
        store.trials.len(),
        12 + 3,
        "what was measured of the two spoilt blocks is kept, and does not count"
    );
    assert_eq!(analyze(&store.plan, &store.trials).unwrap(), found);
}

#[test]
fn a_single_arm_is_run_as_often_as_asked_for_and_judged_by_nobody() {
    let dir = tempfile::tempdir().unwrap();
    let metric = Metric { name: "time".into(), unit: "s".into(), pattern: None };
    let plan = Plan::recording(vec!["true".into()], metric, Better::Lower, 7, 5);
    let mut store = Store::create(dir.path(), plan).unwrap();
    let mut stage = Made { interrupt_at: Some(4), disturb: vec![2], ..Made::new(1.0) };
    assert_eq!(quietly(&mut store, &mut stage).unwrap(), Finish::Interrupted);
    assert_eq!(quietly(&mut store, &mut Made::new(1.0)).unwrap(), Finish::Done(Vec::new()));
    let good = store.trials.iter().filter(|trial| trial.status == Status::Ok).count();
    assert_eq!((good, store.trials.len()), (5, 6), "a spoilt run is run again");
    assert!(analyze(&store.plan, &store.trials).is_err(), "one arm is no experiment");
    let mut stage = Made::new(1.0);
    assert_eq!(quietly(&mut store, &mut stage).unwrap(), Finish::Done(Vec::new()));
    assert_eq!(stage.runs, 0, "it is over");
}

#[test]
fn a_plan_that_was_edited_does_not_run_for_ever() {
    let edits: [fn(&mut Plan); 6] = [
        |plan| plan.rule.looks = vec![6, 7],
        |plan| plan.rule.looks = vec![6, 9, 40],
        |plan| plan.rule.levels.truncate(3),
        |plan| (plan.rule.looks, plan.rule.levels) = (Vec::new(), Vec::new()),
        |plan| plan.arms.push(Arm::new("arm 2", "now")),
        |plan| plan.arms.clear(),
    ];
    for (nth, edit) in edits.into_iter().enumerate() {
        let dir = tempfile::tempdir().unwrap();
        let mut plan = plan(2);
        edit(&mut plan);
        let mut store = Store::create(dir.path(), plan).unwrap();
        let mut stage = Made { interrupt_at: Some(200), ..Made::new(1.0) };
        let ended = quietly(&mut store, &mut stage);
        assert!(matches!(ended, Err(RunError::Endless)), "{nth}: {ended:?}");
        assert_eq!(stage.runs, 0);
    }
}

#[test]
fn no_attempt_comes_after_the_last_that_can_be_counted() {
    let dir = tempfile::tempdir().unwrap();
    let mut store = Store::create(dir.path(), plan(2)).unwrap();
    let arm = store.plan.block(0, u32::MAX)[0];
    store.append(Trial::new(0, u32::MAX, 0, arm, Status::Failed, None)).unwrap();
    assert!(matches!(quietly(&mut store, &mut Made::new(1.2)), Err(RunError::Spoilt(_))));
}
