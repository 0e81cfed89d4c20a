//! Dirty limits that let gigabytes pile up.

use zenkai_facts::Facts;
use zenkai_tune::Setting;

use crate::{
    Check, Context, Evidence, Finding, Impact, Judgement, Outcome, Remedy, Subject, Subsystem, Workload, need,
};

/// See the explanation.
pub(super) static CHECK: Check = Check {
    id: "memory-dirty-limits-large",
    subsystem: Subsystem::Memory,
    summary: "the limit for unwritten data is gigabytes",
    impact: Impact::Depends,
    effect: "stalls while the pile is written; SUSE support reports complete relief, above all for writes over NFS, with a limit of 600 MB",
    risk: "throughput of short bursts of writing falls to that of the disks earlier",
    source: "https://www.suse.com/support/kb/doc/?id=000017857",
    explanation: include_str!("memory_dirty_limits_large.md"),
    run,
};

/// From here on for every machine, in kB: the default of 20 % reaches it at about 320 GiB of memory.
const FOR_ALL_KB: u64 = 64 << 20;
/// From here on for work that waits for its writes to be safe.
const FOR_SYNCHRONOUS_KB: u64 = 8 << 20;
/// Work that calls fsync all the time, and stalls with everybody else's write-back.
const SYNCHRONOUS: [Workload; 5] =
    [Workload::Database, Workload::Mongodb, Workload::Hana, Workload::Redis, Workload::Latency];

fn run(facts: &Facts, context: Context) -> Judgement {
    judge(facts, context).into()
}

fn judge(facts: &Facts, context: Context) -> Result<Option<Finding>, Outcome> {
    let settings = &facts.memory.settings;
    let bytes = *need(&settings.dirty_bytes)?;
    let info = need(&facts.memory.info)?;
    let base_kb = info.available_kb.unwrap_or(info.total_kb);
    let (limit_kb, evidence) = if bytes > 0 {
        (bytes / 1024, Evidence::of(&settings.dirty_bytes))
    } else {
        let ratio = u64::from(*need(&settings.dirty_ratio)?);
        (base_kb.saturating_mul(ratio) / 100, Evidence::of(&settings.dirty_ratio))
    };
    let synchronous = context.works_as(&SYNCHRONOUS);
    if limit_kb < if synchronous { FOR_SYNCHRONOUS_KB } else { FOR_ALL_KB } {
        return Ok(None);
    }
    let remedy = Remedy::Set(vec![
        Setting::sysctl("vm.dirty_bytes", "629145600"),
        Setting::sysctl("vm.dirty_background_bytes", "314572800"),
    ]);
    Ok(Some(
        Finding::new(Subject::Machine, format!("up to {} GiB may wait to be written", limit_kb >> 20))
            .with(evidence.expected("a limit the disks can write in seconds"))
            .with(Evidence::derived(facts.memory.info.source(), format!("{} GiB available", base_kb >> 20)))
            .impact(if synchronous { Impact::Moderate } else { Impact::Depends })
            .remedy(remedy),
    ))
}

#[cfg(test)]
mod tests {
    use zenkai_host::FakeHost;

    use crate::{Context, Workload, checks::testing::judge_host};

    fn fires(gib: u64, bytes: &str, workload: Option<Workload>) -> bool {
        let kb = gib << 20;
        let host = FakeHost::new(&[
            ("/proc/meminfo", &format!("MemTotal: {kb} kB\nMemFree: 1 kB\nMemAvailable: {kb} kB\n")),
            ("/proc/sys/vm/dirty_bytes", bytes),
            ("/proc/sys/vm/dirty_ratio", "20\n"),
        ]);
        !judge_host(&super::CHECK, host, Context { workload }).findings.is_empty()
    }

    #[test]
    fn by_size_and_by_work() {
        assert!(fires(1024, "0", None));
        assert!(!fires(128, "0", None), "the default on a common server");
        assert!(fires(128, "0", Some(Workload::Database)));
        assert!(!fires(1024, "629145600", Some(Workload::Database)));
    }
}
