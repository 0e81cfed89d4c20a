//! From facts to findings.
//!
//! A [`Check`] is a record and a pure function over [`zenkai_facts::Facts`]: it never reads the machine. It fires only on
//! evidence. What it needed and could not have is [`Unjudged`], with what would make it readable; what makes no
//! sense on this machine is [`Outcome::NotApplicable`], with the reason.

mod check;
mod context;
mod diagnosis;
mod finding;
mod judgement;
mod policy;
mod verdict;

pub mod checks;
pub mod difference;

pub use check::{Check, Subsystem};
pub use checks::clock::ghz;
pub use context::{Context, Workload};
pub use diagnosis::{CheckId, Diagnosis, Exempt, Reported, Selection, UnjudgedCheck, diagnose};
pub use finding::{Evidence, Finding, Impact, Remedy, Subject};
pub use judgement::{Judgement, Outcome, Unjudged, need, need_or_not_applicable};
pub use policy::{Policy, PolicyError};
pub use verdict::{Resource, Verdict};
