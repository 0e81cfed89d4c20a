//! What explains a difference: the channels that changed with it, the split of the time into its factors, and the
//! other numbers of the workload.
//!
//! Everything here comes from the same trials, the same order and the same re-randomisations as the verdict, so each
//! p-value is as good as the verdict's own. What is *said* is still an explanation and not proof: two things that
//! change together under an arm need not cause each other. To prove one knob, compare with that knob alone put back.

mod apart;
mod channels;
mod metrics;
mod split;
mod words;

use std::collections::BTreeMap;

use serde::Serialize;

use crate::experiment::{AnalyzeError, Comparison, Plan, Trial, series_of, settled_blocks, trials_of};
use crate::statistics::estimate::{Series, Test};
use crate::statistics::real;
use crate::statistics::redraw::Redraws;
use crate::statistics::secondary::{Lines, lines};
use crate::statistics::unordered;
use crate::statistics::verdict::Verdict;

pub use apart::explain_apart;
pub use channels::{ChannelShift, Missing, Role};
pub use metrics::MetricShift;
pub use split::{Split, Term};

/// Share of the channels said to have changed that may be wrong (Benjamini and Hochberg).
pub const CHANNEL_RATE: f64 = 0.10;

/// What a channel is.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct About {
    /// Unit, SI; empty for a pure number.
    pub unit: String,
    /// What it is, in words.
    pub words: String,
    /// What it belongs to: `cpu`, `block` …
    pub group: String,
}

/// What explains one comparison. An explanation, not proof.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Explanation {
    /// Index of the arm that is compared with the first.
    pub arm: usize,
    /// Pairs of trials that this is drawn from: those of the last look.
    pub pairs: usize,
    /// In sentences, the most telling first.
    pub sentences: Vec<String>,
    /// Totals, tail, spread and carry-over of the primary metric; `None` before the first pair.
    pub lines: Option<Lines>,
    /// The other numbers of the workload, corrected together (Holm).
    pub metrics: Vec<MetricShift>,
    /// Whether there is a change of the metric to explain. Otherwise the factors below are those of a difference that
    /// may well be chance.
    pub is_change: bool,
    /// The effect as a product of factors, where the channels allow it.
    pub splits: Vec<Split>,
    /// Every channel that could be tested, those that changed first.
    pub channels: Vec<ChannelShift>,
    /// Channels that could not be tested.
    pub missing: Vec<Missing>,
    /// Whether the pairs are so few that no single channel can pass the correction for their number.
    pub blind: bool,
}

/// How the order of the trials came about.
enum Order {
    /// It was drawn by the plan's law.
    Drawn { series: Series, redraws: Redraws },
    /// Nobody drew it: all of one arm ran before all of the other.
    Unknown { y: Vec<Option<f64>>, is_b: Vec<bool> },
}

/// The trials of two arms as everything here looks at them.
pub(crate) struct Pairing<'a> {
    plan: &'a Plan,
    /// In the order in which they ran.
    trials: Vec<&'a Trial>,
    order: Order,
    /// The estimated effect on the outcome, in log units.
    theta: Option<f64>,
}

/// How a quantity moved from the first arm to the other.
pub(crate) struct Moved {
    /// The estimated shift, in the quantity's own scale.
    theta: Option<f64>,
    /// p-value of "it did not".
    p: f64,
    /// 95 % interval, where it was asked for.
    interval: [Option<f64>; 2],
    /// What is left of each trial without the shift, where it was asked for.
    residuals: Vec<Option<f64>>,
}

/// What of [`Moved`] is worked out beside shift and p-value.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Asked {
    /// The interval.
    Interval,
    /// The residuals.
    Residuals,
}

impl<'a> Pairing<'a> {
    fn new(plan: &'a Plan, trials: &'a [Trial], comparison: &Comparison) -> Result<Self, AnalyzeError> {
        let mut of_two = trials_of(&settled_blocks(plan, trials)?, comparison.arm);
        if let Some(look) = comparison.judgement.looks.last() {
            of_two.truncate(look.pairs.saturating_mul(2));
        }
        let series = series_of(plan, &of_two, comparison.arm)?;
        let redraws = plan.rule.redraws(series.pairs());
        let theta = Test::new(&series, &redraws).estimate().filter(|_| series.pairs() > 0);
        Ok(Self { plan, trials: of_two, order: Order::Drawn { series, redraws }, theta })
    }

    fn is_b(&self) -> &[bool] {
        match &self.order {
            Order::Drawn { series, .. } => series.is_b(),
            Order::Unknown { is_b, .. } => is_b,
        }
    }

