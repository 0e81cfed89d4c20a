//! What text and page show in the same rows.

use zenkai_measure::experiment::{Arm, Status, Trial};
use zenkai_measure::explain::Explanation;

use super::words::{interval, p_value, quantity, signed};
use super::{Experiment, IDLE_ARM};

/// Below this p-value an arm leaves traces in the next trial.
const CARRY_OVER: f64 = 0.01;

/// The numbers beside the primary metric: name, values under the first arm and this one, change, interval, p-value.
pub(super) fn numbers(explanation: &Explanation) -> Vec<[String; 5]> {
    let mut rows = Vec::new();
    if let Some(lines) = &explanation.lines {
        for (name, line) in [
            ("mean (cost)", lines.totals),
            ("95th percentile", lines.p95),
            ("spread between trials", lines.spread),
        ] {
            let change = line.ratio.map_or("–".to_owned(), |ratio| signed(100.0 * (ratio - 1.0)));
            rows.push([name.to_owned(), String::new(), change, String::new(), p_value(line.p)]);
        }
    }
    rows.extend(explanation.metrics.iter().map(|metric| {
        let show = |value: Option<f64>| value.map_or("–".to_owned(), |value| quantity(value, &metric.unit));
        [
            metric.name.clone(),
            format!("{} → {}", show(metric.a), show(metric.b)),
            metric.percent.map_or("–".to_owned(), signed),
            interval(metric.interval[0], metric.interval[1]),
            format!("{} (Holm)", p_value(metric.corrected)),
        ]
    }));
    rows
}

/// The warning about an arm that leaves traces in the trial after it.
pub(super) fn carries_over(explanation: &Explanation) -> Option<&'static str> {
    let carries = explanation.lines.as_ref().is_some_and(|lines| lines.carry_over < CARRY_OVER);
    carries.then_some(
        "An arm leaves traces in the trial after it. Let the machine settle longer between trials (--settle).",
    )
}

/// What is said where no channel was judged and none is listed as left out.
pub(super) fn no_channels(explanation: &Explanation) -> Option<&'static str> {
    let none = explanation.channels.is_empty() && explanation.missing.is_empty();
    none.then_some("No channels were recorded, so nothing can explain what was found.")
}

/// What an arm is called where there is room: its name, and what the user wrote if that is something else.
pub(super) fn called(arm: &Arm) -> String {
    if arm.name == arm.spec { arm.name.clone() } else { format!("{} ({})", arm.name, arm.spec) }
}

/// What is said of an arm that sets nothing and runs nothing of its own.
pub(super) fn sets_nothing(arm: &Arm) -> Option<&'static str> {
    if arm.is_idle() {
        Some(IDLE_ARM)
    } else {
        (arm.settings.is_empty() && arm.command.is_empty()).then_some("changes nothing")
    }
}

/// What an arm sets: what, the value before, the value under the arm.
pub(super) fn settings(arm: &Arm) -> Vec<[String; 3]> {
    let value = |value: &Option<String>| value.clone().unwrap_or_else(|| "–".to_owned());
    let row = |setting: &zenkai_measure::experiment::Setting| {
        [setting.what.clone(), value(&setting.from), value(&setting.to)]
    };
    arm.settings.iter().map(row).collect()
}

/// The trials that gave no number, each with its number and what became of it.
pub(super) fn without_number<'a>(experiment: &Experiment<'a>) -> Vec<(usize, &'a Trial, &'static str)> {
    let numbered = (1..).zip(experiment.trials).filter(|(_, trial)| trial.status != Status::Ok);
    let what = |trial: &Trial| match trial.status {
        Status::Timeout => "took too long",
        Status::Discarded => "discarded",
        Status::Failed | Status::Ok => "failed",
    };
    numbered.map(|(number, trial)| (number, trial, what(trial))).collect()
}
