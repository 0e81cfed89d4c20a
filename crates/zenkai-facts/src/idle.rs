//! Idle states.

use serde::Serialize;

use crate::Reader;
use crate::cpu::Cpu;

/// Idle states.
#[derive(Debug, Clone, Serialize)]
pub struct Idle {}

/// Reads this subsystem.
pub fn observe(_reader: &Reader<'_>, _cpu: &Cpu) -> Idle {
    Idle {}
}
