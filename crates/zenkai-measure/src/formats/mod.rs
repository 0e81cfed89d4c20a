//! Other programs' formats: an experiment written for them, and what they measured read back.
//!
//! What is read from elsewhere is information and never proof. The order in which another program ran its arms is
//! either lost in its file or was not drawn by a law that was laid down before; without that no p-value holds against
//! drift of the machine. So [`Imported::compare`] says what the numbers look like, and its verdict is always
//! "undecided".

mod csv;
mod go_bench;
mod hyperfine;
mod phoronix;
mod pyperf;
mod unpaired;

use std::collections::BTreeSet;

use crate::experiment::{Plan, Status, Trial};
use crate::statistics::verdict::Better;

pub use unpaired::Unpaired;

/// A format that can be written and read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// The Go benchmark format, as `benchstat` reads it.
    GoBench,
    /// The JSON of `hyperfine --export-json`.
    Hyperfine,
    /// The JSON of pyperf.
    Pyperf,
    /// A result file of the Phoronix Test Suite.
    Phoronix,
    /// One line for each number, for R and pandas.
    Csv,
}

/// Why something could not be written or read in a format.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum FormatError {
    /// The format has no place for this experiment.
    #[error("{0}")]
    Unfit(String),
    /// Not of this format.
    #[error("line {line}: {what}")]
    Content {
        /// Line, from 1.
        line: usize,
        /// What is wrong.
        what: String,
    },
    /// There is nothing in it.
    #[error("no result in it")]
    Empty,
}

/// One number that another program measured.
#[derive(Debug, Clone, PartialEq)]
pub struct Run {
    /// What was measured, where the file tells: a benchmark's name.
    pub benchmark: String,
    /// Under which arm.
    pub arm: String,
    /// Name of the metric.
    pub metric: String,
    /// Its unit.
    pub unit: String,
    /// Which direction is better; `None` where the file does not tell.
    pub better: Option<Better>,
    /// The number; `None` where the run failed.
    pub value: Option<f64>,
}

/// Bytes that the names and units of all runs may take together. A name stands once in a file and for many numbers.
const MOST_TEXT: usize = if cfg!(test) { 8 << 20 } else { 256 << 20 };
/// Arms of a file. Each is compared with the first, which takes its time.
const MOST_ARMS: usize = 1_000;

/// Runs that are being read.
#[derive(Default)]
struct Runs {
    list: Vec<Run>,
    text: usize,
}

impl Runs {
    fn push(&mut self, line: usize, run: Run) -> Result<(), FormatError> {
        let Run { benchmark, arm, metric, unit, .. } = &run;
        self.text += [benchmark, arm, metric, unit].iter().map(|text| text.len()).sum::<usize>();
        if self.text > MOST_TEXT {
            let what = format!("the names of its runs take more than {} MiB", MOST_TEXT >> 20);
            return Err(FormatError::Content { line, what });
        }
        self.list.push(run);
        Ok(())
    }
}

/// What was read from another program's file.
#[derive(Debug, Clone, PartialEq)]
pub struct Imported {
    /// All runs, in the order of the file.
    pub runs: Vec<Run>,
    /// Whether the order of the file is the order in which they ran. Even then it is not known to be random.
    pub ordered: bool,
    /// The arm that the others are compared with; `None` for the first one in the file.
    pub first: Option<String>,
}

impl Format {
    /// Writes an experiment.
    pub fn export(self, plan: &Plan, trials: &[Trial]) -> Result<String, FormatError> {
        let trials: Vec<&Trial> = trials.iter().filter(|trial| trial.status != Status::Discarded).collect();
        match self {
            Self::GoBench => Ok(go_bench::write(plan, &trials)),
            Self::Hyperfine => hyperfine::write(plan, &trials),
            Self::Pyperf => pyperf::write(plan, &trials),
            Self::Phoronix => Ok(phoronix::write(plan, &trials)),
            Self::Csv => Ok(csv::write(plan, &trials)),
        }
    }

    /// Reads what another program, or [`Format::export`], wrote.
    pub fn import(self, text: &str) -> Result<Imported, FormatError> {
        let imported = match self {
            Self::GoBench => go_bench::read(text),
            Self::Hyperfine => hyperfine::read(text),
            Self::Pyperf => pyperf::read(text),
            Self::Phoronix => phoronix::read(text),
            Self::Csv => csv::read(text),
        }?;
        let arms: BTreeSet<&str> = imported.runs.iter().map(|run| run.arm.as_str()).collect();
        match arms.len() {
            0 => Err(FormatError::Empty),
            many if many > MOST_ARMS => Err(FormatError::Unfit(format!(
                "{many} arms are more than the {MOST_ARMS} that are compared"
            ))),
            _ => Ok(imported),
        }
    }
}

/// The name of an arm in a format; an arm that the plan does not have cannot run, but a file may be damaged.
fn arm_name(plan: &Plan, arm: usize) -> &str {
    plan.arms.get(arm).map_or("?", |arm| &arm.name)
}

/// The workload's program, without its folder.
fn program(plan: &Plan) -> &str {
    plan.workload
        .first()
        .and_then(|word| word.rsplit('/').next())
        .filter(|word| !word.is_empty())
        .unwrap_or("workload")
}

/// All numbers of a trial that gave any: the primary metric first.
fn numbers<'a>(plan: &'a Plan, trial: &'a Trial) -> Vec<(&'a str, &'a str, Option<Better>, f64)> {
    let primary = trial
        .value
        .map(|value| (plan.metric.name.as_str(), plan.metric.unit.as_str(), Some(plan.rule.better), value));
    let others = trial.metrics.iter().filter(|(name, _)| **name != plan.metric.name);
    let others =
        others.map(|(name, measure)| (name.as_str(), measure.unit.as_str(), measure.better, measure.value));
    primary.into_iter().chain(others).filter(|(.., value)| value.is_finite()).collect()
}

/// A JSON error as ours.
fn json_error(error: &serde_json::Error) -> FormatError {
    FormatError::Content { line: error.line().max(1), what: error.to_string() }
}

#[cfg(test)]
mod tests;
