//! Hardware prefetchers switched off.

use zenkai_facts::{Facts, msr::IntelRegisters};

use super::shared::{cpus_of_package, intel_registers};

use crate::{
    Check, Context, Evidence, Finding, Impact, Judgement, Outcome, Remedy, Subject, Subsystem, need,
};

/// See the explanation.
pub(super) static CHECK: Check = Check {
    id: "cpu-prefetchers-off",
    subsystem: Subsystem::Cpu,
    summary: "hardware prefetchers are switched off",
    impact: Impact::Moderate,
    effect: "10 to 50 % for work that streams through memory (estimate); nothing or a gain for random access",
    risk: "none known",
    source: "https://software.intel.com/en-us/articles/disclosure-of-hw-prefetcher-control-on-some-intel-processors",
    explanation: include_str!("cpu_prefetchers_off.md"),
    run,
};

/// The bits of `MSR_MISC_FEATURE_CONTROL`, and whose they are.
const PREFETCHERS: [(u32, &str); 4] =
    [(0, "L2"), (1, "L2 adjacent line"), (2, "L1 data"), (3, "L1 data by instruction")];

fn run(facts: &Facts, _context: Context) -> Judgement {
    intel_registers(facts).map(|list| Judgement::each(list, |package| judge(facts, package))).into()
}

fn judge(facts: &Facts, package: &IntelRegisters) -> Result<Option<Finding>, Outcome> {
    let register = need(&package.prefetch_control)?;
    let off: Vec<&str> =
        PREFETCHERS.iter().filter(|(bit, _)| register.bit(*bit)).map(|(_, name)| *name).collect();
    if off.is_empty() {
        return Ok(None);
    }
    // The adjacent line alone is often left off, and right for random access.
    let impact = if off == ["L2 adjacent line"] { Impact::Depends } else { Impact::Moderate };
    Ok(Some(
        Finding::new(
            Subject::Cpus(cpus_of_package(facts, package.package)),
            format!("prefetchers are off: {}", off.join(", ")),
        )
        .with(Evidence::of(&package.prefetch_control).expected("bits 3:0 clear"))
        .impact(impact)
        .remedy(Remedy::Firmware("enable the hardware prefetchers".into())),
    ))
}

#[cfg(test)]
mod tests {
    use crate::{
        Context, Impact,
        checks::{
            cpu::shared::worlds::{emulated, with_registers, xeon},
            testing::judge_host,
        },
    };
    use zenkai_host::FakeHost;

    fn impact(host: FakeHost) -> Option<Impact> {
        judge_host(&super::CHECK, host, Context::default())
            .findings
            .first()
            .and_then(|finding| finding.impact)
    }

    #[test]
    fn which_are_off() {
        assert_eq!(impact(with_registers(xeon(""), &[(0x1a4, 0xf)])), Some(Impact::Moderate));
        assert_eq!(impact(with_registers(xeon(""), &[(0x1a4, 2)])), Some(Impact::Depends));
        assert_eq!(impact(with_registers(xeon(""), &[(0x1a4, 0)])), None);
        assert_eq!(impact(emulated(xeon(""))), None);
    }
}
