//! The recordings of an experiment's trials, made small enough to show.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Component, Path};
use std::sync::Arc;

use zenkai_measure::experiment::{Plan, Trial};
use zenkai_measure::explain::About;
use zenkai_measure::sampler::Recording;
use zenkai_report::{MOST_BINS, TimeSeries, bin_width};

use super::experiment::read_small;

/// Reasons why a quantity has no value that are told; the rest is counted.
const REASONS: usize = 4;

/// What the recordings of all trials tell.
#[derive(Default)]
pub(super) struct Recordings {
    pub(super) series: Vec<TimeSeries>,
    pub(super) about: BTreeMap<String, About>,
    /// What could not be read, and why.
    pub(super) notes: Vec<String>,
    /// Texts that all trials share.
    texts: BTreeSet<Arc<str>>,
}

impl Recordings {
    /// Reads the recordings that `trials` name below `dir`.
    pub(super) fn read(dir: &Path, plan: &Plan, trials: &[Trial]) -> Self {
        Self::of_arm(dir, plan, trials, None)
    }

    /// The same for the trials of one arm only. The bins are as wide as all trials need.
    pub(super) fn of_arm(dir: &Path, plan: &Plan, trials: &[Trial], arm: Option<usize>) -> Self {
        let mut found = Self::default();
        let longest =
            trials.iter().map(|trial| trial.elapsed_s).filter(|s| s.is_finite()).fold(0.0, f64::max);
        let width_s = bin_width(longest, plan.sample_s.unwrap_or(0.0));
        let mut missing: BTreeMap<String, String> = BTreeMap::new();
        let asked = |trial: &Trial| arm.is_none_or(|arm| trial.arm == arm);
        for (index, trial) in trials.iter().enumerate().filter(|(_, trial)| asked(trial)) {
            let Some(name) = &trial.samples else { continue };
            match recording(dir, name) {
                Ok(recording) => {
                    missing.extend(found.add(&recording, index, width_s));
                }
                Err(why) => {
                    found.notes.push(format!("{name}: {why}; trial {} has no time series", index + 1));
                }
            }
        }
        if !missing.is_empty() {
            found.notes.push(not_measurable(&missing));
        }
        found
    }

    /// Gives what could not be measured.
    fn add(&mut self, recording: &Recording, trial: usize, width_s: f64) -> Vec<(String, String)> {
        let digest = recording.binned(width_s, u32::try_from(MOST_BINS).unwrap_or(0));
        for curve in digest.curves {
            let (channel, bins) = (curve.channel, curve.bins);
            let series = TimeSeries {
                trial,
                channel: self.shared(&channel.name),
                unit: self.shared(&channel.unit),
                words: self.shared(&channel.words),
                group: self.shared(&channel.group),
                bins,
                width_s,
            };
            self.series.push(series);
            let about = About { unit: channel.unit, words: channel.words, group: channel.group };
            self.about.insert(channel.name, about);
        }
        digest.missing
    }

    /// The text, as it is already there if another trial has it.
    fn shared(&mut self, text: &str) -> Arc<str> {
        if let Some(known) = self.texts.get(text) {
            return Arc::clone(known);
        }
        let new: Arc<str> = text.into();
        self.texts.insert(Arc::clone(&new));
        new
    }
}

/// What has no value, by reason, the commonest first.
fn not_measurable(missing: &BTreeMap<String, String>) -> String {
    let mut reasons: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for (what, why) in missing {
        reasons.entry(why).or_default().push(what);
    }
    let mut reasons: Vec<(&str, Vec<&str>)> = reasons.into_iter().collect();
    reasons.sort_by_key(|(_, names)| std::cmp::Reverse(names.len()));
    let told: Vec<String> = reasons
        .iter()
        .take(REASONS)
        .map(|(why, names)| match names.as_slice() {
            [one] => format!("{one} ({why})"),
            [first, ..] => format!("{first} and {} more ({why})", names.len() - 1),
            [] => String::new(),
        })
        .collect();
    let rest: usize = reasons.iter().skip(REASONS).map(|(_, names)| names.len()).sum();
    let rest = if rest > 0 { format!(", and {rest} others") } else { String::new() };
    format!("Not measurable here: {}{rest}", told.join(", "))
}

/// The recording called `name` below `dir`; a name that leads out of it is refused.
fn recording(dir: &Path, name: &str) -> Result<Recording, String> {
    let inside = Path::new(name).components().all(|part| matches!(part, Component::Normal(_)));
    if !inside {
        return Err("not below the experiment's directory".to_owned());
    }
    let bytes = read_small(&dir.join(name)).map_err(|error| error.to_string())?;
    Recording::from_bytes(&bytes).map_err(|error| error.to_string())
}
