//! Reading a stored experiment, for every command that shows one.

use std::io;
use std::path::{Path, PathBuf};

use anyhow::anyhow;
use serde_json::Value;
use zenkai_host::read_plain_file;
use zenkai_measure::experiment::{Comparison, Plan, Store, StoreError, Trial, analyze};
use zenkai_measure::explain::{Explanation, explain};
use zenkai_report::{Confirmed, Experiment, TimeSeries};

use super::{CommandError, recordings::Recordings};

/// Largest JSON file beside an experiment that is read.
const LARGEST: u64 = 64 * 1024 * 1024;

/// Confirmations of one experiment that are shown.
const MOST_CONFIRMATIONS: usize = 50;

/// An experiment as read, and what was found in it.
pub(super) struct Stored {
    dir: String,
    plan: Plan,
    trials: Vec<Trial>,
    comparisons: Vec<Comparison>,
    explanations: Vec<Explanation>,
    host: Option<Value>,
    same: Option<Value>,
    series: Vec<TimeSeries>,
    confirmed: Vec<Confirmed>,
    notes: Vec<String>,
}

impl Stored {
    /// Reads plan and trials in `dir` and judges them.
    pub(super) fn open(dir: &Path) -> Result<Self, CommandError> {
        let (plan, trials) = Store::read(dir).map_err(|error| unreadable(dir, error))?;
        if plan.arms.len() == 1 {
            let shown = dir.display();
            return Err(CommandError::usage(anyhow!(
                "{shown} is one recording: there is nothing to compare it with"
            ))
            .hint(format!("zenkai report --before {shown} --after ANOTHER")));
        }
        let comparisons = analyze(&plan, &trials).map_err(|error| {
            CommandError::usage(anyhow!("{}: {error}", dir.display()))
                .hint("the files of an experiment belong together: copy the whole directory")
        })?;
        Ok(Self {
            dir: dir.display().to_string(),
            plan,
            trials,
            comparisons,
            explanations: Vec::new(),
            host: None,
            same: None,
            series: Vec::new(),
            confirmed: Vec::new(),
            notes: Vec::new(),
        })
    }

    /// Reads what else is stored, and explains the verdicts. What cannot be read is noted and left out: it is not
    /// needed for the verdict.
    pub(super) fn with_everything(mut self, dir: &Path) -> Result<Self, CommandError> {
        self.host = self.beside(dir, "host.json", "the machine's facts are not shown");
        self.same = self.beside(dir, "aa.json", "");
        let Recordings { series, about, notes, .. } = Recordings::read(dir, &self.plan, &self.trials);
        self.series = series;
        self.notes.extend(notes);
        for comparison in &self.comparisons {
            let explanation = explain(&self.plan, &self.trials, comparison, &about)
                .map_err(|error| CommandError::usage(anyhow!("{}: {error}", self.dir)))?;
            self.explanations.push(explanation);
        }
        self.read_confirmations(dir);
        Ok(self)
    }

    /// The experiment for a report.
    pub(super) fn shown(&self) -> Experiment<'_> {
        Experiment {
            dir: &self.dir,
            plan: &self.plan,
            trials: &self.trials,
            comparisons: &self.comparisons,
            explanations: &self.explanations,
            host: self.host.as_ref(),
            same: self.same.as_ref(),
            series: &self.series,
            confirmed: &self.confirmed,
            notes: &self.notes,
            apart: false,
        }
    }

    /// The experiments below this one that prove single settings of it.
    fn read_confirmations(&mut self, dir: &Path) {
        for nth in 1..=MOST_CONFIRMATIONS {
            let below = dir.join(format!("confirm-{nth}"));
            if std::fs::symlink_metadata(&below).is_err() {
                return;
            }
            match Self::open(&below) {
                Ok(stored) => self.confirmed.extend(zenkai_report::confirmed(&stored.shown())),
                Err(error) => self.notes.push(format!("{}: {:#}", below.display(), error.error)),
            }
        }
    }

    fn beside(&mut self, dir: &Path, name: &str, loss: &str) -> Option<Value> {
        let path = dir.join(name);
        let parsed = read_small(&path).and_then(|bytes| Ok(serde_json::from_slice(&bytes)?));
        match parsed {
            Ok(value) => Some(value),
            Err(error) if error.kind() == io::ErrorKind::NotFound && loss.is_empty() => None,
            Err(error) => {
                self.notes.push(format!("{}: {error}; {loss}", path.display()));
                None
            }
        }
    }
}

/// The bytes of a regular file of moderate size.
pub(super) fn read_small(path: &Path) -> io::Result<Vec<u8>> {
    read_plain_file(path, LARGEST)
}

/// Why a stored experiment could not be read, with what to do.
pub(super) fn unreadable(dir: &Path, error: StoreError) -> CommandError {
    let absent = |path: &PathBuf| path.file_name().is_some_and(|name| name == "experiment.json");
    match &error {
        StoreError::Io { source, .. } if source.kind() == io::ErrorKind::PermissionDenied => {
            CommandError::not_permitted(anyhow!("{error}"))
        }
        StoreError::Io { path, source }
            if absent(path)
                && matches!(source.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) =>
        {
            CommandError::usage(anyhow!("{} holds no experiment: there is no experiment.json", dir.display()))
                .hint("give the directory that `zenkai compare` named when it ended")
        }
        StoreError::Content { .. } => CommandError::usage(error).hint(
            "the file was changed or damaged after it was written; take it from a copy of the directory",
        ),
        StoreError::Io { .. } => CommandError::usage(anyhow!("{error}")),
    }
}
