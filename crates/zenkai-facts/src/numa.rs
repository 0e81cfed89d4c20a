//! NUMA nodes.

use serde::Serialize;

use crate::Reader;

/// NUMA nodes.
#[derive(Debug, Clone, Serialize)]
pub struct Numa {}

/// Reads this subsystem.
pub fn observe(_reader: &Reader<'_>) -> Numa {
    Numa {}
}
