//! Power limits, platform profile, management controller.

use serde::Serialize;

use crate::Reader;

/// Power limits, platform profile, management controller.
#[derive(Debug, Clone, Serialize)]
pub struct Power {}

/// Reads this subsystem.
pub fn observe(_reader: &Reader<'_>) -> Power {
    Power {}
}
