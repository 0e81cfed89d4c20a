//! Transparent huge pages for work they disturb.

use zenkai_facts::Facts;
use zenkai_tune::Setting;

use crate::{
    Check, Context, Evidence, Finding, Impact, Judgement, Outcome, Remedy, Subject, Subsystem, Workload,
    need_or_not_applicable,
};

/// See the explanation.
pub(super) static CHECK: Check = Check {
    id: "memory-thp-always",
    subsystem: Subsystem::Memory,
    summary: "transparent huge pages for everything disturb this work",
    impact: Impact::Depends,
    effect: "latency peaks and memory growth after a fork, as Redis documents; no general number",
    risk: "work that profits without asking for huge pages loses them",
    source: "https://redis.io/docs/latest/operate/oss_and_stack/management/optimization/latency/",
    explanation: include_str!("memory_thp_always.md"),
    run,
};

fn run(facts: &Facts, context: Context) -> Judgement {
    judge(facts, context).into()
}

fn judge(facts: &Facts, context: Context) -> Result<Option<Finding>, Outcome> {
    let (what, wanted, impact) = match context.workload {
        Some(Workload::Redis) => {
            ("a fork makes Redis copy huge pages for every small write", "never", Impact::Moderate)
        }
        Some(Workload::Hana) => {
            ("SAP asks for huge pages only where the database requests them", "madvise", Impact::Small)
        }
        Some(Workload::Mongodb) => {
            ("right for MongoDB 8.0 and later, but wrong for the versions before", "never", Impact::Depends)
        }
        _ => return Err(Outcome::not_applicable("it depends on the work: name it with --workload")),
    };
    let reading = &facts.memory.transparent_huge_pages.enabled;
    let choice = need_or_not_applicable(reading, "this kernel has no transparent huge pages")?;
    if choice.current != "always" {
        return Ok(None);
    }
    let remedy = if impact == Impact::Depends {
        Remedy::Do("set `never` for MongoDB before 8.0; keep `always` from 8.0 on".to_owned())
    } else {
        Remedy::Set(vec![Setting::attribute(reading.source(), wanted)])
    };
    Ok(Some(
        Finding::new(Subject::Machine, what)
            .with(Evidence::derived(reading.source(), &choice.current).expected(wanted))
            .impact(impact)
            .remedy(remedy),
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
        assert!(fires("[always] madvise never\n", Some(Workload::Redis)));
        assert!(!fires("[always] madvise never\n", None));
        assert!(!fires("[always] madvise never\n", Some(Workload::Hpc)));
        assert!(
            !fires("always [madvise] never\n", Some(Workload::Redis)),
            "Redis does not ask for huge pages"
        );
    }
}
