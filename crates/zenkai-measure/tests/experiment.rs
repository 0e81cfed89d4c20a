//! An experiment on disk: written before the first trial, resumed after a crash, judged the same again.

#![expect(clippy::disallowed_methods, reason = "the store is damaged and looked at past the door")]

use std::fs;
use std::io::Write;

use zenkai_measure::experiment::{
    AnalyzeError, Arm, Metric, Plan, Status, Store, StoreError, Trial, analyze, settled_blocks,
};
use zenkai_measure::statistics::rng::Rng;
use zenkai_measure::statistics::verdict::{Better, Verdict};

fn plan(arms: usize) -> Plan {
    let arms = (0..arms).map(|arm| Arm::new(format!("arm {arm}"), "now")).collect();
    let metric = Metric { name: "time".into(), unit: "s".into(), pattern: None };
    Plan::new(arms, vec!["true".into()], metric, Better::Lower, 42, 40)
}

/// Block `index` as it would run: 1 s, 2 % noise, arm `slow` 8 % slower.
fn block(plan: &Plan, index: u32, attempt: u32, slow: usize) -> Vec<Trial> {
    let mut rng = Rng::new(u64::from(index) << 8 | u64::from(attempt));
    let trial = |(place, arm): (usize, usize)| {
        let value = (1.0 + f64::from(rng.below(2_000)) / 100_000.0) * if arm == slow { 1.08 } else { 1.0 };
        Trial::new(index, attempt, place, arm, Status::Ok, Some(value))
    };
    plan.block(index, attempt).into_iter().enumerate().map(trial).collect()
}

#[test]
fn a_verdict_is_the_same_when_it_is_computed_again() {
    let dir = tempfile::tempdir().unwrap();
    let mut store = Store::create(dir.path(), plan(2)).unwrap();
    assert!(dir.path().join("experiment.json").is_file());
    for index in 0..6 {
        for trial in block(&store.plan.clone(), index, 0, 1) {
            store.append(trial).unwrap();
        }
    }
    let found = analyze(&store.plan, &store.trials).unwrap();
    let (plan, trials) = Store::read(dir.path()).unwrap();
    assert_eq!((&plan, &trials), (&store.plan, &store.trials));
    assert_eq!(analyze(&plan, &trials).unwrap(), found);
    let judgement = &found[0].judgement;
    assert_eq!((judgement.verdict, judgement.finished), (Verdict::Different, true));
    let change = judgement.looks.last().unwrap().change.unwrap();
    assert!(change.low.unwrap() < 8.0 && 8.0 < change.high.unwrap(), "{change:?}");
    assert!(matches!(Store::create(dir.path(), plan), Err(StoreError::Io { .. })), "never overwritten");
}

#[test]
fn a_start_that_was_killed_is_no_experiment() {
    let dir = tempfile::tempdir().unwrap();
    let file = |name: &str| dir.path().join(name);
    fs::write(file("experiment.json.new"), "{\"version\": 1, \"ar").unwrap();
    fs::write(file("trials.jsonl"), "").unwrap();
    drop(Store::create(dir.path(), plan(2)).unwrap());
    assert!(!file("experiment.json.new").is_file());
    assert_eq!(Store::read(dir.path()).unwrap(), (plan(2), Vec::new()));
    // Trials whose plan was lost are somebody's work.
    fs::remove_file(file("experiment.json")).unwrap();
    fs::write(file("trials.jsonl"), "{}\n").unwrap();
    assert!(matches!(Store::create(dir.path(), plan(2)), Err(StoreError::Io { .. })));
    assert_eq!(fs::read(file("trials.jsonl")).unwrap(), b"{}\n");
}

