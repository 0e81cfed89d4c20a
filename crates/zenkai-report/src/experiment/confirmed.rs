//! What one setting does alone, as proved by an experiment of its own.

use serde::Serialize;
use zenkai_measure::experiment::Confirms;
use zenkai_measure::statistics::verdict::Verdict;

use super::Experiment;
use super::words::{digits_short, interval, signed};

/// An experiment that put one setting of another experiment's arm to the proof.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Confirmed {
    /// Where it is kept.
    pub dir: String,
    /// The setting, as the user named it.
    pub knob: String,
    /// What was found.
    pub verdict: Verdict,
    /// What the setting alone changes, in per cent of the metric.
    pub effect: Option<f64>,
    /// The interval of that.
    pub interval: [Option<f64>; 2],
    /// All of it in words.
    pub sentence: String,
}

/// What `experiment` says about the setting that it confirms; `None` when it is no such experiment, or nothing was
/// judged yet.
pub fn confirmed(experiment: &Experiment) -> Option<Confirmed> {
    let confirms = experiment.plan.confirms.as_ref()?;
    let judgement = &experiment.comparisons.first()?.judgement;
    let look = judgement.looks.last()?;
    let limits = look.change.map_or([None; 2], |change| [change.low, change.high]);
    let effect = look.change.map(|change| change.percent);
    let knob = match confirms.what.as_slice() {
        [what] => what.clone(),
        several => format!("{} ({} settings)", confirms.knob, several.len()),
    };
    let found = effect
        .map_or(String::new(), |percent| format!(" {} {}", signed(percent), interval(limits[0], limits[1])));
    let whole = whole(confirms);
    let sentence = match (judgement.verdict, effect.zip(confirms.percent)) {
        (Verdict::Different, Some((part, all))) if (part < 0.0) == (all < 0.0) => {
            format!("{knob} alone carries{found} of {whole}: proved.")
        }
        (Verdict::Different, Some(_)) => {
            format!("{knob} alone does the opposite,{found}, of {whole}: other settings carry that.")
        }
        (Verdict::Different, None) => format!("{knob} alone changes how many trials fail: proved."),
        (Verdict::Equal, _) => format!(
            "{knob} alone carries nothing that matters (within {} %:{found}) of {whole}: other settings do.",
            digits_short(100.0 * experiment.plan.rule.rho),
        ),
        (Verdict::Undecided, _) => {
            format!("Whether {knob} alone carries any of {whole} is undecided:{found}.")
        }
    };
    let (dir, knob) = (experiment.dir.to_owned(), confirms.knob.clone());
    Some(Confirmed { dir, knob, verdict: judgement.verdict, effect, interval: limits, sentence })
}

/// The difference that was found first.
fn whole(confirms: &Confirms) -> String {
    confirms.percent.map_or_else(
        || "the difference".to_owned(),
        |percent| format!("{} {}", signed(percent), interval(confirms.interval[0], confirms.interval[1])),
    )
}
