//! Network devices.

use serde::Serialize;

use crate::Reader;

/// Network devices.
#[derive(Debug, Clone, Serialize)]
pub struct Net {}

/// Reads this subsystem.
pub fn observe(_reader: &Reader<'_>) -> Net {
    Net {}
}
