//! Hardware vulnerabilities and their mitigations.

use serde::Serialize;

use crate::Reader;

/// Hardware vulnerabilities and their mitigations.
#[derive(Debug, Clone, Serialize)]
pub struct Vulnerabilities {}

/// Reads this subsystem.
pub fn observe(_reader: &Reader<'_>) -> Vulnerabilities {
    Vulnerabilities {}
}
