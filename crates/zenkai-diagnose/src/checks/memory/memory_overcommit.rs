//! Overcommit settings that refuse memory.

use zenkai_facts::Facts;
use zenkai_tune::Setting;

use crate::{
    Check, Context, Evidence, Finding, Impact, Judgement, Outcome, Remedy, Subject, Subsystem, Workload, need,
};

/// See the explanation.
pub(super) static CHECK: Check = Check {
    id: "memory-overcommit",
    subsystem: Subsystem::Memory,
    summary: "memory is refused although there is some",
    impact: Impact::Moderate,
    effect: "programs fail or cannot fork to save their data (by the definition of the mode)",
    risk: "with mode 1 a program that really uses all it asked for is killed",
    source: "https://redis.io/docs/latest/operate/oss_and_stack/management/admin/",
    explanation: include_str!("memory_overcommit.md"),
    run,
};

const STRICT: u32 = 2;

fn run(facts: &Facts, context: Context) -> Judgement {
    judge(facts, context).into()
}

fn judge(facts: &Facts, context: Context) -> Result<Option<Finding>, Outcome> {
    let mode = &facts.memory.settings.overcommit_memory;
    let value = *need(mode)?;
    if context.works_as(&[Workload::Redis]) && value != 1 {
        let what = "saving in the background needs a fork, which may be refused when much memory is in use";
        return Ok(Some(
            Finding::new(Subject::Machine, what)
                .with(Evidence::of(mode).expected("1"))
                .remedy(Remedy::Set(vec![Setting::sysctl("vm.overcommit_memory", "1")])),
        ));
    }
    if value != STRICT {
        return Ok(None);
    }
    let info = &facts.memory.info;
    let numbers = need(info)?;
    let (Some(limit), Some(committed), Some(available)) =
        (numbers.commit_limit_kb, numbers.committed_kb, numbers.available_kb)
    else {
        return Err(Outcome::not_applicable("this kernel does not tell what it promised"));
    };
    let nearly_all = committed.saturating_mul(10) >= limit.saturating_mul(9);
    let much_left = available.saturating_mul(4) >= numbers.total_kb;
    if !(nearly_all && much_left) {
        return Ok(None);
    }
    let what = format!("{} of {} MiB are promised, and more is refused", committed / 1024, limit / 1024);
    let advice = "raise vm.overcommit_ratio so that the limit fits the memory, or use mode 0";
    Ok(Some(
        Finding::new(Subject::Machine, what)
            .with(Evidence::of(mode))
            .with(Evidence::of(&facts.memory.settings.overcommit_ratio))
            .with(Evidence::derived(info.source(), format!("{} MiB available", available / 1024)))
            .remedy(Remedy::Do(advice.to_owned())),
    ))
}

#[cfg(test)]
mod tests {
    use zenkai_host::FakeHost;

    use crate::{Context, Workload, checks::testing::judge_host};

    fn fires(mode: &str, committed: u64, workload: Option<Workload>) -> bool {
        let info = format!(
            "MemTotal: 1000 kB\nMemFree: 1 kB\nMemAvailable: 600 kB\nCommitLimit: 500 kB\nCommitted_AS: {committed} kB\n"
        );
        let host = FakeHost::new(&[("/proc/sys/vm/overcommit_memory", mode), ("/proc/meminfo", &info)]);
        !judge_host(&super::CHECK, host, Context { workload }).findings.is_empty()
    }

    #[test]
    fn strict_and_full_or_redis() {
        assert!(fires("2", 490, None));
        assert!(!fires("2", 200, None), "PostgreSQL recommends strict mode");
        assert!(!fires("0", 900, None));
        assert!(fires("0", 100, Some(Workload::Redis)));
        assert!(!fires("1", 100, Some(Workload::Redis)));
    }
}
