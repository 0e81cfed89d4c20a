//! Dirty limits so small that writers wait at once.

use zenkai_facts::Facts;
use zenkai_tune::Setting;

use crate::{
    Check, Context, Evidence, Finding, Impact, Judgement, Outcome, Remedy, Subject, Subsystem, need,
};

/// See the explanation.
pub(super) static CHECK: Check = Check {
    id: "memory-dirty-limits-small",
    subsystem: Subsystem::Memory,
    summary: "writers wait as soon as a few megabytes are unwritten",
    impact: Impact::Moderate,
    effect: "buffered writing runs at the speed of the disk from the first megabytes on (follows from the limit)",
    risk: "more unwritten data is lost in a power failure",
    source: "https://docs.kernel.org/admin-guide/sysctl/vm.html",
    explanation: include_str!("memory_dirty_limits_small.md"),
    run,
};

/// What a single disk writes in a tenth of a second; less than that cannot keep it busy.
const LEAST_BYTES: u64 = 16 << 20;

fn run(facts: &Facts, _context: Context) -> Judgement {
    judge(facts).into()
}

fn judge(facts: &Facts) -> Result<Option<Finding>, Outcome> {
    let settings = &facts.memory.settings;
    let bytes = *need(&settings.dirty_bytes)?;
    let info = need(&facts.memory.info)?;
    let (limit, evidence, knob) = if bytes > 0 {
        (bytes, Evidence::of(&settings.dirty_bytes), "vm.dirty_bytes")
    } else {
        let ratio = u64::from(*need(&settings.dirty_ratio)?);
        let base_kb = info.available_kb.unwrap_or(info.total_kb);
        (base_kb.saturating_mul(1024) / 100 * ratio, Evidence::of(&settings.dirty_ratio), "vm.dirty_ratio")
    };
    // A machine with little memory cannot spare more.
    let affordable = info.total_kb.saturating_mul(1024) / 20;
    if limit >= LEAST_BYTES.min(affordable) {
        return Ok(None);
    }
    let value = if bytes > 0 { "629145600" } else { "20" };
    Ok(Some(
        Finding::new(Subject::Machine, format!("writers wait once {} KiB are unwritten", limit >> 10))
            .with(evidence.expected(format!("room for at least {} MiB", LEAST_BYTES >> 20)))
            .remedy(Remedy::Set(vec![Setting::sysctl(knob, value)]))
            .because("writers are held back at once"),
    ))
}

#[cfg(test)]
mod tests {
    use crate::checks::testing::findings;

    fn fires(mib: u64, bytes: &str, ratio: &str) -> bool {
        let kb = mib << 10;
        let files = [
            ("/proc/meminfo", format!("MemTotal: {kb} kB\nMemFree: 1 kB\nMemAvailable: {kb} kB\n")),
            ("/proc/sys/vm/dirty_bytes", format!("{bytes}\n")),
            ("/proc/sys/vm/dirty_ratio", format!("{ratio}\n")),
        ];
        !findings(&super::CHECK, &files).is_empty()
    }

    #[test]
    fn only_limits_that_cannot_keep_a_disk_busy() {
        assert!(fires(64 << 10, "4194304", "0"));
        assert!(fires(64 << 10, "0", "0"));
        assert!(!fires(64 << 10, "314572800", "0"));
        assert!(!fires(64 << 10, "0", "20"));
        assert!(!fires(128, "0", "20"), "a small machine has no more to give");
    }
}
