//! A reserve below the kernel's own choice.

use zenkai_facts::Facts;
use zenkai_tune::Setting;

use crate::{
    Check, Context, Evidence, Finding, Impact, Judgement, Outcome, Remedy, Subject, Subsystem, need,
};

/// See the explanation.
pub(super) static CHECK: Check = Check {
    id: "memory-min-free-low",
    subsystem: Subsystem::Memory,
    summary: "the reserve of free memory is below the kernel's own choice",
    impact: Impact::Small,
    effect: "tasks reclaim memory themselves and stall when free memory runs out (no general number)",
    risk: "a little memory is set aside",
    source: "https://docs.kernel.org/admin-guide/sysctl/vm.html",
    explanation: include_str!("memory_min_free_low.md"),
    run,
};

/// The kernel's own choice was never above this before 5.14, in kB (`mm/page_alloc.c`).
const OLD_CAP_KB: u64 = 65_536;

fn run(facts: &Facts, _context: Context) -> Judgement {
    judge(facts).into()
}

fn judge(facts: &Facts) -> Result<Option<Finding>, Outcome> {
    let reading = &facts.memory.settings.min_free_kb;
    let set_kb = *need(reading)?;
    let total_kb = need(&facts.memory.info)?.total_kb;
    // The kernel takes four times the square root of memory, both in kB.
    let usual_kb = total_kb.saturating_mul(16).isqrt().clamp(128, OLD_CAP_KB);
    // Half of it cannot come from rounding or memory that was added later.
    if set_kb.saturating_mul(2) >= usual_kb {
        return Ok(None);
    }
    let stalls = facts.memory.counters.get().and_then(|counters| counters.direct_reclaim_stalls);
    let mut finding =
        Finding::new(Subject::Machine, format!("{set_kb} kB are kept free where {usual_kb} are usual"))
            .with(Evidence::of(reading).expected(format!("{usual_kb} or more")))
            .remedy(Remedy::Set(vec![Setting::sysctl("vm.min_free_kbytes", usual_kb.to_string())]));
    if let Some(stalls) = stalls.filter(|stalls| *stalls > 0) {
        let source = facts.memory.counters.source();
        finding =
            finding.with(Evidence::derived(source, format!("{stalls} stalls in direct reclaim since boot")));
    }
    Ok(Some(finding))
}

#[cfg(test)]
mod tests {
    use crate::checks::testing::findings;

    fn fires(gib: u64, set_kb: u64) -> bool {
        let files = [
            ("/proc/meminfo", format!("MemTotal: {} kB\nMemFree: 1 kB\n", gib << 20)),
            ("/proc/sys/vm/min_free_kbytes", set_kb.to_string()),
        ];
        !findings(&super::CHECK, &files).is_empty()
    }

    #[test]
    fn only_when_somebody_lowered_it() {
        assert!(fires(64, 4096));
        assert!(!fires(24, 67_584));
        assert!(!fires(24, 19_873), "the kernel's own choice without huge pages");
        assert!(!fires(4096, 65_536), "the cap of older kernels");
    }
}
