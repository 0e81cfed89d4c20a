//! Model-specific registers.

use serde::Serialize;

use crate::Reader;
use crate::cpu::Cpu;

/// Model-specific registers.
#[derive(Debug, Clone, Serialize)]
pub struct Msr {}

/// Reads this subsystem.
pub fn observe(_reader: &Reader<'_>, _cpu: &Cpu) -> Msr {
    Msr {}
}
