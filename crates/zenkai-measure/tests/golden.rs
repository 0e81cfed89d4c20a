//! The statistics against vectors computed by an independent implementation in Python (tests/data/golden.py).

#![expect(clippy::unwrap_used, reason = "a test may stop here")]

use serde::Deserialize;
use zenkai_measure::statistics::design::Law;
use zenkai_measure::statistics::estimate::{Series, Test};
use zenkai_measure::statistics::redraw::{DRAWS, Redraws};

#[derive(Deserialize)]
struct Golden {
    cases: Vec<Case>,
}

#[derive(Deserialize)]
struct Case {
    name: String,
    y: Vec<f64>,
    order: String,
    part: f64,
    residuals: Vec<f64>,
    ranks: Vec<f64>,
    t: f64,
    theta: Option<f64>,
    p: Option<f64>,
}

fn close(left: f64, right: f64) -> bool {
    (left - right).abs() < 1e-9
}

fn check(case: &Case) {
    let name = &case.name;
    let y = case.y.iter().map(|y| Some(*y)).collect();
    let is_b = case.order.chars().map(|arm| arm == 'B').collect();
    let series = Series::new(y, is_b, Law::BlocksOfFour).unwrap();
    let redraws = Redraws::new(Law::BlocksOfFour, case.y.len(), DRAWS, 1);
    let test = Test::new(&series, &redraws);

    let residuals = test.residuals(0.0);
    assert!(close(residuals.part, case.part), "{name}: part {}", residuals.part);
    assert_eq!(residuals.e.len(), case.residuals.len());
    for (found, expected) in residuals.e.iter().zip(&case.residuals) {
        assert!(close(found.unwrap(), *expected), "{name}: residual {found:?}, expected {expected}");
    }
    for (found, expected) in test.scores(0.0).iter().zip(&case.ranks) {
        let found = f64::from(i32::try_from(*found).unwrap()) / 2.0;
        assert!(close(found, *expected), "{name}: rank {found}, expected {expected}");
    }
    let statistic = f64::from(i32::try_from(test.statistic(0.0)).unwrap()) / 4.0;
    assert!(close(statistic, case.t), "{name}: T {statistic}, expected {}", case.t);
    if let Some(theta) = case.theta {
        let found = test.estimate().unwrap();
        assert!(close(found, theta), "{name}: theta {found}, expected {theta}");
    }
    if let Some(p) = case.p {
        assert!(redraws.is_complete());
        assert!(close(test.p(0.0), p), "{name}: p {}, expected {p}", test.p(0.0));
    }
}

#[test]
fn equals_the_reference() {
    let golden: Golden = serde_json::from_str(include_str!("data/golden.json")).unwrap();
    assert_eq!(golden.cases.len(), 33);
    assert_eq!(golden.cases.iter().filter(|case| case.p.is_some()).count(), 16);
    for case in &golden.cases {
        check(case);
    }
}
