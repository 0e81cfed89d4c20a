//! No transparent huge pages for work that wants them.

use zenkai_facts::Facts;
use zenkai_tune::Setting;

use crate::{
    Check, Context, Evidence, Finding, Impact, Judgement, Outcome, Remedy, Subject, Subsystem, Workload,
    need_or_not_applicable,
};

/// See the explanation.
pub(super) static CHECK: Check = Check {
    id: "memory-thp-never",
    subsystem: Subsystem::Memory,
    summary: "transparent huge pages are off for work that profits from them",
    impact: Impact::Moderate,
    effect: "fewer address translation misses with large arrays; 5 to 20 % for such work (estimate)",
    risk: "memory use may grow",
    source: "https://docs.kernel.org/admin-guide/mm/transhuge.html",
    explanation: include_str!("memory_thp_never.md"),
    run,
};

fn run(facts: &Facts, context: Context) -> Judgement {
    judge(facts, context).into()
}

fn judge(facts: &Facts, context: Context) -> Result<Option<Finding>, Outcome> {
    let wanted = match context.workload {
        Some(Workload::Hpc) => "always",
        Some(Workload::Hana) => "madvise",
        _ => return Err(Outcome::not_applicable("it depends on the work: name it with --workload")),
    };
    let reading = &facts.memory.transparent_huge_pages.enabled;
    let choice = need_or_not_applicable(reading, "this kernel has no transparent huge pages")?;
    if choice.current != "never" {
        return Ok(None);
    }
    let impact = if wanted == "always" { Impact::Moderate } else { Impact::Small };
    Ok(Some(
        Finding::new(Subject::Machine, "large arrays are mapped in pages of the smallest size")
            .with(Evidence::derived(reading.source(), &choice.current).expected(wanted))
            .impact(impact)
            .remedy(Remedy::Set(vec![Setting::attribute(reading.source(), wanted)])),
    ))
}

#[cfg(test)]
mod tests {
    use zenkai_host::FakeHost;

    use crate::{Context, Workload, checks::testing::judge_host};

    fn fires(shown: &str, workload: Option<Workload>) -> bool {
        let host = FakeHost::new(&[("/sys/kernel/mm/transparent_hugepage/enabled", shown)]);
        !judge_host(&super::CHECK, host, Context { workload }).findings.is_empty()
    }

    #[test]
    fn by_work_only() {
        assert!(fires("always madvise [never]\n", Some(Workload::Hpc)));
        assert!(!fires("always madvise [never]\n", None));
        assert!(!fires("always [madvise] never\n", Some(Workload::Hpc)));
        assert!(!fires("always madvise [never]\n", Some(Workload::Redis)));
    }
}
