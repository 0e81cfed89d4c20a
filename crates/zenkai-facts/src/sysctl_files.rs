//! Settings in files against settings in force.

use serde::Serialize;

use crate::Reader;

/// Settings in files against settings in force.
#[derive(Debug, Clone, Serialize)]
pub struct SysctlFiles {}

/// Reads this subsystem.
pub fn observe(_reader: &Reader<'_>) -> SysctlFiles {
    SysctlFiles {}
}
