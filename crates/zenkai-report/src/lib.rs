//! Reports: a small document model and its renderers.
//!
//! What a report says is built from blocks ([`Block`]); how it looks is the renderer's business. A section knows
//! nothing about terminals, a renderer nothing about checks.

mod block;
mod difference;
mod doctor;
mod experiment;
mod explain;
mod facts;
mod fix;
mod imported;
mod json;
mod plan;
mod probe;
mod profile;
mod text;
mod transaction;

pub use block::{Block, Field, Mark};
pub use difference::{difference, difference_json};
pub use doctor::{Detail, doctor};
pub use experiment::{
    BeforeAfter, Confirmed, Experiment, IDLE_ARM, MOST_BINS, States, TimeSeries, analysis, before_after,
    before_after_html, before_after_json, bin_width, confirmed, difference_html, experiment, experiment_html,
    experiment_json, recorded_html, recording, recording_json, sentence, shell,
};
pub use explain::{check_list, explain};
pub use facts::facts;
pub use fix::{FixNote, FixOutcome, fix_json, fix_notes};
pub use imported::{imported, imported_json};
pub use json::{checks_json, doctor_json, json_text};
pub use plan::{Verdict, plan, plan_json, verify, verify_json};
pub use profile::{profile, profile_json, profile_list, profile_list_json};
pub use text::{Style, printable, printable_lines, render};
pub use transaction::{fate, log, log_json, transaction, transaction_json, utc};
