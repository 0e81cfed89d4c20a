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

/// Memory that all series may take together: a directory that somebody sent may name one large recording for a million
/// trials.
const MOST_BYTES: usize = 1 << 30;

/// What the recordings of all trials tell.
#[derive(Default)]
pub(super) struct Recordings {
    pub(super) series: Vec<TimeSeries>,
    pub(super) about: BTreeMap<String, About>,
    /// What could not be read, and why.
    pub(super) notes: Vec<String>,
    /// Texts that all trials share.
    texts: BTreeSet<Arc<str>>,
    /// What `series` takes.
    bytes: usize,
}

impl Recordings {
    /// Reads the recordings that `trials` name below `dir`.
    pub(super) fn read(dir: &Path, plan: &Plan, trials: &[Trial]) -> Self {
        Self::read_within(dir, plan, trials, None, MOST_BYTES)
    }

    /// The same for the trials of one arm only. The bins are as wide as all trials need.
    pub(super) fn of_arm(dir: &Path, plan: &Plan, trials: &[Trial], arm: usize) -> Self {
        Self::read_within(dir, plan, trials, Some(arm), MOST_BYTES)
    }

    fn read_within(dir: &Path, plan: &Plan, trials: &[Trial], arm: Option<usize>, most_bytes: usize) -> Self {
        let mut found = Self::default();
        let longest =
            trials.iter().map(|trial| trial.elapsed_s).filter(|s| s.is_finite()).fold(0.0, f64::max);
        let width_s = bin_width(longest, plan.sample_s.unwrap_or(0.0));
        let mut missing: BTreeMap<String, String> = BTreeMap::new();
        let asked = |trial: &Trial| arm.is_none_or(|arm| trial.arm == arm);
        for (index, trial) in trials.iter().enumerate().filter(|(_, trial)| asked(trial)) {
            let Some(name) = &trial.samples else { continue };
            if found.bytes > most_bytes {
                let from = index + 1;
                found.notes.push(format!("there is too much to show: no time series from trial {from} on"));
                break;
            }
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
            self.bytes += size_of::<TimeSeries>() + size_of_val(series.bins.as_slice());
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

#[cfg(test)]
mod tests {
    use zenkai_measure::experiment::{Arm, Metric, Status};
    use zenkai_measure::sampler::{Options, Sampler};
    use zenkai_measure::statistics::verdict::Better;

    use super::*;

    #[test]
    fn one_recording_for_many_trials_does_not_fill_the_memory() {
        let dir = tempfile::tempdir().unwrap();
        let sampler = Sampler::start(&Options::default()).unwrap();
        sampler.stop().write(&dir.path().join("a.zks")).unwrap();
        let metric = Metric { name: "time".into(), unit: "s".into(), pattern: None };
        let arms = vec![Arm::new("a", "a"), Arm::new("b", "b")];
        let plan = Plan::new(arms, vec!["true".into()], metric, Better::Lower, 1, 6);
        let trial = Trial { samples: Some("a.zks".into()), ..Trial::new(0, 0, 0, 0, Status::Ok, Some(1.0)) };
        let trials = vec![trial; 5];
        let all = Recordings::read(dir.path(), &plan, &trials);
        assert_eq!(all.series.iter().map(|series| series.trial).max(), Some(4), "{:?}", all.notes);
        let few = Recordings::read_within(dir.path(), &plan, &trials, None, all.bytes / 5 + 1);
        assert_eq!(few.series.iter().map(|series| series.trial).max(), Some(1));
        assert!(
            few.notes.iter().any(|note| note.contains("no time series from trial 3 on")),
            "{:?}",
            few.notes
        );
    }
}
