//! What explains a difference: the channels that changed with it, the split of the time into its factors, and the
//! other numbers of the workload.
//!
//! Everything here comes from the same trials, the same order and the same re-randomisations as the verdict, so each
//! p-value is as good as the verdict's own. What is *said* is still an explanation and not proof: two things that
//! change together under an arm need not cause each other. To prove one knob, compare with that knob alone put back.

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
    /// The effect as a product of factors, where the channels allow it.
    pub splits: Vec<Split>,
    /// Every channel that could be tested, those that changed first.
    pub channels: Vec<ChannelShift>,
    /// Channels that could not be tested.
    pub missing: Vec<Missing>,
    /// Whether the pairs are so few that no single channel can pass the correction for their number.
    pub blind: bool,
}

/// The trials of two arms as everything here looks at them.
pub(crate) struct Pairing<'a> {
    plan: &'a Plan,
    /// In the order in which they ran.
    trials: Vec<&'a Trial>,
    series: Series,
    redraws: Redraws,
    /// The estimated effect on the outcome, in log units.
    theta: Option<f64>,
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
        Ok(Self { plan, trials: of_two, series, redraws, theta })
    }

    /// The same trials with other outcomes; `None` when an outcome is not finite.
    fn with(&self, y: Vec<Option<f64>>) -> Option<Series> {
        Series::new(y, self.series.is_b().to_vec(), self.series.law()).ok()
    }

    /// The median of `values` (one for each trial) under the first arm or the other.
    fn middle(&self, values: &[Option<f64>], b: bool) -> Option<f64> {
        let of_arm = values.iter().zip(self.series.is_b()).filter(|(_, is_b)| **is_b == b);
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
    let values: Vec<Option<f64>> = pairing.trials.iter().map(|trial| trial.value).collect();
    let test = Test::new(&pairing.series, &pairing.redraws);
    let lines = (pairing.series.pairs() > 0).then(|| lines(&test, &values));
    let splits = split::splits(&pairing);
    let (channels, missing) = channels::channels(&pairing, about, &splits);
    let mut explanation = Explanation {
        arm: comparison.arm,
        pairs: pairing.series.pairs(),
        sentences: Vec::new(),
        lines,
        metrics: metrics::metrics(&pairing),
        splits,
        channels,
        missing,
        blind: false,
    };
    explanation.blind = least_p(&pairing.redraws) * real(explanation.channels.len()) > CHANNEL_RATE;
    explanation.sentences = words::sentences(plan, comparison, &explanation);
    Ok(explanation)
}

/// The smallest p-value that there can be: the observed order and its mirror among all.
fn least_p(redraws: &Redraws) -> f64 {
    let orders = real(redraws.len().max(1));
    if redraws.is_complete() { 2.0 / orders } else { 1.0 / orders }
}

#[cfg(test)]
mod tests;
