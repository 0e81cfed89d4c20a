//! Every trial in the order in which it ran.

use zenkai_measure::experiment::{Status, Trial};

use super::super::words::quantity;
use super::super::{Experiment, cut, real};
use super::axis::{Scale, horizontal, vertical};
use super::page::{Page, colour, cross, mark, n};

const LEFT: f64 = 64.0;
const RIGHT: f64 = 845.0;
const TOP: f64 = 52.0;
/// Trials that gave no number stand here.
const WITHOUT: f64 = 34.0;
const BOTTOM: f64 = 270.0;

pub(super) fn sequence(page: &mut Page, experiment: &Experiment) {
    let trials = experiment.trials;
    let metric = &experiment.plan.metric;
    let good = trials.iter().filter(|trial| trial.status == Status::Ok).filter_map(|trial| trial.value);
    let y = Scale::over(good, 0.06, (BOTTOM, TOP));
    let x = Scale { low: 0.5, high: real(trials.len().max(1)) + 0.5, from: LEFT, to: RIGHT };
    let attributes = [("viewBox", "0 0 860 312"), ("role", "img"), ("aria-labelledby", "t-seq d-seq")];
    page.el("svg", &attributes, |page| {
        page.leaf("title", &[("id", "t-seq")], "The trials in the order in which they ran");
        let turns = if experiment.apart {
            "all of one recording ran before all of the other, so that drift looks like a difference"
        } else {
            "the arms take turns so that it meets all of them alike"
        };
        let text =
            format!("{} trials. A trend over the trials is the machine's drift; {turns}.", trials.len());
        page.leaf("desc", &[("id", "d-seq")], &text);
        blocks(page, trials, &x);
        vertical(page, &y, (LEFT, RIGHT), &metric.unit, &cut(&metric.name));
        horizontal(page, &x, (BOTTOM, BOTTOM), "", if experiment.apart { "run" } else { "trial" });
        if trials.iter().any(|trial| trial.status != Status::Ok) {
            let (x, y) = (n(LEFT - 6.0), n(WITHOUT + 4.0));
            page.leaf("text", &[("x", &x), ("y", &y), ("class", "end small")], "no number");
        }
        for arm in 0..experiment.plan.arms.len() {
            if let Some(median) = experiment.of_arm(arm).median() {
                let d = format!("M{} {}H{}", n(LEFT), n(y.at(median)), n(RIGHT));
                page.void("path", &[("class", &format!("{} level", colour(arm))), ("d", &d)]);
            }
        }
        for (number, trial) in (1_usize..).zip(trials) {
            one(page, experiment, (number, trial), &x, &y);
        }
    });
}

/// Every second block is shaded.
fn blocks(page: &mut Page, trials: &[Trial], x: &Scale) {
    let mut start = 0;
    for place in 1..=trials.len() {
        let of = |index: usize| trials.get(index).map(|trial| (trial.block, trial.attempt));
        if of(place) == of(start) {
            continue;
        }
        if of(start).is_some_and(|(block, _)| block % 2 == 1) {
            let (from, to) = (x.at(real(start) + 0.5), x.at(real(place) + 0.5));
            let (from, width) = (n(from), n(to - from));
            let (top, height) = (n(TOP), n(BOTTOM - TOP));
            page.void(
                "rect",
                &[("class", "block"), ("x", &from), ("y", &top), ("width", &width), ("height", &height)],
            );
        }
        start = place;
    }
}

fn one(page: &mut Page, experiment: &Experiment, (number, trial): (usize, &Trial), x: &Scale, y: &Scale) {
    let at = x.at(real(number));
    let arm = experiment.short(trial.arm);
    let place = if experiment.apart {
        format!("run {}, {arm}", trial.place + 1)
    } else {
        format!("trial {number}, block {}, {arm}", trial.block + 1)
    };
    let reason = trial.reason.as_deref().unwrap_or("no reason given");
    match (trial.status, trial.value) {
        (Status::Ok, Some(value)) => {
            let tip = format!("{place}: {}", quantity(value, &experiment.plan.metric.unit));
            mark(page, trial.arm, (at, y.at(value)), "dot", &tip);
        }
        (Status::Discarded, _) => {
            mark(page, trial.arm, (at, WITHOUT), "dot open", &format!("{place}: discarded, {reason}"));
        }
        (Status::Timeout, _) => {
            cross(page, trial.arm, (at, WITHOUT), &format!("{place}: took too long, {reason}"));
        }
        _ => cross(page, trial.arm, (at, WITHOUT), &format!("{place}: failed, {reason}")),
    }
}
