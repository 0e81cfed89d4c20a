//! Reports of made-up experiments: what must be said, and that nothing read can break out of the page.

use std::collections::BTreeMap;

use zenkai_measure::experiment::made_up::Recipe;
use zenkai_measure::experiment::{Joined, SideOf, Status, analyze, join, look_apart};
use zenkai_measure::explain::{explain, explain_apart};
use zenkai_measure::sampler::Bin;

use super::*;
use crate::{Style, render};

/// A made-up experiment with everything found in it.
pub(super) struct MadeUp {
    pub(super) plan: Plan,
    pub(super) trials: Vec<Trial>,
    comparisons: Vec<Comparison>,
    explanations: Vec<Explanation>,
    pub(super) host: Option<Value>,
    pub(super) series: Vec<TimeSeries>,
    apart: bool,
}

impl MadeUp {
    pub(super) fn new(recipe: &Recipe) -> Self {
        let plan = recipe.plan();
        let trials = recipe.trials(&plan);
        Self::of(recipe, plan, trials)
    }

    pub(super) fn of(recipe: &Recipe, plan: Plan, trials: Vec<Trial>) -> Self {
        let comparisons = analyze(&plan, &trials).unwrap();
        let about = BTreeMap::new();
        let explained = comparisons.iter().map(|found| explain(&plan, &trials, found, &about).unwrap());
        let explanations = explained.collect();
        let series = Self::series(recipe, &trials);
        Self { plan, trials, comparisons, explanations, host: None, series, apart: false }
    }

    /// The same as two recordings, the other arm after the first.
    pub(super) fn apart(recipe: &Recipe) -> Self {
        let plan = recipe.plan();
        let trials = recipe.trials(&plan);
        let of_arm = |arm| -> Vec<Trial> {
            let of_arm = trials.iter().filter(|trial| trial.arm == arm);
            of_arm.map(|trial| Trial { arm: 0, ..trial.clone() }).collect()
        };
        let of_arm = [of_arm(0), of_arm(1)];
        let mut plan = plan.clone();
        plan.arms.truncate(1);
        let side = |arm: usize| SideOf { name: "made up", plan: &plan, trials: &of_arm[arm] };
        let joined = join(side(0), side(1)).unwrap();
        let series = Self::series(recipe, &joined.trials);
        let comparisons = vec![look_apart(&joined)];
        let explanations = vec![explain_apart(&joined.plan, &joined.trials, &BTreeMap::new())];
        let Joined { plan, trials, .. } = joined;
        Self { plan, trials, comparisons, explanations, host: None, series, apart: true }
    }

    fn series(recipe: &Recipe, trials: &[Trial]) -> Vec<TimeSeries> {
        let mut series = Vec::new();
        for (index, trial) in trials.iter().enumerate() {
            for channel in trial.channels.keys() {
                series.push(TimeSeries {
                    trial: index,
                    channel: channel.as_str().into(),
                    unit: if channel == "clock.mean" { "Hz" } else { "%" }.into(),
                    words: "".into(),
                    group: channel.split('.').next().unwrap_or("").into(),
                    bins: recipe
                        .points(trial, channel, 60)
                        .into_iter()
                        .map(|(_, value)| bin(value))
                        .collect(),
                    width_s: bin_width(60.0, 1.0),
                });
            }
        }
        series
    }

    pub(super) fn shown(&self) -> Experiment<'_> {
        Experiment {
            dir: "/tmp/made up",
            plan: &self.plan,
            trials: &self.trials,
            comparisons: &self.comparisons,
            explanations: &self.explanations,
            host: self.host.as_ref(),
            same: None,
            series: &self.series,
            confirmed: &[],
            notes: &[],
            apart: self.apart,
        }
    }

    fn text(&self) -> String {
        render(&experiment(&self.shown()), Style::default())
    }
}

/// A bin of one sample.
fn bin(value: Option<f64>) -> Option<Bin> {
    value.map(|value| Bin { low: value, mean: value, high: value })
}

