//! The clock of everything on the die that is no core: mesh, last-level cache, memory controller
//! (`Documentation/admin-guide/pm/intel_uncore_frequency_scaling.rst`).

use serde::Serialize;

use super::CPU_DIR;
use crate::{Observed, Reader, reader::join};

/// One uncore clock domain.
#[derive(Debug, Clone, Serialize)]
pub struct UncoreDomain {
    /// The directory's name: `package_00_die_00`, or `uncore00` where domains are finer (TPMI).
    pub name: String,
    /// The maximum that was set when the driver loaded, in kHz.
    pub initial_max_khz: Observed<u64>,
    /// The minimum that was set when the driver loaded, in kHz.
    pub initial_min_khz: Observed<u64>,
    /// The maximum now, in kHz.
    pub max_khz: Observed<u64>,
    /// The minimum now, in kHz.
    pub min_khz: Observed<u64>,
    /// Floor of efficiency-latency control while the die has little to do, in kHz (Xeon 6).
    pub low_load_floor_khz: Observed<u64>,
}

pub(super) fn observe(reader: &Reader<'_>) -> Observed<Vec<UncoreDomain>> {
    let dir = join(CPU_DIR, "intel_uncore_frequency");
    reader.names(&dir).map(|names| {
        let is_domain = |name: &String| name.starts_with("package_") || name.starts_with("uncore");
        names.into_iter().filter(is_domain).map(|name| domain(reader, &dir, name)).collect()
    })
}

fn domain(reader: &Reader<'_>, dir: &str, name: String) -> UncoreDomain {
    let khz = |file: &str| reader.number(&join(dir, format_args!("{name}/{file}")));
    UncoreDomain {
        initial_max_khz: khz("initial_max_freq_khz"),
        initial_min_khz: khz("initial_min_freq_khz"),
        max_khz: khz("max_freq_khz"),
        min_khz: khz("min_freq_khz"),
        low_load_floor_khz: khz("elc_floor_freq_khz"),
        name,
    }
}
