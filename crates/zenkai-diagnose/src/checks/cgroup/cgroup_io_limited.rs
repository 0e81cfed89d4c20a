//! A limit on disk traffic holds for us.

use zenkai_facts::{Facts, cgroup::IoGroup};

use crate::{
    Check, Context, Evidence, Finding, Impact, Judgement, Outcome, Remedy, Subject, Subsystem, need,
};

/// See the explanation.
pub(super) static CHECK: Check = Check {
    id: "cgroup-io-limited",
    subsystem: Subsystem::Cgroup,
    summary: "a limit on disk traffic holds for our control group",
    impact: Impact::Depends,
    effect: "disk traffic is held at the limit that is shown",
    risk: "higher limits take disk time from others",
    source: "https://docs.kernel.org/admin-guide/cgroup-v2.html",
    explanation: include_str!("cgroup_io_limited.md"),
    run,
};

fn run(facts: &Facts, _context: Context) -> Judgement {
    need(&facts.cgroup.io).map(|groups| Judgement::each(groups, judge)).into()
}

fn judge(group: &IoGroup) -> Result<Option<Finding>, Outcome> {
    // The root, and groups that the controller was not handed down to, have no such file.
    if group.limits.is_absent() {
        return Ok(None);
    }
    let limits = need(&group.limits)?;
    if limits.is_empty() {
        return Ok(None);
    }
    let shown = limits.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ");
    Ok(Some(
        Finding::new(Subject::device(&group.path), format!("disk traffic is limited: {shown}"))
            .with(Evidence::derived(group.limits.source(), shown).expected("no limit"))
            .remedy(Remedy::Do(
                "raise the limit where it is set (IOReadBandwidthMax= and the like of the unit, \
                 --device-write-bps of the container)"
                    .to_owned(),
            ))
            .because(format!("{} has a limit on disk traffic", group.path)),
    ))
}

#[cfg(test)]
mod tests {
    use crate::checks::testing::findings;

    #[test]
    fn only_with_a_limit() {
        let fires = |limit: &str| {
            let files = [
                ("/proc/self/mountinfo", "30 23 0:26 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n"),
                ("/proc/self/cgroup", "0::/a\n"),
                ("/sys/fs/cgroup/a/io.max", limit),
            ];
            !findings(&super::CHECK, &files).is_empty()
        };
        assert!(fires("8:0 rbps=1048576 wbps=max riops=max wiops=max\n"));
        assert!(!fires("\n"));
    }
}
