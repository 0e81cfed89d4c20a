//! Programs that lock across cache lines are slowed down on purpose.

use zenkai_facts::Facts;

use crate::{
    Check, Context, Evidence, Finding, Impact, Judgement, Outcome, Remedy, Subject, Subsystem, Workload,
    need, need_or_not_applicable,
};

/// See the explanation.
pub(super) static CHECK: Check = Check {
    id: "kernel-split-lock-mitigation",
    subsystem: Subsystem::Kernel,
    summary: "programs that lock across cache lines are slowed down on purpose",
    impact: Impact::Depends,
    effect: "severe for the few programs that do it (Couchbase names its own servers), nothing for others",
    risk: "one program can slow down memory for all others",
    source: "https://docs.couchbase.com/server/current/install/install-splitlock-mitigation.html",
    explanation: include_str!("kernel_split_lock_mitigation.md"),
    run,
};

fn run(facts: &Facts, context: Context) -> Judgement {
    judge(facts, context).into()
}

fn judge(facts: &Facts, context: Context) -> Result<Option<Finding>, Outcome> {
    if !context.works_as(&[Workload::Database]) {
        return Err(Outcome::not_applicable("it depends on the work; name it with --workload"));
    }
    let reading = &facts.kernel.split_lock_mitigate;
    let on = *need_or_not_applicable(reading, "this kernel does not delay split locks")?;
    let off =
        facts.kernel.command_line.get().is_some_and(|line| line.value("split_lock_detect") == Some("off"));
    // Without the CPU's help the kernel does not notice them, and the setting is without effect.
    let noticed = *need(&facts.vulnerabilities.split_lock_detection)?;
    if !on || off || !noticed {
        return Ok(None);
    }
    Ok(Some(
        Finding::new(Subject::Machine, "programs that lock across cache lines are made to wait")
            .with(Evidence::of_switch(reading))
            .remedy(Remedy::Do(
                "look for `split_lock trap` in the kernel log; if a program is named there, update it, or set \
                 kernel.split_lock_mitigate=0 and accept that it may slow down the others"
                    .to_owned(),
            )),
    ))
}

#[cfg(test)]
mod tests {
    use zenkai_host::FakeHost;

    use crate::{Context, Workload, checks::testing::judge_host};

    const ABLE: &str = "cpu:type:x86,ven0000fam0006mod006A:feature:,0000,0166\n";

    fn fires(value: &str, line: &str, features: &str, workload: Option<Workload>) -> bool {
        let host = FakeHost::new(&[
            ("/proc/sys/kernel/split_lock_mitigate", value),
            ("/proc/cmdline", line),
            ("/sys/devices/system/cpu/modalias", features),
        ]);
        !judge_host(&super::CHECK, host, Context { workload }).findings.is_empty()
    }

    #[test]
    fn neutral_unless_a_database_is_named() {
        assert!(!fires("1\n", "ro", ABLE, None));
        assert!(fires("1\n", "ro", ABLE, Some(Workload::Database)));
        assert!(!fires("0\n", "ro", ABLE, Some(Workload::Database)));
        let unable = "cpu:type:x86,ven0000fam0006mod006A:feature:,0000\n";
        assert!(!fires("1\n", "ro", unable, Some(Workload::Database)));
        assert!(!fires("1\n", "split_lock_detect=off", ABLE, Some(Workload::Database)));
    }
}
