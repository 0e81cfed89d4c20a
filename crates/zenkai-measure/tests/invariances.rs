//! What must not change a verdict, for any trials.

#![expect(clippy::unwrap_used, reason = "a test may stop here")]

use std::sync::LazyLock;

use proptest::prelude::*;
use zenkai_measure::statistics::design::Law;
use zenkai_measure::statistics::estimate::{Series, Test};
use zenkai_measure::statistics::redraw::Redraws;
use zenkai_measure::statistics::secondary;
use zenkai_measure::statistics::verdict::{Better, Rule, Verdict, judge, look};

/// Trials with ties, failures and outliers, in an order of the law.
fn trials() -> impl Strategy<Value = Series> {
    let outcome = prop_oneof![
        8 => (-500_i32..500).prop_map(|y| Some(f64::from(y) / 7_919.0)),
        3 => (0_i32..4).prop_map(|y| Some(f64::from(y) / 64.0)),
        1 => (-30_i32..30).prop_map(|y| Some(f64::from(y))),
        1 => Just(None),
    ];
    let law = prop_oneof![Just(Law::BlocksOfFour), Just(Law::Pairs)];
    (3_usize..14, any::<u64>(), law).prop_flat_map(move |(pairs, seed, law)| {
        proptest::collection::vec(outcome.clone(), pairs * 2)
            .prop_map(move |y| Series::new(y, law.order(seed, pairs), law).unwrap())
    })
}

fn with(series: &Series, y: impl Fn(f64) -> f64, swap: bool) -> Series {
    let outcomes = series.outcomes().iter().map(|value| value.map(&y)).collect();
    let is_b = series.is_b().iter().map(|b| *b != swap).collect();
    Series::new(outcomes, is_b, series.law()).unwrap()
}

fn redraws(series: &Series) -> Redraws {
    Redraws::new(series.law(), series.outcomes().len(), 499, 7)
}

/// The rule is laid down once: finding its levels takes longer than judging.
fn rule() -> &'static Rule {
    static RULE: LazyLock<Rule> = LazyLock::new(|| Rule { draws: 199, ..Rule::new(Better::Higher, 1, 40) });
    &RULE
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 256, ..ProptestConfig::default() })]

    #[test]
    fn the_unit_of_the_metric_does_not_matter(series in trials(), constant in -40.0_f64..40.0) {
        let redraws = redraws(&series);
        let other = with(&series, |y| y + constant, false);
        let (test, same) = (Test::new(&series, &redraws), Test::new(&other, &redraws));
        prop_assert_eq!(test.scores(0.0), same.scores(0.0));
        prop_assert!((test.p(0.0) - same.p(0.0)).abs() < 1e-15);
        match (test.estimate(), same.estimate()) {
            (Some(left), Some(right)) => prop_assert!((left - right).abs() < 1e-6, "{left} {right}"),
            (left, right) => prop_assert_eq!(left, right),
        }
    }

    #[test]
    fn the_names_of_the_arms_do_not_matter(series in trials()) {
        let redraws = redraws(&series);
        let other = with(&series, |y| y, true);
        let (test, same) = (Test::new(&series, &redraws), Test::new(&other, &redraws));
        prop_assert_eq!(test.statistic(0.0), -same.statistic(0.0));
        prop_assert!((test.p(0.0) - same.p(0.0)).abs() < 1e-15);
    }

    #[test]
    fn the_interval_says_what_the_p_value_says(series in trials(), level in 0.005_f64..0.4) {
        let redraws = redraws(&series);
        let test = Test::new(&series, &redraws);
        if let Some(estimate) = test.estimate() {
            let p = test.p(0.0);
            let interval = test.interval(estimate, level, &[(0.0, p)]);
            // Exactly at zero the estimate is inside whatever its p-value.
            if estimate != 0.0 {
                prop_assert_eq!(p > level, interval.contains(0.0), "p {} estimate {} {:?}", p, estimate, interval);
            }
            prop_assert!(interval.contains(estimate));
        }
    }

    #[test]
    fn a_look_never_contradicts_itself(series in trials(), seed in any::<u64>()) {
        let rule = Rule { law: series.law(), seed, ..rule().clone() };
        let look = look(&series, &rule, 0.05);
        prop_assert!(look.p > 0.0 && look.p <= 1.0);
        match look.verdict {
            Verdict::Different => prop_assert!(look.p <= 0.05),
            Verdict::Equal => {
                let change = look.change.unwrap();
                prop_assert!(change.low.unwrap() > -2.0 && change.high.unwrap() < 2.0 + 1e-9, "{:?}", change);
            }
            Verdict::Undecided => prop_assert!(look.p > 0.05),
        }
        // Written down and read again it is the same, to the last bit.
        let text = serde_json::to_string(&look).unwrap();
        prop_assert_eq!(serde_json::from_str::<zenkai_measure::statistics::verdict::Look>(&text).unwrap(), look);
        let judgement = judge(&series, &rule);
        prop_assert!(judgement.looks.iter().all(|look| look.pairs <= series.pairs()));
        prop_assert_eq!(judge(&series, &rule), judgement);
    }

    #[test]
    fn secondary_lines_are_probabilities(series in trials()) {
        let redraws = redraws(&series);
        let values: Vec<Option<f64>> = series.outcomes().iter().map(|y| y.map(f64::exp)).collect();
        let lines = secondary::lines(&Test::new(&series, &redraws), &values);
        for p in [lines.totals.p, lines.p95.p, lines.spread.p, lines.carry_over] {
            prop_assert!(p > 0.0 && p <= 1.0);
        }
    }
}

#[test]
fn an_arm_that_always_fails_is_different_and_has_no_change() {
    let is_b = Law::BlocksOfFour.order(3, 6);
    let y = is_b
        .iter()
        .enumerate()
        .map(|(slot, b)| (!b).then_some(if slot % 2 == 0 { 1.0 } else { 1.1 }))
        .collect();
    let series = Series::new(y, is_b, Law::BlocksOfFour).unwrap();
    let judgement = judge(&series, &Rule::new(Better::Lower, 1, 40));
    assert_eq!(judgement.verdict, Verdict::Different);
    let look = judgement.looks.last().unwrap();
    assert_eq!((look.pairs, look.change, look.failed), (6, None, [0, 6]));
}

#[test]
fn everything_failing_or_equal_is_never_different() {
    for y in [None, Some(1.0)] {
        let series = Series::new(vec![y; 80], Law::BlocksOfFour.order(3, 40), Law::BlocksOfFour).unwrap();
        let judgement = judge(&series, &Rule { draws: 999, ..Rule::new(Better::Lower, 1, 40) });
        assert_ne!(judgement.verdict, Verdict::Different);
    }
}

#[test]
fn trials_that_cannot_be_judged_are_refused() {
    let law = Law::BlocksOfFour;
    assert!(
        Series::new(vec![None; 3], vec![true; 4], law)
            .unwrap_err()
            .to_string()
            .contains("3 outcomes but 4 arms")
    );
    assert!(Series::new(vec![None; 4], vec![true; 4], law).unwrap_err().to_string().contains("stated law"));
    let order = law.order(1, 2);
    let error = Series::new(vec![Some(f64::NAN), None, None, None], order, law).unwrap_err();
    assert!(error.to_string().contains("trial 0"));
    assert_eq!(Better::Lower.outcome(0.0), None);
    assert_eq!(Better::Lower.outcome(f64::NAN), None);
    assert!(
        (Better::Higher
            .percent(Better::Higher.outcome(110.0).unwrap() - Better::Higher.outcome(100.0).unwrap())
            - 10.0)
            .abs()
            < 1e-9
    );
}