#[test]
fn the_verdict_comes_first_and_in_one_sentence() {
    let text = MadeUp::new(&Recipe::default()).text();
    let first = text.lines().next().unwrap();
    assert!(first.starts_with("  different  performance is 8."), "{first}");
    assert!(
        first.contains("% faster than balanced (made up) [") && first.ends_with("]: different"),
        "{first}"
    );
    let slower = MadeUp::new(&Recipe { effect: 0.08, ..Recipe::default() }).text();
    assert!(slower.lines().next().unwrap().contains("% slower than"), "{slower}");
}

#[test]
fn equal_and_undecided_say_what_they_rest_on() {
    let equal = MadeUp::new(&Recipe { effect: 0.0, pairs: 40, ..Recipe::default() }).text();
    assert!(equal.contains("performance and balanced (made up) are equal within 2 % ["), "{equal}");
    let undecided = MadeUp::new(&Recipe { effect: 0.0, pairs: 6, noise: 0.08, ..Recipe::default() }).text();
    assert!(
        undecided.contains("Undecided after 6 pairs: with performance, time may be between ")
            && undecided.contains("could have seen ≥"),
        "{undecided}"
    );
    let few = MadeUp::new(&Recipe { arms: 4, pairs: 6, noise: 0.3, effect: 0.0, ..Recipe::default() }).text();
    let few = few.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(few.contains("Undecided after 6 pairs: too few to say how performance compares with"), "{few}");
    assert!(few.contains("% (too few pairs for a 98.3 % interval), from 6 pairs"), "{few}");
    let nothing = MadeUp::new(&Recipe { pairs: 2, ..Recipe::default() }).text();
    assert!(
        nothing.contains("No verdict yet on performance: it is first looked at after 6 pairs"),
        "{nothing}"
    );
}

#[test]
fn failed_trials_settings_and_the_way_to_repeat_are_shown() {
    let text = MadeUp::new(&Recipe { fail_every: 9, ..Recipe::default() }).text();
    for wanted in [
        "Trials that gave no number",
        "made up: exit code 1",
        "scaling_governor: powersave → performance",
        "zenkai compare profile:balanced profile:throughput-performance --interval 1000ms --pairs 20 --seed 7 -- made-up-workload --size 'big one'",
        "zenkai analyze '/tmp/made up'",
        "an explanation, not proof",
    ] {
        assert!(text.contains(wanted), "{wanted}:\n{text}");
    }
}

#[test]
fn every_option_that_is_not_the_default_is_repeated() {
    let recipe = Recipe::default();
    let mut plan = recipe.plan();
    plan.rule.rho = 0.015;
    plan.rule.precision = Some(0.01);
    plan.settle = zenkai_measure::experiment::Settle { at_least_s: 0.5, at_most_s: 3.0 };
    (plan.timeout_s, plan.sample_s) = (Some(20.0), None);
    plan.rule.looks = vec![20];
    plan.metric.pattern = Some("x=([0-9]+)".into());
    plan.arms[1].parts = vec!["enter=a b".into(), "leave=c".into()];
    assert_eq!(
        super::words::repeat(&plan),
        "zenkai compare profile:balanced 'enter=a b' leave=c --metric 'x=([0-9]+)' --better lower --rho 1.5% \
         --precision 1% --timeout 20s --settle 0.5s..3s --pairs 20 --seed 7 --fixed --no-sample -- made-up-workload \
         --size 'big one'"
    );
    plan.aa = true;
    assert!(super::words::repeat(&plan).starts_with("zenkai compare --aa profile:balanced --metric"));
    // The time of a tool that has a number of its own.
    (plan.metric.pattern, plan.workload) = (None, vec!["fio".into(), "job".into()]);
    assert!(super::words::repeat(&plan).contains(" --metric time "), "{}", super::words::repeat(&plan));
}

