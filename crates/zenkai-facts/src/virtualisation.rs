//! Metal, guest, container.

use serde::Serialize;

use crate::Reader;

/// Metal, guest, container.
#[derive(Debug, Clone, Serialize)]
pub struct Virtualisation {}

/// Reads this subsystem.
pub fn observe(_reader: &Reader<'_>) -> Virtualisation {
    Virtualisation {}
}
