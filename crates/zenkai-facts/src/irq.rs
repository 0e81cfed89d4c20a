//! Interrupts: where they may go, and who moves them.

use serde::Serialize;

use crate::Reader;

/// Interrupts: where they may go, and who moves them.
#[derive(Debug, Clone, Serialize)]
pub struct Irq {}

/// Reads this subsystem.
pub fn observe(_reader: &Reader<'_>) -> Irq {
    Irq {}
}
