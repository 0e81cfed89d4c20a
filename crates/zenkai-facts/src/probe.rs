//! What the machine really did under load, when a probe was run.

use serde::Serialize;

use crate::Reader;

/// What the machine really did under load, when a probe was run.
#[derive(Debug, Clone, Serialize)]
pub struct ProbeFacts {}

/// Reads this subsystem.
pub fn observe(_reader: &Reader<'_>) -> ProbeFacts {
    ProbeFacts {}
}
