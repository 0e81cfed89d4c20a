//! The effect of each arm with its interval, and how it narrowed from look to look.

use zenkai_measure::experiment::Comparison;
use zenkai_measure::statistics::real;
use zenkai_measure::statistics::verdict::{Better, Change, Look, Verdict};

use super::super::words::{self, digits_short, interval, signed};
use super::super::{Experiment, cut};
use super::axis::{Scale, horizontal};
use super::page::{Page, colour, mark, n};

const LEFT: f64 = 20.0;
const RIGHT: f64 = 840.0;
/// Height of a comparison, and of each earlier look below it.
const ROW: f64 = 54.0;
const LOOK: f64 = 13.0;

pub(super) fn intervals(page: &mut Page, experiment: &Experiment) {
    let shown: Vec<&Comparison> = experiment
        .comparisons
        .iter()
        .filter(|comparison| comparison.judgement.looks.last().is_some_and(|look| look.change.is_some()))
        .collect();
    if shown.is_empty() {
        page.leaf("p", &[("class", "quiet")], "There is no effect to show yet.");
        return;
    }
    let rho = 100.0 * experiment.plan.rule.rho;
    let scale = scale(&shown, rho);
    let earlier = |comparison: &Comparison| real(comparison.judgement.looks.len().saturating_sub(1));
    let height: f64 = shown.iter().map(|comparison| ROW + LOOK * earlier(comparison)).sum();
    let (top, bottom) = (24.0, 30.0 + height);
    let view = format!("0 0 860 {}", n(bottom + 42.0));
    let attributes = [("viewBox", view.as_str()), ("role", "img"), ("aria-labelledby", "t-int d-int")];
    page.el("svg", &attributes, |page| {
        page.leaf("title", &[("id", "t-int")], "Change of the metric with its interval");
        let spoken: Vec<String> = shown.iter().map(|found| words::sentence(experiment, found)).collect();
        page.leaf("desc", &[("id", "d-int")], &spoken.join(". "));
        zone(page, &scale, rho, (top, bottom));
        let title =
            format!("change of {}, per cent of {}", cut(&experiment.plan.metric.name), experiment.short(0));
        horizontal(page, &scale, (top, bottom), "", &title);
        directions(page, &scale, experiment.plan.rule.better);
        let zero = format!("M{} {}V{}", n(scale.at(0.0)), n(top), n(bottom));
        page.void("path", &[("class", "zero"), ("d", &zero)]);
        let mut y = top + 8.0;
        for comparison in shown {
            row(page, experiment, comparison, &scale, y);
            y += ROW + LOOK * earlier(comparison);
        }
    });
}

/// The final intervals, nothing, and what does not matter are always on the page; wider early looks run out of it.
fn scale(shown: &[&Comparison], rho: f64) -> Scale {
    let finals = shown.iter().filter_map(|comparison| comparison.judgement.looks.last()?.change);
    let limits = finals.flat_map(|change| {
        [Some(change.percent), change.low, change.high].into_iter().flatten().collect::<Vec<f64>>()
    });
    Scale::over(limits.chain([0.0, rho, -rho]), 0.12, (LEFT, RIGHT))
}

fn zone(page: &mut Page, scale: &Scale, rho: f64, (top, bottom): (f64, f64)) {
    let (from, to) = (scale.at(-rho), scale.at(rho));
    let (x, y, width, height) = (n(from), n(top), n(to - from), n(bottom - top));
    let attributes =
        [("class", "zone"), ("x", x.as_str()), ("y", &y), ("width", &width), ("height", &height)];
    page.el("rect", &attributes, |page| {
        page.leaf("title", &[], &format!("Differences within {} % do not matter", digits_short(rho)));
    });
}

fn directions(page: &mut Page, scale: &Scale, better: Better) {
    let (left, right) = match better {
        Better::Lower => ("← better", "worse →"),
        Better::Higher => ("← worse", "better →"),
    };
    page.leaf("text", &[("x", &n(scale.from)), ("y", "15"), ("class", "name")], left);
    page.leaf("text", &[("x", &n(scale.to)), ("y", "15"), ("class", "end name")], right);
}

fn row(page: &mut Page, experiment: &Experiment, comparison: &Comparison, scale: &Scale, top: f64) {
    let Some((last, earlier)) = comparison.judgement.looks.split_last() else { return };
    let Some(change) = last.change else { return };
    let middle = top + 30.0;
    let verdict = words::word(comparison.judgement.verdict);
    let limits = interval(change.low, change.high);
    let label =
        format!("{}: {} {limits}, {verdict}", experiment.short(comparison.arm), signed(change.percent));
    page.leaf("text", &[("x", &n(LEFT)), ("y", &n(top + 12.0)), ("class", "label")], &label);
    whisker(page, comparison.arm, change, scale, (middle, 7.0), "whisker");
    let class = if comparison.judgement.verdict == Verdict::Undecided { "dot open big" } else { "dot big" };
    mark(page, comparison.arm, (scale.at(change.percent), middle), class, &label);
    for (step, look) in (1_u32..).zip(earlier.iter().rev()) {
        faint(page, comparison.arm, look, scale, middle + 8.0 + LOOK * f64::from(step));
    }
}

/// An earlier look: thin, with the number of pairs beside it.
fn faint(page: &mut Page, arm: usize, look: &Look, scale: &Scale, y: f64) {
    let Some(change) = look.change else { return };
    page.el("g", &[("class", "earlier")], |page| {
        whisker(page, arm, change, scale, (y, 3.0), "whisker");
        let tip = format!("after {} pairs: {}", look.pairs, interval(change.low, change.high));
        mark(page, arm, (scale.at(change.percent), y), "dot", &tip);
        let label = format!("after {} pairs", look.pairs);
        page.leaf("text", &[("x", &n(RIGHT)), ("y", &n(y + 4.0)), ("class", "end small")], &label);
    });
}

fn whisker(page: &mut Page, arm: usize, change: Change, scale: &Scale, (y, cap): (f64, f64), class: &str) {
    let inside = |limit: Option<f64>| limit.filter(|limit| (scale.low..=scale.high).contains(limit));
    let (low, high) = (inside(change.low), inside(change.high));
    let from = low.map_or(scale.from, |low| scale.at(low));
    let to = high.map_or(scale.to, |high| scale.at(high));
    let mut d = format!("M{} {}H{}", n(from), n(y), n(to));
    // A limit that is off the page, or that does not exist, ends in an arrow.
    d.push_str(&match low {
        Some(_) => format!("M{} {}v{}", n(from), n(y - cap), n(2.0 * cap)),
        None => format!("M{} {}l-6 {}l6 {}", n(from + 6.0), n(y - cap), n(cap), n(cap)),
    });
    d.push_str(&match high {
        Some(_) => format!("M{} {}v{}", n(to), n(y - cap), n(2.0 * cap)),
        None => format!("M{} {}l6 {}l-6 {}", n(to - 6.0), n(y - cap), n(cap), n(cap)),
    });
    page.void("path", &[("class", &format!("{} {class}", colour(arm))), ("d", &d)]);
}
