//! Memory: use, huge pages, modules.

use serde::Serialize;

use crate::Reader;

/// Memory: use, huge pages, modules.
#[derive(Debug, Clone, Serialize)]
pub struct Memory {}

/// Reads this subsystem.
pub fn observe(_reader: &Reader<'_>) -> Memory {
    Memory {}
}
