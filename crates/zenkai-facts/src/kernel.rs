//! Kernel release, command line and settings.

use serde::Serialize;

use crate::Reader;

/// Kernel release, command line and settings.
#[derive(Debug, Clone, Serialize)]
pub struct Kernel {}

/// Reads this subsystem.
pub fn observe(_reader: &Reader<'_>) -> Kernel {
    Kernel {}
}