    /// The primary metric as outcomes.
    fn outcomes(&self) -> &[Option<f64>] {
        match &self.order {
            Order::Drawn { series, .. } => series.outcomes(),
            Order::Unknown { y, .. } => y,
        }
    }

    /// Trials of an arm.
    fn count(&self, b: bool) -> usize {
        self.is_b().iter().filter(|is_b| **is_b == b).count()
    }

    /// How `y` (one for each trial) moved; `None` when a number of it is not finite.
    fn moved(&self, y: Vec<Option<f64>>, asked: Asked) -> Option<Moved> {
        let (series, redraws) = match &self.order {
            Order::Drawn { series, redraws } => {
                (Series::new(y, series.is_b().to_vec(), series.law()).ok()?, redraws)
            }
            Order::Unknown { is_b, .. } => {
                let is_finite = y.iter().flatten().all(|y| y.is_finite());
                return is_finite.then(|| apart::moved(&y, is_b));
            }
        };
        let test = Test::new(&series, redraws);
        let (theta, p) = (test.estimate(), test.p(0.0));
        let interval = theta.filter(|_| asked == Asked::Interval);
        let interval = interval.map(|theta| test.interval(theta, 0.05, &[(0.0, p)]));
        let residuals = (asked == Asked::Residuals).then(|| test.residuals(theta.unwrap_or(0.0)).e);
        Some(Moved {
            theta,
            p,
            interval: interval.map_or([None, None], |interval| [interval.low, interval.high]),
            residuals: residuals.unwrap_or_default(),
        })
    }

    /// The primary metric without its effect.
    fn residuals(&self) -> Vec<Option<f64>> {
        match &self.order {
            Order::Drawn { series, redraws } => {
                Test::new(series, redraws).residuals(self.theta.unwrap_or(0.0)).e
            }
            Order::Unknown { y, is_b } => apart::residuals(y, is_b),
        }
    }

    /// The smallest p-value that there can be.
    fn least_p(&self) -> f64 {
        match &self.order {
            // The observed order and its mirror among all.
            Order::Drawn { redraws, .. } => {
                let orders = real(redraws.len().max(1));
                if redraws.is_complete() { 2.0 / orders } else { 1.0 / orders }
            }
            Order::Unknown { .. } => unordered::least_p(self.count(false), self.count(true)),
        }
    }

    /// The median of `values` (one for each trial) under the first arm or the other.
    fn middle(&self, values: &[Option<f64>], b: bool) -> Option<f64> {
        let of_arm = values.iter().zip(self.is_b()).filter(|(_, is_b)| **is_b == b);
        crate::statistics::median(&mut of_arm.filter_map(|(value, _)| *value).collect::<Vec<f64>>())
    }
}

/// Explains `comparison`, which [`crate::experiment::analyze()`] found in `plan` and `trials`. `about` tells what the
/// channels are; one that is not in it goes by its name.
pub fn explain(
    plan: &Plan,
    trials: &[Trial],
    comparison: &Comparison,
    about: &BTreeMap<String, About>,
) -> Result<Explanation, AnalyzeError> {
    let pairing = Pairing::new(plan, trials, comparison)?;
    let mut explanation = of_pairing(&pairing, comparison.arm, about);
    if let Order::Drawn { series, redraws } = &pairing.order {
        let values: Vec<Option<f64>> = pairing.trials.iter().map(|trial| trial.value).collect();
        explanation.pairs = series.pairs();
        explanation.lines = (series.pairs() > 0).then(|| lines(&Test::new(series, redraws), &values));
    }
    explanation.is_change = comparison.judgement.verdict == Verdict::Different;
    explanation.sentences = words::sentences(plan, comparison, &explanation);
    Ok(explanation)
}

/// Everything but what needs an order that was drawn, and the sentences.
fn of_pairing(pairing: &Pairing, arm: usize, about: &BTreeMap<String, About>) -> Explanation {
    let splits = split::splits(pairing);
    let (channels, missing) = channels::channels(pairing, about, &splits);
    let blind = pairing.least_p() * real(channels.len()) > CHANNEL_RATE;
    Explanation {
        arm,
        pairs: pairing.count(false).min(pairing.count(true)),
        sentences: Vec::new(),
        lines: None,
        metrics: metrics::metrics(pairing),
        is_change: false,
        splits,
        channels,
        missing,
        blind,
    }
}

#[cfg(test)]
mod tests;
