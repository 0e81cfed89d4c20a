//! Services that tune the machine.

use serde::Serialize;

use crate::Reader;

/// Services that tune the machine.
#[derive(Debug, Clone, Serialize)]
pub struct Services {}

/// Reads this subsystem.
pub fn observe(_reader: &Reader<'_>) -> Services {
    Services {}
}