#[test]
fn a_line_cut_off_by_a_crash_is_taken_away_and_its_block_drawn_again() {
    let dir = tempfile::tempdir().unwrap();
    let mut store = Store::create(dir.path(), plan(2)).unwrap();
    let first = block(&store.plan, 0, 0, 1);
    for trial in &first[..3] {
        store.append(trial.clone()).unwrap();
    }
    drop(store);
    let path = dir.path().join("trials.jsonl");
    fs::OpenOptions::new().append(true).open(&path).unwrap().write_all(b"{\"block\":0,\"att").unwrap();

    let mut store = Store::open(dir.path()).unwrap();
    assert_eq!(store.trials, first[..3]);
    assert!(settled_blocks(&store.plan, &store.trials).unwrap().is_empty());
    for trial in block(&store.plan.clone(), 0, 1, 1) {
        store.append(trial).unwrap();
    }
    let (plan, trials) = Store::read(dir.path()).unwrap();
    assert_eq!(trials.len(), 7);
    let settled = settled_blocks(&plan, &trials).unwrap();
    assert!(settled.len() == 1 && settled[0].iter().all(|trial| trial.attempt == 1));
}

#[test]
fn a_discarded_trial_takes_its_block_with_it_and_a_failed_one_does_not() {
    let plan = plan(2);
    let mut trials = block(&plan, 0, 0, 1);
    trials[1].status = Status::Failed;
    trials[1].value = None;
    assert_eq!(settled_blocks(&plan, &trials).unwrap().len(), 1);
    trials[2].status = Status::Discarded;
    assert!(settled_blocks(&plan, &trials).unwrap().is_empty());
    trials.extend(block(&plan, 1, 0, 1));
    assert_eq!(settled_blocks(&plan, &trials), Err(AnalyzeError::Missing(0)));
}

#[test]
fn trials_of_another_plan_are_refused() {
    let plan = plan(2);
    let mut trials = block(&plan, 0, 0, 1);
    trials[0].arm = 1 - trials[0].arm;
    assert!(matches!(analyze(&plan, &trials), Err(AnalyzeError::Order { block: 0, attempt: 0, place: 0 })));
    let twice: Vec<Trial> = [block(&plan, 0, 0, 1), block(&plan, 0, 0, 1)].concat();
    assert!(matches!(analyze(&plan, &twice), Err(AnalyzeError::Order { .. })));
    let mut alone = plan;
    alone.arms.truncate(1);
    assert_eq!(analyze(&alone, &[]), Err(AnalyzeError::Arms));
}

#[test]
fn three_arms_share_the_error_rate() {
    let plan = plan(3);
    assert!((plan.rule.alpha - 0.025).abs() < 1e-12);
    let trials: Vec<Trial> = (0..40).flat_map(|index| block(&plan, index, 0, 2)).collect();
    let found = analyze(&plan, &trials).unwrap();
    assert_eq!(found.len(), 2);
    assert_ne!(found[0].judgement.verdict, Verdict::Different);
    assert_eq!(found[1].judgement.verdict, Verdict::Different);
}

#[test]
fn damage_is_named_with_file_and_line() {
    let dir = tempfile::tempdir().unwrap();
    assert!(matches!(Store::read(dir.path()), Err(StoreError::Io { .. })));
    drop(Store::create(dir.path(), plan(2)).unwrap());
    let path = dir.path().join("trials.jsonl");
    fs::write(&path, "{\"block\":0}\n").unwrap();
    let error = Store::read(dir.path()).unwrap_err().to_string();
    assert!(error.contains("trials.jsonl, line 1: missing field"), "{error}");
    let path = dir.path().join("experiment.json");
    let text =
        fs::read_to_string(&path).unwrap().replace("\"version\": 1", "\"version\": 9, \"later\": true");
    fs::write(&path, text).unwrap();
    assert!(Store::read(dir.path()).unwrap_err().to_string().contains("version 9 is not 1"));
}

#[test]
fn what_a_later_version_wrote_is_kept() {
    let text = serde_json::to_string(&plan(2)).unwrap().replacen('{', "{\"note\":\"kept\",", 1);
    let read: Plan = serde_json::from_str(&text).unwrap();
    assert_eq!(read.other.get("note").unwrap(), "kept");
    assert!(serde_json::to_string(&read).unwrap().contains("kept"));
}
