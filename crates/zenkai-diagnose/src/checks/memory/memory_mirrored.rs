//! Usable memory is about half of what is installed.

use zenkai_facts::Facts;

use crate::checks::shared::{needs_hardware, needs_own_cpus};
use crate::{
    Check, Context, Evidence, Finding, Impact, Judgement, Outcome, Remedy, Subject, Subsystem, need,
};

/// See the explanation.
pub(super) static CHECK: Check = Check {
    id: "memory-mirrored",
    subsystem: Subsystem::Memory,
    summary: "about half of the installed memory is not usable",
    impact: Impact::Moderate,
    effect: "half the capacity, and less write bandwidth when it is mirrored (estimate)",
    risk: "without mirroring, a memory error that cannot be corrected stops the machine",
    source: "https://infohub.delltechnologies.com/en-us/p/bios-settings-for-optimized-performance-on-next-generation-dell-poweredge-servers/",
    explanation: include_str!("memory_mirrored.md"),
    run,
};

fn run(facts: &Facts, _context: Context) -> Judgement {
    judge(facts).into()
}

fn judge(facts: &Facts) -> Result<Option<Finding>, Outcome> {
    needs_hardware(facts)?;
    needs_own_cpus(facts, "the hypervisor has the rest of the memory")?;
    let modules = need(&facts.memory.modules)?;
    let usable_mib = need(&facts.memory.info)?.total_kb / 1024;
    let installed_mib: u64 = modules.installed().map(|(_, module)| module.size_mib).sum();
    let share = usable_mib.saturating_mul(100).checked_div(installed_mib).unwrap_or(100);
    // Mirroring leaves a half, less what kernel and firmware reserve. Less than 40 % was cut off on purpose
    // (`mem=`, a crash kernel); sparing leaves more.
    if !(40..=51).contains(&share) {
        return Ok(None);
    }
    Ok(Some(
        Finding::new(Subject::Machine, format!("{share} % of {installed_mib} MiB are usable"))
            .with(
                Evidence::derived(facts.memory.info.source(), format!("{usable_mib} MiB"))
                    .expected(format!("near {installed_mib} MiB")),
            )
            .with(Evidence::derived(
                facts.memory.modules.source(),
                format!("{installed_mib} MiB in all modules"),
            ))
            .remedy(Remedy::Firmware(
                "look for memory mirroring, and choose optimizer or independent mode".to_owned(),
            )),
    ))
}

#[cfg(test)]
mod tests {
    use crate::{
        Context,
        checks::{memory::shared_table, testing::judge_host},
    };

    fn fires(usable_mib: u64) -> bool {
        let slots = vec![shared_table::slot("BANK 0", 16_384, 2400, 2400); 4];
        let total = format!("MemTotal: {} kB\nMemFree: 1 kB\n", usable_mib * 1024);
        let host = shared_table::host("", &slots).file("/proc/meminfo", &total);
        !judge_host(&super::CHECK, host, Context::default()).findings.is_empty()
    }

    #[test]
    fn a_half_is_suspicious() {
        assert!(fires(32_000));
        assert!(!fires(64_000));
        assert!(!fires(8000), "cut off on purpose");
    }
}
