//! An experiment on disk: the plan, written before the first trial, and the trials, one line each as they end.
//!
//! The verdict is never stored as a fact of its own: [`analyze()`] recomputes it from plan and trials, bit for bit.

mod analyze;
mod apart;
#[cfg(any(test, feature = "made-up"))]
pub mod made_up;
mod plan;
mod runner;
mod store;

pub(crate) use analyze::outcome;
pub use analyze::{AnalyzeError, Comparison, analyze, series_of, settled_blocks, trials_of};
pub use apart::{JoinError, Joined, SideOf, join, look_apart};
pub use plan::{
    Arm, Confirms, ENERGY_DOMAIN, MOST_PAIRS_OF_SHORT_RUNS, Measure, Metric, PLAN_VERSION, Plan, Setting,
    Settle, Status, Trial,
};
pub use runner::{Finish, Progress, RunError, Stage, StageError, carry_out};
pub use store::{Store, StoreError};
