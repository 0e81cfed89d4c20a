//! What the machine did during the trials, made small enough to draw.

use std::sync::Arc;

use zenkai_measure::sampler::Bin;

/// Points kept of one channel in one trial.
pub const MOST_BINS: usize = 120;

/// One channel during one trial. Its texts are shared with those of the same channel in other trials.
#[derive(Debug, Clone, PartialEq)]
pub struct TimeSeries {
    /// Index of the trial among all trials.
    pub trial: usize,
    /// Name of the channel.
    pub channel: Arc<str>,
    /// Its unit; empty for a pure number.
    pub unit: Arc<str>,
    /// What it is, in words.
    pub words: Arc<str>,
    /// What it belongs to.
    pub group: Arc<str>,
    /// Bins of equal width from the start of the trial; of more than [`MOST_BINS`] the rest is not shown.
    pub bins: Vec<Option<Bin>>,
    /// Width of a bin in seconds.
    pub width_s: f64,
}

/// The width of bins with which trials of up to `longest_s` seconds, sampled every `sample_s` seconds, fit.
pub fn bin_width(longest_s: f64, sample_s: f64) -> f64 {
    let needed = longest_s / super::real(MOST_BINS - 1);
    let sample = if sample_s.is_finite() && sample_s > 0.0 { sample_s } else { 1.0 };
    // Whole multiples of the sampling, so that every bin holds equally many.
    (needed / sample).ceil().max(1.0) * sample
}
