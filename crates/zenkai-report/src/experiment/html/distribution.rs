//! Where the trials of each arm lie: every trial as a dot, the middle half as a box, the shape behind it.

use zenkai_measure::experiment::{Status, Trial};

use super::super::words::quantity;
use super::super::{Experiment, cut, real};
use super::axis::{Scale, horizontal};
use super::page::{Page, colour, cross, mark, n};

const LEFT: f64 = 20.0;
/// Failed trials stand right of this, so many at most: the label beside them counts all.
const RIGHT: f64 = 770.0;
const FAILED: usize = 25;
const ROW: f64 = 92.0;

pub(super) fn distribution(page: &mut Page, experiment: &Experiment) {
    let values = experiment.trials.iter().filter(|trial| counts(trial)).filter_map(|trial| trial.value);
    let scale = Scale::over(values, 0.12, (LEFT, RIGHT));
    let bottom = 10.0 + ROW * real(experiment.plan.arms.len());
    let view = format!("0 0 860 {}", n(bottom + 42.0));
    let attributes = [("viewBox", view.as_str()), ("role", "img"), ("aria-labelledby", "t-dis d-dis")];
    let metric = &experiment.plan.metric;
    page.el("svg", &attributes, |page| {
        page.leaf("title", &[("id", "t-dis")], &format!("Distribution of {} under each arm", metric.name));
        let spoken: Vec<String> = (0..experiment.plan.arms.len()).map(|arm| label(experiment, arm)).collect();
        page.leaf("desc", &[("id", "d-dis")], &spoken.join(". "));
        horizontal(page, &scale, (10.0, bottom), &metric.unit, &cut(&metric.name));
        let gutter = (0..experiment.plan.arms.len()).any(|arm| experiment.of_arm(arm).failed > 0);
        if gutter {
            page.leaf("text", &[("x", "812"), ("y", &n(bottom + 15.0)), ("class", "mid name")], "failed");
        }
        for arm in 0..experiment.plan.arms.len() {
            row(page, experiment, arm, &scale, 10.0 + ROW * real(arm));
        }
    });
}

fn counts(trial: &Trial) -> bool {
    trial.status == Status::Ok
}

fn label(experiment: &Experiment, arm: usize) -> String {
    let of_arm = experiment.of_arm(arm);
    let unit = &experiment.plan.metric.unit;
    let median =
        of_arm.median().map_or("no number".to_owned(), |median| format!("median {}", quantity(median, unit)));
    let failed = if of_arm.failed > 0 { format!(", {} failed", of_arm.failed) } else { String::new() };
    format!("{}: {median}, {} trials{failed}", experiment.short(arm), of_arm.trials)
}

fn row(page: &mut Page, experiment: &Experiment, arm: usize, scale: &Scale, top: f64) {
    let of_arm = experiment.of_arm(arm);
    page.leaf("text", &[("x", &n(LEFT)), ("y", &n(top + 14.0)), ("class", "label")], &label(experiment, arm));
    let middle = top + 55.0;
    violin(page, arm, &of_arm.values, scale, middle);
    if let (Some(lower), Some(median), Some(upper)) =
        (of_arm.quantile(0.25), of_arm.median(), of_arm.quantile(0.75))
    {
        let (x, width) = (scale.at(lower), scale.at(upper) - scale.at(lower));
        let (x, width, y) = (n(x), n(width.max(0.5)), n(middle - 9.0));
        let class = format!("{} box", colour(arm));
        page.void("rect", &[("class", &class), ("x", &x), ("y", &y), ("width", &width), ("height", "18")]);
        let line = format!("M{} {}v26", n(scale.at(median)), n(middle - 13.0));
        page.void("path", &[("class", &format!("{} median", colour(arm))), ("d", &line)]);
    }
    let mut failed = 0_usize;
    for (number, trial) in (1_usize..).zip(experiment.trials).filter(|(_, trial)| trial.arm == arm) {
        // Spread by the golden ratio: even, without a generator, the same on every page.
        let spread = (real(number) * 0.618_034).fract() - 0.5;
        match (trial.status, trial.value) {
            (Status::Discarded, _) => {}
            (Status::Ok, Some(value)) => {
                let tip = format!("trial {number}: {}", quantity(value, &experiment.plan.metric.unit));
                mark(page, arm, (scale.at(value), middle + spread * 30.0), "dot", &tip);
            }
            _ if failed < FAILED => {
                let tip = format!(
                    "trial {number} failed: {}",
                    trial.reason.as_deref().unwrap_or("no reason given")
                );
                let (column, row) = (real(failed % 5), real(failed / 5));
                cross(page, arm, (792.0 + column * 11.0, middle - 24.0 + row * 11.0), &tip);
                failed += 1;
            }
            _ => {}
        }
    }
}

/// The density of the values (Gaussian kernel, width by Silverman's rule), drawn to both sides of `middle` from the least
/// of them to the greatest: no time is shown below zero.
fn violin(page: &mut Page, arm: usize, values: &[f64], scale: &Scale, middle: f64) {
    let [low, _, _, .., high] = values else { return };
    let count = real(values.len());
    let mean = values.iter().sum::<f64>() / count;
    let deviation = (values.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / (count - 1.0)).sqrt();
    let width = 1.06 * deviation * count.powf(-0.2);
    if width <= 0.0 || !width.is_finite() {
        return;
    }
    let places: Vec<f64> = (0_u32..=60).map(|step| low + (high - low) * f64::from(step) / 60.0).collect();
    let density =
        |at: f64| values.iter().map(|value| (-0.5 * ((at - value) / width).powi(2)).exp()).sum::<f64>();
    let densities: Vec<f64> = places.iter().map(|at| density(*at)).collect();
    let most = densities.iter().copied().fold(0.0, f64::max);
    let point = |(at, density): (&f64, &f64), sign: f64| {
        format!("{} {}", n(scale.at(*at)), n(middle + sign * 30.0 * density / most))
    };
    let above = places.iter().zip(&densities).map(|pair| point(pair, -1.0));
    let below = places.iter().zip(&densities).rev().map(|pair| point(pair, 1.0));
    let d = format!("M{}z", above.chain(below).collect::<Vec<String>>().join("L"));
    page.void("path", &[("class", &format!("{} violin", colour(arm))), ("d", &d)]);
}
