//! Thermal throttling.

use serde::Serialize;

use crate::Reader;
use crate::cpu::Cpu;

/// Thermal throttling.
#[derive(Debug, Clone, Serialize)]
pub struct Thermal {}

/// Reads this subsystem.
pub fn observe(_reader: &Reader<'_>, _cpu: &Cpu) -> Thermal {
    Thermal {}
}
