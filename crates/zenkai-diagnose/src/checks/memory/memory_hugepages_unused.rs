//! Explicit huge pages that nobody uses.

use zenkai_facts::{Facts, memory::HugePagePool};

use crate::{
    Check, Context, Evidence, Finding, Impact, Judgement, Outcome, Remedy, Subject, Subsystem, need,
    need_or_not_applicable,
};

/// See the explanation.
pub(super) static CHECK: Check = Check {
    id: "memory-hugepages-unused",
    subsystem: Subsystem::Memory,
    summary: "reserved huge pages lie idle",
    impact: Impact::Moderate,
    effect: "the reserved memory is missing for everything else",
    risk: "programs that count on the pool may not start again",
    source: "https://docs.kernel.org/admin-guide/mm/hugetlbpage.html",
    explanation: include_str!("memory_hugepages_unused.md"),
    run,
};

/// Idle memory below this is of no account, in kB.
const LEAST_KB: u64 = 1 << 20;

fn run(facts: &Facts, _context: Context) -> Judgement {
    let pools = &facts.memory.huge_page_pools;
    need_or_not_applicable(pools, "this kernel has no pools of huge pages")
        .map(|pools| Judgement::each(pools, |pool| judge(facts, pool)))
        .into()
}

fn judge(facts: &Facts, pool: &HugePagePool) -> Result<Option<Finding>, Outcome> {
    let total = *need(&pool.total)?;
    let free = *need(&pool.free)?;
    let reserved = *need(&pool.reserved)?;
    let memory_kb = need(&facts.memory.info)?.total_kb;
    let idle_kb = free.saturating_sub(reserved).saturating_mul(pool.page_kb);
    let share = idle_kb.saturating_mul(100).checked_div(memory_kb).unwrap_or(0);
    if idle_kb < LEAST_KB || share < 5 {
        return Ok(None);
    }
    let what = format!("{} MiB ({share} % of memory) of huge pages are used by nobody", idle_kb / 1024);
    let advice = format!(
        "start what needs them, or shrink the pool: `echo {} > {}` (and where it is set at boot)",
        total.saturating_sub(free.saturating_sub(reserved)),
        pool.total.source(),
    );
    Ok(Some(
        Finding::new(Subject::device(format!("{} kB pages", pool.page_kb)), what)
            .with(Evidence::of(&pool.free).expected("few"))
            .with(Evidence::of(&pool.total))
            .with(Evidence::of(&pool.reserved))
            .impact(if share >= 25 { Impact::Large } else { Impact::Moderate })
            .remedy(Remedy::Do(advice)),
    ))
}

#[cfg(test)]
mod tests {
    use crate::checks::testing::findings;

    fn fires(total: u64, free: u64, reserved: u64) -> bool {
        let pool = "/sys/kernel/mm/hugepages/hugepages-2048kB";
        let files = [
            (format!("{pool}/nr_hugepages"), total.to_string()),
            (format!("{pool}/free_hugepages"), free.to_string()),
            (format!("{pool}/resv_hugepages"), reserved.to_string()),
            ("/proc/meminfo".to_owned(), "MemTotal: 16777216 kB\nMemFree: 1 kB\n".to_owned()),
        ];
        !findings(&super::CHECK, &files).is_empty()
    }

    #[test]
    fn idle_and_not_promised() {
        assert!(fires(4096, 4096, 0));
        assert!(!fires(4096, 4096, 4096), "promised to a program that has not touched them yet");
        assert!(!fires(4096, 10, 0));
        assert!(!fires(0, 0, 0));
    }
}