#[test]
fn a_confirmation_says_what_the_setting_carries() {
    let recipe = Recipe::default();
    let mut plan = recipe.plan();
    plan.confirms = Some(zenkai_measure::experiment::Confirms {
        among: 1,
        dir: "/tmp/first".into(),
        knob: "swappiness".into(),
        what: vec!["vm.swappiness".into()],
        a: "now".into(),
        b: "performance".into(),
        percent: Some(-10.0),
        interval: [Some(-11.0), Some(-9.0)],
    });
    let trials = recipe.trials(&plan);
    let made_up = MadeUp::of(&recipe, plan, trials);
    let found = confirmed(&made_up.shown()).unwrap();
    assert_eq!((found.knob.as_str(), found.effect.is_some_and(|effect| effect < -5.0)), ("swappiness", true));
    assert!(found.sentence.starts_with("vm.swappiness alone carries −"), "{}", found.sentence);
    assert!(found.sentence.ends_with("of −10.0 % [−11.0, −9.0]: proved."), "{}", found.sentence);
    let text = made_up.text().split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(text.contains(&found.sentence), "{text}");
}

#[test]
fn long_names_and_arms_that_do_nothing() {
    let recipe = Recipe::default();
    let mut plan = recipe.plan();
    plan.arms[1].name = "x".repeat(60);
    plan.arms[1].settings.clear();
    plan.arms[1].parts = vec!["profile:throughput-performance".into()];
    let trials = recipe.trials(&plan);
    let text = MadeUp::of(&recipe, plan, trials).text();
    // However its lines are broken.
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(text.contains("xxx…xxx"), "{text}");
    assert!(text.contains("changes nothing here: what it asks for is so already"), "{text}");
}

#[test]
fn json_carries_the_verdict() {
    let made_up = MadeUp::new(&Recipe { arms: 3, pairs: 12, ..Recipe::default() });
    let json = experiment_json(&made_up.shown()).unwrap();
    assert_eq!(json["schema"], "zenkai.experiment/1");
    assert_eq!(json["verdict"], "different");
    assert_eq!(json["comparisons"].as_array().unwrap().len(), 2);
    let second = &json["comparisons"][1];
    assert_eq!(second["verdict"], "different");
    let look = made_up.comparisons[1].judgement.looks.last().unwrap();
    assert_eq!(second["p"].as_f64(), Some(look.p));
    assert_eq!(second["effect"].as_f64(), look.change.map(|change| change.percent));
    assert_eq!(json["pairs"].as_u64(), Some(12), "the fields at the top are those of the first comparison");
}

#[test]
fn numbers_read_well() {
    use super::words::{interval, shell, signed};
    assert_eq!(
        (signed(-5.25), signed(0.04), signed(1e300)),
        ("−5.2 %".into(), "+0.04 %".into(), "+1.0e300 %".into())
    );
    assert_eq!(interval(Some(-1.0), None), "[−1.0, …]");
    assert_eq!(interval(None, None), "(no limits)");
    assert_eq!(shell(&["a b".into(), "it's".into(), String::new()]), "'a b' 'it'\\''s' ''");
}

#[test]
fn one_thing_is_not_several_and_long_texts_are_cut_between_letters() {
    use super::words::{beginning, counted};
    assert_eq!((counted(0, "chart"), counted(1, "chart")), ("0 charts".to_owned(), "1 chart".to_owned()));
    assert_eq!((beginning("µµµ", 3), beginning("µµµ", 2)), ("µµµ".to_owned(), "µµ…".to_owned()));
}

#[test]
fn bins_are_as_wide_as_the_longest_trial_needs() {
    let count = |longest_s: f64, sample_s: f64| longest_s / bin_width(longest_s, sample_s);
    assert!((60.0..=120.0).contains(&count(3_600.0, 0.1)));
    assert!((bin_width(20.0, 0.25) - 0.25).abs() < 1e-12, "never finer than the samples");
    assert!(bin_width(f64::NAN, 0.0) > 0.0);
}

#[test]
fn every_kind_of_trial_has_its_count() {
    let recipe = Recipe { pairs: 6, ..Recipe::default() };
    let (plan, mut trials) = (recipe.plan(), recipe.trials(&recipe.plan()));
    trials[0].status = Status::Timeout;
    trials[0].value = None;
    let arm = trials[0].arm;
    let made_up = MadeUp::of(&recipe, plan, trials);
    let of_arm = made_up.shown().of_arm(arm);
    assert_eq!((of_arm.trials, of_arm.failed, of_arm.discarded), (6, 1, 0));
}
