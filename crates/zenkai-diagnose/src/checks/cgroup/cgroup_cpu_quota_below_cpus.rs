//! We may use less CPU time than there are CPUs.

use zenkai_facts::Facts;

use super::shared;
use crate::{Check, Context, Finding, Impact, Judgement, Outcome, Remedy, Subject, Subsystem, need};

/// See the explanation.
pub(super) static CHECK: Check = Check {
    id: "cgroup-cpu-quota-below-cpus",
    subsystem: Subsystem::Cgroup,
    summary: "our control group may use less CPU time than there are CPUs",
    impact: Impact::Depends,
    effect: "at most the quota's number of CPUs work for this group at a time",
    risk: "a higher quota takes CPU time from others",
    source: "https://docs.kernel.org/scheduler/sched-bwc.html",
    explanation: include_str!("cgroup_cpu_quota_below_cpus.md"),
    run,
};

fn run(facts: &Facts, _context: Context) -> Judgement {
    judge(facts).into()
}

fn judge(facts: &Facts) -> Result<Option<Finding>, Outcome> {
    need(&facts.cgroup.cpu)?;
    let Some((group, quota)) = facts.cgroup.tightest_cpu() else { return Ok(None) };
    let cpus = match facts.cgroup.cpuset.allowed.get() {
        Some(allowed) => need(&facts.cpu.online)?.intersection(allowed).len(),
        None => need(&facts.cpu.online)?.len(),
    };
    let quota_us = quota.quota_us / u64::try_from(cpus).unwrap_or(u64::MAX).max(1);
    if cpus == 0 || quota_us >= quota.period_us {
        return Ok(None);
    }
    Ok(Some(
        Finding::new(
            Subject::device(&group.path),
            format!("may use the time of {:.2} CPUs, while {cpus} are visible", quota.cpus()),
        )
        .with(shared::quota(&group.quota).expected(format!(
            "no limit, or {} of {}",
            quota.period_us.saturating_mul(cpus as u64),
            quota.period_us
        )))
        .remedy(Remedy::Do(
            "if that is the size that was ordered, tell the program; otherwise raise the quota".to_owned(),
        ))
        .because(format!("a quota leaves it the time of {:.2} of {cpus} CPUs", quota.cpus())),
    ))
}

#[cfg(test)]
mod tests {
    use crate::checks::testing::findings;

    fn fires(max: &str) -> bool {
        let files = [
            ("/proc/self/mountinfo", "30 23 0:26 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n"),
            ("/proc/self/cgroup", "0::/a/b\n"),
            ("/sys/fs/cgroup/a/cpu.max", max),
            ("/sys/fs/cgroup/a/b/cpu.max", "max 100000\n"),
            ("/proc/self/status", "Cpus_allowed_list:\t0-63\n"),
            ("/sys/devices/system/cpu/online", "0-3\n"),
        ];
        !findings(&super::CHECK, &files).is_empty()
    }

    #[test]
    fn a_quota_above_us_counts() {
        assert!(fires("150000 100000\n"));
        assert!(!fires("400000 100000\n"));
        assert!(!fires("max 100000\n"));
    }
}
