//! An experiment as a report: text, JSON, and one HTML file that needs nothing else.

mod before_after;
mod confirmed;
mod html;
mod json;
mod rows;
mod series;
mod text;
pub(crate) mod words;

use serde_json::Value;
use zenkai_measure::experiment::{Comparison, Plan, Status, Trial};
use zenkai_measure::explain::Explanation;
use zenkai_measure::statistics::real;

pub use before_after::{BeforeAfter, States, before_after, before_after_json, recording, recording_json};
pub use confirmed::{Confirmed, confirmed};
pub use html::{before_after_html, difference_html, experiment_html, recorded_html};
pub use json::experiment_json;
pub use series::{MOST_BINS, TimeSeries, bin_width};
pub use text::{analysis, experiment};
pub use words::{sentence, shell};

/// A stored experiment and what was found in it.
#[derive(Debug, Clone, Copy)]
pub struct Experiment<'a> {
    /// The directory, as the user names it.
    pub dir: &'a str,
    /// The plan.
    pub plan: &'a Plan,
    /// All trials, in the order in which they ran.
    pub trials: &'a [Trial],
    /// The verdict on each arm but the first.
    pub comparisons: &'a [Comparison],
    /// What explains each of them; may be empty.
    pub explanations: &'a [Explanation],
    /// The machine's facts, as `zenkai facts --json` writes them.
    pub host: Option<&'a Value>,
    /// The result of comparing the first arm with itself on this machine, as [`experiment_json`] writes it.
    pub same: Option<&'a Value>,
    /// What the machine did during the trials.
    pub series: &'a [TimeSeries],
    /// The experiments that put single settings of this one to the proof.
    pub confirmed: &'a [Confirmed],
    /// What could not be read, and why.
    pub notes: &'a [String],
    /// Whether the arms are two recordings that were not interleaved: then there is no verdict.
    pub apart: bool,
}

/// What an idle arm does ([`zenkai_measure::experiment::Arm::is_idle`]).
pub const IDLE_ARM: &str =
    "changes nothing here: what it asks for is so already, or is something that this machine does not have";

/// Letters of a name that a sentence has room for.
const LONG_NAME: usize = 48;

/// A name where there is no room for a long one: its beginning and its end.
fn cut(name: &str) -> String {
    let letters: Vec<char> = name.chars().collect();
    if letters.len() <= LONG_NAME {
        return name.to_owned();
    }
    let [head, tail] = [&letters[..LONG_NAME / 2 + 4], &letters[letters.len() - LONG_NAME / 2 + 6..]];
    format!("{}…{}", head.iter().collect::<String>(), tail.iter().collect::<String>())
}

impl<'a> Experiment<'a> {
    fn arm(&self, index: usize) -> &'a str {
        self.plan.arms.get(index).map_or("?", |arm| &arm.name)
    }

    /// The arm's name, [`cut`], or its number where two would be the same.
    fn short(&self, index: usize) -> String {
        let own = cut(self.arm(index));
        let is_twice = (0..self.plan.arms.len()).any(|other| other != index && cut(self.arm(other)) == own);
        if is_twice { format!("arm {}", index + 1) } else { own }
    }

    /// All arms as [`Experiment::short`] calls them.
    fn names(&self) -> Vec<String> {
        (0..self.plan.arms.len()).map(|arm| self.short(arm)).collect()
    }

    fn explanation(&self, arm: usize) -> Option<&'a Explanation> {
        self.explanations.iter().find(|explanation| explanation.arm == arm)
    }

    fn of_arm(&self, arm: usize) -> OfArm {
        let mut values = Vec::new();
        let (mut trials, mut failed, mut discarded) = (0, 0, 0);
        for trial in self.trials.iter().filter(|trial| trial.arm == arm) {
            match (trial.status, trial.value) {
                (Status::Discarded, _) => discarded += 1,
                (Status::Ok, Some(value)) if self.plan.rule.better.outcome(value).is_some() => {
                    trials += 1;
                    values.push(value);
                }
                _ => {
                    trials += 1;
                    failed += 1;
                }
            }
        }
        values.sort_by(f64::total_cmp);
        OfArm { values, trials, failed, discarded }
    }
}

/// The trials of one arm.
struct OfArm {
    /// The primary metric of those that gave it, ascending.
    values: Vec<f64>,
    /// Trials that count.
    trials: usize,
    /// Those of them that failed.
    failed: usize,
    /// Trials that something outside spoilt; they do not count.
    discarded: usize,
}

impl OfArm {
    /// The smallest value that at least `share` of the values do not exceed.
    fn quantile(&self, share: f64) -> Option<f64> {
        let needed = share * real(self.values.len());
        (1..).zip(&self.values).find(|(count, _)| real(*count) >= needed).map(|(_, value)| *value)
    }

    /// The median, of an even count the mean of the middle two.
    fn median(&self) -> Option<f64> {
        let middle = self.values.len() / 2;
        let upper = *self.values.get(middle)?;
        let even = self.values.len().is_multiple_of(2);
        let lower = if even { self.values.get(middle.checked_sub(1)?)? } else { &upper };
        Some(f64::midpoint(*lower, upper))
    }
}

#[cfg(test)]
mod tests;
