//! Swappiness too high for this work.

use zenkai_facts::Facts;
use zenkai_tune::Setting;

use crate::{
    Check, Context, Evidence, Finding, Impact, Judgement, Outcome, Remedy, Subject, Subsystem, Workload, need,
};

/// See the explanation.
pub(super) static CHECK: Check = Check {
    id: "memory-swappiness-high",
    subsystem: Subsystem::Memory,
    summary: "program memory is swapped out too readily for this work",
    impact: Impact::Small,
    effect: "pauses when swapped pages are needed again (no general number)",
    risk: "file caches are dropped earlier under pressure",
    source: "https://www.mongodb.com/docs/manual/administration/production-notes/",
    explanation: include_str!("memory_swappiness_high.md"),
    run,
};

/// The highest value for work whose pages must not leave memory, and what to set.
const LIMITS: [(Workload, u32, &str); 4] = [
    (Workload::Mongodb, 1, "1"),
    (Workload::Redis, 10, "1"),
    (Workload::Database, 10, "10"),
    (Workload::Hana, 10, "10"),
];

fn run(facts: &Facts, context: Context) -> Judgement {
    judge(facts, context).into()
}

fn judge(facts: &Facts, context: Context) -> Result<Option<Finding>, Outcome> {
    let Some((_, most, wanted)) = LIMITS.iter().find(|(workload, ..)| context.works_as(&[*workload])) else {
        return Err(Outcome::not_applicable("it depends on the work: name it with --workload"));
    };
    let devices = need(&facts.memory.swap.devices)?;
    if devices.is_empty() {
        return Err(Outcome::not_applicable("there is no swap"));
    }
    // Compressed memory is fast, and meant to be used.
    if devices.iter().all(|device| device.compressed_memory) {
        return Err(Outcome::not_applicable("swap is compressed memory"));
    }
    let reading = &facts.memory.settings.swappiness;
    let value = *need(reading)?;
    if value <= *most {
        return Ok(None);
    }
    Ok(Some(
        Finding::new(
            Subject::Machine,
            format!("at {value}, memory of the database goes to swap to keep file caches"),
        )
        .with(Evidence::of(reading).expected(format!("{most} or less")))
        .remedy(Remedy::Set(vec![Setting::sysctl("vm.swappiness", *wanted)])),
    ))
}

#[cfg(test)]
mod tests {
    use zenkai_host::FakeHost;

    use crate::{Context, Workload, checks::testing::judge_host};

    fn fires(device: &str, value: &str, workload: Option<Workload>) -> bool {
        let swaps = format!("Filename Type Size Used Priority\n{device}\n");
        let host = FakeHost::new(&[("/proc/swaps", &swaps), ("/proc/sys/vm/swappiness", value)]);
        !judge_host(&super::CHECK, host, Context { workload }).findings.is_empty()
    }

    #[test]
    fn only_for_work_that_asked() {
        let disk = "/dev/sda2 partition 1 0 -2";
        assert!(fires(disk, "60", Some(Workload::Mongodb)));
        assert!(!fires(disk, "60", None), "the default is right for most");
        assert!(!fires(disk, "10", Some(Workload::Database)));
        assert!(!fires("", "60", Some(Workload::Mongodb)));
        assert!(!fires("/dev/zram0 partition 1 0 100", "180", Some(Workload::Mongodb)));
    }
}
