//! Firmware identity.

use serde::Serialize;

use crate::Reader;

/// Firmware identity.
#[derive(Debug, Clone, Serialize)]
pub struct Firmware {}

/// Reads this subsystem.
pub fn observe(_reader: &Reader<'_>) -> Firmware {
    Firmware {}
}
