//! From plan and trials to verdicts.

use std::collections::BTreeMap;

use super::plan::{Plan, Status, Trial};
use crate::statistics::estimate::{Series, SeriesError};
use crate::statistics::verdict::{Judgement, judge};

/// Why trials do not belong to a plan.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum AnalyzeError {
    /// Fewer than two arms.
    #[error("the plan has fewer than two arms: nothing to compare")]
    Arms,
    /// A trial ran another arm than the seed says, or a place twice.
    #[error(
        "block {block}, attempt {attempt}, place {place}: not what the plan's seed says; plan and trials do not belong together"
    )]
    Order {
        /// Block of the trial.
        block: u32,
        /// Attempt of the trial.
        attempt: u32,
        /// Place of the trial in the block.
        place: usize,
    },
    /// A block is missing between others.
    #[error("block {0} is missing although later ones are there: trials were lost")]
    Missing(u32),
    /// See [`SeriesError`].
    #[error(transparent)]
    Series(#[from] SeriesError),
}

/// The verdict on one arm against the first.
#[derive(Debug, Clone, PartialEq)]
pub struct Comparison {
    /// Index of the arm in the plan.
    pub arm: usize,
    /// What was found.
    pub judgement: Judgement,
}

/// The blocks that count: of each block its last attempt, if all its trials ended and none was discarded. A block that
/// is not settled is to be drawn again with the next attempt.
pub fn settled_blocks<'a>(plan: &Plan, trials: &'a [Trial]) -> Result<Vec<Vec<&'a Trial>>, AnalyzeError> {
    let mut blocks: BTreeMap<u32, BTreeMap<u32, Vec<&Trial>>> = BTreeMap::new();
    for trial in trials {
        let of_block = blocks.entry(trial.block).or_default().entry(trial.attempt).or_default();
        let due = plan.block(trial.block, trial.attempt).get(trial.place).copied();
        if due != Some(trial.arm) || of_block.len() != trial.place {
            let Trial { block, attempt, place, .. } = *trial;
            return Err(AnalyzeError::Order { block, attempt, place });
        }
        of_block.push(trial);
    }
    let mut settled = Vec::new();
    let mut open = None;
    for ((block, attempts), due) in blocks.into_iter().zip(0..) {
        if block != due || open.is_some() {
            return Err(AnalyzeError::Missing(open.unwrap_or(due)));
        }
        let Some((attempt, last)) = attempts.into_iter().next_back() else { continue };
        let whole = last.len() == plan.block(block, attempt).len();
        if whole && last.iter().all(|trial| trial.status != Status::Discarded) {
            settled.push(last);
        } else {
            open = Some(block);
        }
    }
    Ok(settled)
}

/// Judges every arm against the first. The same plan and trials give the same result to the last bit.
pub fn analyze(plan: &Plan, trials: &[Trial]) -> Result<Vec<Comparison>, AnalyzeError> {
    if plan.arms.len() < 2 {
        return Err(AnalyzeError::Arms);
    }
    let blocks = settled_blocks(plan, trials)?;
    let compare = |arm: usize| {
        let series = series_of(plan, &trials_of(&blocks, arm), arm)?;
        Ok(Comparison { arm, judgement: judge(&series, &plan.rule) })
    };
    (1..plan.arms.len()).map(compare).collect()
}

/// The trials of the first arm and of `arm` among those of [`settled_blocks`], in the order in which they ran.
pub fn trials_of<'a>(blocks: &[Vec<&'a Trial>], arm: usize) -> Vec<&'a Trial> {
    blocks.iter().flatten().copied().filter(|trial| trial.arm == 0 || trial.arm == arm).collect()
}

/// The primary metric of `of_two` (see [`trials_of`]) as outcomes to judge.
pub fn series_of(plan: &Plan, of_two: &[&Trial], arm: usize) -> Result<Series, SeriesError> {
    let y = of_two.iter().map(|trial| outcome(plan, trial)).collect();
    let is_b = of_two.iter().map(|trial| trial.arm == arm).collect();
    Series::new(y, is_b, plan.rule.law)
}

/// The primary metric of a trial as an outcome; `None` where it failed.
pub(crate) fn outcome(plan: &Plan, trial: &Trial) -> Option<f64> {
    match trial.status {
        Status::Ok => trial.value.and_then(|value| plan.rule.better.outcome(value)),
        Status::Failed | Status::Timeout | Status::Discarded => None,
    }
}
