//! Explanations of experiments whose truth is known, because they were made up.

use super::*;
use crate::experiment::analyze;
use crate::experiment::made_up::Recipe;
use crate::statistics::verdict::Verdict;

fn explained(recipe: &Recipe) -> Explanation {
    let plan = recipe.plan();
    let trials = recipe.trials(&plan);
    let found = analyze(&plan, &trials).unwrap();
    explain(&plan, &trials, found.last().unwrap(), &BTreeMap::new()).unwrap()
}

fn term<'e>(explanation: &'e Explanation, name: &str) -> &'e Term {
    explanation.splits[0].terms.iter().find(|term| term.name == name).unwrap()
}

#[test]
fn a_faster_clock_is_named() {
    let explanation = explained(&Recipe::default());
    let split = &explanation.splits[0];
    let sum: f64 = split.terms.iter().map(|term| term.theta).sum();
    assert!((sum - split.theta).abs() < 1e-12, "the terms add up");
    assert!((term(&explanation, "clock").share.unwrap() - 1.0).abs() < 0.15, "{split:?}");
    assert!(term(&explanation, "cycles needed").share.unwrap().abs() < 0.15, "{split:?}");
    assert_eq!(
        (explanation.channels[0].name.as_str(), explanation.channels[0].role),
        ("clock.mean", Role::Explains)
    );
    assert!((explanation.channels[0].percent.unwrap() - 8.7).abs() < 0.5, "{:?}", explanation.channels[0]);
    assert!(explanation.sentences[0].contains("clock explains"), "{:?}", explanation.sentences);
}

#[test]
fn a_large_change_is_told_in_factors() {
    let said = explained(&Recipe { effect: 3.0, by_clock: false, ..Recipe::default() }).sentences;
    assert!(
        said[0].starts_with("Time is 4.0 times what it was: cycles needed × 4.0, the rest × 1.0."),
        "{said:?}"
    );
}

#[test]
fn less_work_is_not_called_a_faster_clock() {
    let explanation = explained(&Recipe { by_clock: false, ..Recipe::default() });
    assert!((term(&explanation, "cycles needed").share.unwrap() - 1.0).abs() < 0.15);
    assert!(term(&explanation, "clock").share.unwrap().abs() < 0.15);
    let clock = explanation.channels.iter().find(|channel| channel.name == "clock.mean").unwrap();
    assert_ne!(clock.role, Role::Explains);
}

#[test]
fn idle_channels_are_called_changed_as_rarely_as_promised() {
    let changed = |seed| {
        let recipe = Recipe { seed, effect: 0.0, pairs: 8, idle_channels: 10, ..Recipe::default() };
        let changed = explained(&recipe).channels;
        usize::from(changed.iter().any(|channel| channel.role != Role::NotChanged))
    };
    // With nothing to find, any discovery is false: their rate over experiments is at most 10 %.
    let wrong: usize = (100..130).map(changed).sum();
    assert!(wrong <= 7, "{wrong} of 30");
}

#[test]
fn what_is_missing_is_said() {
    let recipe = Recipe::default();
    let plan = recipe.plan();
    let mut trials = recipe.trials(&plan);
    for trial in trials.iter_mut().skip(4) {
        trial.channels.remove("idle.000");
        trial.channels.remove("clock.mean");
    }
    let found = analyze(&plan, &trials).unwrap();
    let explanation = explain(&plan, &trials, &found[0], &BTreeMap::new()).unwrap();
    let names: Vec<&str> = explanation.missing.iter().map(|missing| missing.name.as_str()).collect();
    assert_eq!(names, ["clock.mean", "idle.000"]);
    let reason = &explanation.missing[0].reason;
    assert!(reason.contains("only in 2 of 6 trials"), "{reason}");
    assert_eq!(explanation.splits[0].identity, "time = CPU time needed ÷ CPUs used");
}

#[test]
fn channels_of_failed_trials_are_not_their_worst() {
    let recipe = Recipe { fail_every: 5, effect: 0.0, ..Recipe::default() };
    let plan = recipe.plan();
    let mut trials = recipe.trials(&plan);
    for trial in trials.iter_mut().filter(|trial| trial.value.is_none()) {
        trial.channels.clear();
    }
    let found = analyze(&plan, &trials).unwrap();
    let explanation = explain(&plan, &trials, &found[0], &BTreeMap::new()).unwrap();
    let clock = explanation.channels.iter().find(|channel| channel.name == "clock.mean").unwrap();
    assert!(clock.percent.unwrap().abs() < 0.5, "{clock:?}");
}

#[test]
fn other_metrics_are_corrected_together_and_the_primary_is_not_among_them() {
    let explanation = explained(&Recipe::default());
    let names: Vec<&str> = explanation.metrics.iter().map(|metric| metric.name.as_str()).collect();
    assert_eq!(names, ["sys", "user"]);
    assert!(explanation.metrics.iter().all(|metric| metric.corrected >= metric.p && metric.corrected < 0.02));
    let percent = explanation.metrics[0].percent.unwrap();
    assert!((percent + 8.0).abs() < 1.5, "{percent}");
}

#[test]
fn nothing_yet_is_no_panic() {
    for pairs in [0, 2, 4] {
        let recipe = Recipe { pairs, ..Recipe::default() };
        let plan = recipe.plan();
        let trials = recipe.trials(&plan);
        let found = analyze(&plan, &trials).unwrap();
        assert_eq!(found[0].judgement.verdict, Verdict::Undecided);
        assert_eq!(explain(&plan, &trials, &found[0], &BTreeMap::new()).unwrap().pairs, pairs);
    }
}

#[test]
fn a_slower_disk_is_named() {
    let recipe = Recipe { fixed: true, by_clock: false, effect: 0.2, ..Recipe::default() };
    let plan = recipe.plan();
    let mut trials = recipe.trials(&plan);
    for trial in &mut trials {
        // 10 000 requests in each trial, two under way: what takes longer is the latency.
        let rate = 10_000.0 / trial.elapsed_s;
        trial.channels.insert("block.vda.reads".into(), rate * 0.75);
        trial.channels.insert("block.vda.writes".into(), rate * 0.25);
        trial.channels.insert("block.vda.queue".into(), 2.0);
    }
    let found = analyze(&plan, &trials).unwrap();
    let explanation = explain(&plan, &trials, &found[0], &BTreeMap::new()).unwrap();
    let io = explanation.splits.iter().find(|split| split.of == "io").unwrap();
    assert_eq!(io.terms[0].name, "latency");
    assert!((io.terms[0].share.unwrap() - 1.0).abs() < 0.05, "{io:?}");
}
