//! A group is stopped again and again because its CPU quota is used up.

use zenkai_facts::{Facts, Reason, cgroup::CpuGroup};

use super::shared;
use crate::{
    Check, Context, Evidence, Finding, Impact, Judgement, Outcome, Remedy, Subject, Subsystem, need,
};

/// See the explanation.
pub(super) static CHECK: Check = Check {
    id: "cgroup-cpu-throttled",
    subsystem: Subsystem::Cgroup,
    summary: "a control group is stopped because its CPU quota is used up",
    impact: Impact::Moderate,
    effect: "the group stands still until the next period, up to 100 ms each time (measured by the kernel)",
    risk: "a higher quota takes CPU time from others",
    source: "https://docs.kernel.org/scheduler/sched-bwc.html",
    explanation: include_str!("cgroup_cpu_throttled.md"),
    run,
};

/// Fewer periods than this say nothing; at the usual 100 ms they are ten seconds of work.
const PERIODS: u64 = 100;

fn run(facts: &Facts, _context: Context) -> Judgement {
    need(&facts.cgroup.cpu).map(|own| judge_all(facts, own)).into()
}

fn judge_all(facts: &Facts, own: &[CpuGroup]) -> Judgement {
    let is_own = |group: &CpuGroup| own.iter().any(|one| one.path == group.path);
    let services = facts.cgroup.limited_services.get().into_iter().flatten().filter(|group| !is_own(group));
    let groups = own.iter().map(|group| (group, true)).chain(services.map(|group| (group, false)));
    // A group without a quota is never stopped.
    let limited = groups.filter(|(group, _)| {
        !matches!(group.quota.reason(), Some(Reason::NotApplicable(_) | Reason::Absent))
    });
    Judgement::each(limited, |(group, ours)| judge(group, ours))
}

fn judge(group: &CpuGroup, ours: bool) -> Result<Option<Finding>, Outcome> {
    let quota = *need(&group.quota)?;
    let throttling = *need(&group.throttling)?;
    let share = throttling.throttled_periods.saturating_mul(100) / throttling.periods.max(1);
    if throttling.periods < PERIODS || share < 5 {
        return Ok(None);
    }
    let impact = match (share >= 25, ours) {
        (true, true) => Impact::Large,
        (true, false) | (false, true) => Impact::Moderate,
        (false, false) => Impact::Small,
    };
    let mean_ms = throttling.throttled_us / throttling.throttled_periods.max(1) / 1000;
    Ok(Some(
        Finding::new(
            Subject::device(&group.path),
            format!(
                "was stopped in {share} % of its periods, {mean_ms} ms each, by a quota of {:.2} CPUs",
                quota.cpus()
            ),
        )
        .with(Evidence::of(&group.throttling).expected("nr_throttled below 5 % of nr_periods"))
        .with(shared::quota(&group.quota))
        .remedy(Remedy::Do(
            "raise or remove the quota where it is set (CPUQuota= of the unit, --cpus of the container, \
             limits.cpu of the pod), or let the program use fewer threads"
                .to_owned(),
        ))
        .impact(impact)
        .because(format!("a CPU quota stops {} in {share} % of its periods", group.path)),
    ))
}

#[cfg(test)]
mod tests {
    use crate::checks::testing::findings;

    fn impact(max: &str, stat: &str) -> Option<crate::Impact> {
        let files = [
            ("/proc/self/mountinfo", "30 23 0:26 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n"),
            ("/proc/self/cgroup", "0::/a\n"),
            ("/sys/fs/cgroup/a/cpu.max", max),
            ("/sys/fs/cgroup/a/cpu.stat", stat),
        ];
        findings(&super::CHECK, &files).first().and_then(|finding| finding.impact)
    }

    #[test]
    fn only_a_quota_that_bites() {
        let stat =
            |throttled: u64| format!("nr_periods 1000\nnr_throttled {throttled}\nthrottled_usec 9000000\n");
        assert_eq!(impact("150000 100000\n", &stat(400)), Some(crate::Impact::Large));
        assert_eq!(impact("150000 100000\n", &stat(80)), Some(crate::Impact::Moderate));
        assert_eq!(impact("150000 100000\n", &stat(10)), None);
        assert_eq!(impact("max 100000\n", &stat(400)), None);
        assert_eq!(impact("150000 100000\n", "nr_periods 5\nnr_throttled 5\nthrottled_usec 9\n"), None);
    }

    #[test]
    fn services_are_judged_too() {
        let files = [
            ("/proc/self/mountinfo", "30 23 0:26 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n"),
            ("/proc/self/cgroup", "0::/\n"),
            ("/sys/fs/cgroup/system.slice/db.service/cpu.max", "20000 100000\n"),
            (
                "/sys/fs/cgroup/system.slice/db.service/cpu.stat",
                "nr_periods 1000\nnr_throttled 900\nthrottled_usec 9\n",
            ),
        ];
        let found = findings(&super::CHECK, &files);
        assert_eq!(found[0].subject.to_string(), "/system.slice/db.service");
    }
}
