//! A group is at its memory limit.

use zenkai_facts::{Facts, cgroup::MemoryGroup};

use super::shared;
use crate::{
    Check, Context, Evidence, Finding, Impact, Judgement, Outcome, Remedy, Subject, Subsystem, need,
};

/// See the explanation.
pub(super) static CHECK: Check = Check {
    id: "cgroup-memory-limit-near",
    subsystem: Subsystem::Cgroup,
    summary: "a control group is at its memory limit",
    impact: Impact::Moderate,
    effect: "the group reclaims its own memory, page cache first, and waits for it",
    risk: "more memory for this group is less for others",
    source: "https://docs.kernel.org/admin-guide/cgroup-v2.html",
    explanation: include_str!("cgroup_memory_limit_near.md"),
    run,
};

fn run(facts: &Facts, _context: Context) -> Judgement {
    need(&facts.cgroup.memory).map(|groups| Judgement::each(groups, |group| judge(group, facts))).into()
}

fn judge(group: &MemoryGroup, facts: &Facts) -> Result<Option<Finding>, Outcome> {
    let limits = [&group.high_bytes, &group.limit_bytes];
    let Some(limit) =
        limits.into_iter().filter(|limit| limit.get().is_some()).min_by_key(|limit| limit.value())
    else {
        return Ok(None);
    };
    let bytes = *need(limit)?;
    let current = *need(&group.current_bytes)?;
    let events = *need(&group.events)?;
    let met = events.high.saturating_add(events.max);
    if met == 0 || current < bytes / 10 * 9 {
        return Ok(None);
    }
    let reading = &facts.cgroup.memory_pressure;
    let stalled = reading.get().and_then(|pressure| pressure.some).map(|stall| stall.avg300_percent);
    let impact = match stalled {
        _ if events.oom_kill > 0 => Impact::Moderate,
        Some(percent) if percent >= 10.0 => Impact::Large,
        Some(percent) if percent >= 1.0 => Impact::Moderate,
        // At the limit without waiting: it is page cache that comes and goes.
        _ => Impact::Depends,
    };
    let mib = |bytes: u64| bytes >> 20;
    let finding = Finding::new(
        Subject::device(&group.path),
        format!("uses {} of {} MiB and has met its limit {met} times", mib(current), mib(bytes)),
    )
    .with(Evidence::of(&group.current_bytes).expected(format!("well below {bytes}")))
    .with(Evidence::of(limit))
    .with(shared::events(&group.events));
    let finding = match stalled {
        Some(percent) => {
            finding.with(Evidence::derived(reading.source(), format!("some avg300={percent:.2}")))
        }
        None => finding,
    };
    Ok(Some(
        finding
            .remedy(Remedy::Do(
                "raise the limit where it is set (MemoryMax= of the unit, --memory of the container, limits.memory \
                 of the pod), or let the program use less"
                    .to_owned(),
            ))
            .impact(impact)
            .because(format!("{} is at its memory limit", group.path)),
    ))
}

#[cfg(test)]
mod tests {
    use crate::checks::testing::findings;

    fn impact(current: &str, events: &str, pressure: &str) -> Option<crate::Impact> {
        let pressure = format!("some avg10=0.00 avg60=0.00 avg300={pressure} total=1\n");
        let files = [
            ("/proc/self/mountinfo", "30 23 0:26 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n"),
            ("/proc/self/cgroup", "0::/a\n"),
            ("/sys/fs/cgroup/a/memory.max", "1073741824\n"),
            ("/sys/fs/cgroup/a/memory.high", "max\n"),
            ("/sys/fs/cgroup/a/memory.current", current),
            ("/sys/fs/cgroup/a/memory.events", events),
            ("/sys/fs/cgroup/a/memory.pressure", &pressure),
        ];
        findings(&super::CHECK, &files).first().and_then(|finding| finding.impact)
    }

    #[test]
    fn only_at_the_limit_and_after_meeting_it() {
        let met = "low 0\nhigh 0\nmax 912\noom 0\noom_kill 0\n";
        assert_eq!(impact("1073000000\n", met, "22.00"), Some(crate::Impact::Large));
        assert_eq!(impact("1073000000\n", met, "0.00"), Some(crate::Impact::Depends));
        assert_eq!(impact("500000000\n", met, "0.00"), None);
        assert_eq!(impact("1073000000\n", "low 0\nhigh 0\nmax 0\noom 0\noom_kill 0\n", "0.00"), None);
    }
}
