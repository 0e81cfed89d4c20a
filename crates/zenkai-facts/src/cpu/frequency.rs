//! cpufreq: one policy per set of CPUs that share a clock (`Documentation/admin-guide/pm/cpufreq.rst`).

use serde::Serialize;

use super::CPU_DIR;
use crate::{CpuSet, Observed, Reader, reader::join};

/// The clock and who steers it.
#[derive(Debug, Clone, Serialize)]
pub struct Frequency {
    /// All policies, by number.
    pub policies: Observed<Vec<Policy>>,
}

/// One frequency domain.
#[derive(Debug, Clone, Serialize)]
pub struct Policy {
    /// N of `policyN`.
    pub number: u32,
    /// The online CPUs it covers.
    pub cpus: Observed<CpuSet>,
    /// `acpi-cpufreq`, `intel_pstate`, `amd-pstate-epp` …
    pub driver: Observed<String>,
    /// The governor in force.
    pub governor: Observed<String>,
}

pub(super) fn observe(reader: &Reader<'_>) -> Frequency {
    let dir = join(CPU_DIR, "cpufreq");
    let policies = reader
        .numbered(&dir, "policy")
        .map(|numbers| numbers.into_iter().map(|number| policy(reader, &dir, number)).collect());
    Frequency { policies }
}

fn policy(reader: &Reader<'_>, dir: &str, number: u32) -> Policy {
    let dir = join(dir, format_args!("policy{number}"));
    Policy {
        number,
        cpus: reader.text(&join(&dir, "affected_cpus")).parse(|text| text.replace(' ', ",").parse()),
        driver: reader.text(&join(&dir, "scaling_driver")),
        governor: reader.text(&join(&dir, "scaling_governor")),
    }
}
