//! The effect as bars, one for each factor.

use zenkai_measure::explain::{Split, Term};

use super::super::words::signed;
use super::super::{Experiment, real};
use super::axis::{Scale, horizontal};
use super::page::{Page, colour, n};

const LEFT: f64 = 190.0;
const RIGHT: f64 = 780.0;
const ROW: f64 = 28.0;

pub(super) fn split(page: &mut Page, experiment: &Experiment, arm: usize, split: &Split) {
    let percent = |theta: f64| experiment.plan.rule.better.percent(theta);
    let total = percent(split.theta);
    // Logarithms add up, per cents do not: each factor gets its part of the whole change.
    let points = |term: &Term| term.share.map_or_else(|| percent(term.theta), |share| share * total);
    let values = split.terms.iter().map(points).chain([0.0, total]);
    let scale = Scale::over(values, 0.12, (LEFT, RIGHT));
    let bottom = 14.0 + ROW * (real(split.terms.len()) + 1.0);
    let view = format!("0 0 860 {}", n(bottom + 42.0));
    let id = format!("{arm}-{}", split.of);
    let (title, desc) = (format!("t-split-{id}"), format!("d-split-{id}"));
    let spoken = format!("{title} {desc}");
    page.el("svg", &[("viewBox", &view), ("role", "img"), ("aria-labelledby", &spoken)], |page| {
        page.leaf("title", &[("id", &title)], "What the change is made of");
        page.leaf("desc", &[("id", &desc)], split.identity);
        horizontal(page, &scale, (8.0, bottom), "", "points of the change, per cent");
        let rows = split.terms.iter().map(|term| (term.name.as_str(), points(term), term.p));
        for (place, (name, value, p)) in rows.chain([("in all", total, None)]).enumerate() {
            bar(page, arm, (name, value, p), &scale, 14.0 + ROW * real(place), place == split.terms.len());
        }
        let zero = format!("M{} 8V{}", n(scale.at(0.0)), n(bottom));
        page.void("path", &[("class", "zero"), ("d", &zero)]);
    });
}

fn bar(
    page: &mut Page,
    arm: usize,
    (name, value, p): (&str, f64, Option<f64>),
    scale: &Scale,
    top: f64,
    whole: bool,
) {
    let (zero, end) = (scale.at(0.0), scale.at(value));
    let (x, width, y) = (n(zero.min(end)), n((end - zero).abs().max(1.0)), n(top + 4.0));
    let class = format!("{} {}", colour(arm), if whole { "bar whole" } else { "bar" });
    page.leaf("text", &[("x", &n(LEFT - 10.0)), ("y", &n(top + 18.0)), ("class", "end label")], name);
    let tip = p.map_or(signed(value), |p| format!("{}, p = {p:.4}", signed(value)));
    let attributes = [("class", class.as_str()), ("x", &x), ("y", &y), ("width", &width), ("height", "19")];
    page.el("rect", &attributes, |page| page.leaf("title", &[], &tip));
    let (at, class) = if value < 0.0 { (end - 6.0, "end value") } else { (end + 6.0, "value") };
    // Beside the bar, on the side that is away from zero.
    page.leaf("text", &[("x", &n(at)), ("y", &n(top + 18.0)), ("class", class)], &signed(value));
}
