//! CPU and memory limits that our own control group puts on us.

use serde::Serialize;

use crate::Reader;

/// CPU and memory limits that our own control group puts on us.
#[derive(Debug, Clone, Serialize)]
pub struct Cgroup {}

/// Reads this subsystem.
pub fn observe(_reader: &Reader<'_>) -> Cgroup {
    Cgroup {}
}
