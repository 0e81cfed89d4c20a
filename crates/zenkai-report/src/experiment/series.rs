//! What the machine did during the trials, made small enough to draw.

/// Points kept of one channel in one trial.
pub const MOST_BINS: usize = 120;

/// One channel during one trial.
#[derive(Debug, Clone, PartialEq)]
pub struct TimeSeries {
    /// Index of the trial among all trials.
    pub trial: usize,
    /// Name of the channel.
    pub channel: String,
    /// Its unit; empty for a pure number.
    pub unit: String,
    /// What it is, in words.
    pub words: String,
    /// What it belongs to.
    pub group: String,
    /// Bins of equal width from the start of the trial.
    pub bins: Vec<Option<Bin>>,
    /// Width of a bin in seconds.
    pub width_s: f64,
}

/// The samples of a short stretch of time.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Bin {
    /// Smallest sample.
    pub low: f64,
    /// Their mean.
    pub mean: f64,
    /// Largest sample.
    pub high: f64,
}

impl TimeSeries {
    /// The samples `points` (seconds from the trial's start, ascending, and value; `None` where it could not be read)
    /// in bins of `width_s` seconds: extremes survive, a bin without a sample stays empty. Samples past
    /// [`MOST_BINS`] bins are left out, so choose `width_s` with [`bin_width`].
    #[must_use]
    pub fn binned(mut self, points: &[(f64, Option<f64>)], width_s: f64) -> Self {
        let mut bins: Vec<Option<(Bin, f64)>> = Vec::new();
        for (at, value) in points {
            let Some(value) = value.filter(|value| value.is_finite()) else { continue };
            let place = (0..MOST_BINS).find(|bin| *at < width_s * super::real(bin + 1));
            let Some(place) = place.filter(|_| *at >= 0.0) else { continue };
            if bins.len() <= place {
                bins.resize(place + 1, None);
            }
            let (bin, count) = bins[place].unwrap_or((Bin { low: value, mean: 0.0, high: value }, 0.0));
            let mean = bin.mean + (value - bin.mean) / (count + 1.0);
            bins[place] =
                Some((Bin { low: bin.low.min(value), mean, high: bin.high.max(value) }, count + 1.0));
        }
        self.bins = bins.into_iter().map(|bin| bin.map(|(bin, _)| bin)).collect();
        self.width_s = width_s;
        self
    }
}

/// The width of bins with which trials of up to `longest_s` seconds, sampled every `sample_s` seconds, fit.
pub fn bin_width(longest_s: f64, sample_s: f64) -> f64 {
    let needed = longest_s / super::real(MOST_BINS - 1);
    let sample = if sample_s.is_finite() && sample_s > 0.0 { sample_s } else { 1.0 };
    // Whole multiples of the sampling, so that every bin holds equally many.
    (needed / sample).ceil().max(1.0) * sample
}
