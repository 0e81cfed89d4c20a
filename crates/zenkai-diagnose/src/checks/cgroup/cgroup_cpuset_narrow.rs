//! We may run on fewer CPUs than are online.

use zenkai_facts::Facts;

use crate::{
    Check, Context, Evidence, Finding, Impact, Judgement, Outcome, Remedy, Subject, Subsystem, need,
};

/// See the explanation.
pub(super) static CHECK: Check = Check {
    id: "cgroup-cpuset-narrow",
    subsystem: Subsystem::Cgroup,
    summary: "our control group or affinity leaves out CPUs",
    impact: Impact::Depends,
    effect: "the share of the CPUs that is left out",
    risk: "work that was kept apart on purpose gets company",
    source: "https://docs.kernel.org/admin-guide/cgroup-v2.html",
    explanation: include_str!("cgroup_cpuset_narrow.md"),
    run,
};

fn run(facts: &Facts, _context: Context) -> Judgement {
    judge(facts).into()
}

fn judge(facts: &Facts) -> Result<Option<Finding>, Outcome> {
    let set = &facts.cgroup.cpuset;
    let allowed = need(&set.allowed)?;
    let online = need(&facts.cpu.online)?;
    let ordinary = match facts.cpu.isolated.get() {
        Some(isolated) => online.difference(isolated),
        None => online.clone(),
    };
    let missing = ordinary.difference(allowed);
    // What holds for the first process holds for the machine, and is judged there.
    let also_init = set.init_allowed.get().is_some_and(|init| missing.intersection(init).is_empty());
    let by_group = set.effective.get().is_some_and(|effective| missing.intersection(effective).is_empty());
    if missing.is_empty() || (also_init && !by_group) {
        return Ok(None);
    }
    let (who, reading) =
        if by_group { ("the control group", &set.effective) } else { ("the affinity", &set.allowed) };
    Ok(Some(
        Finding::new(
            Subject::Machine,
            format!("{who} leaves us {} of {} CPUs", ordinary.len() - missing.len(), ordinary.len()),
        )
        .with(Evidence::of(reading).expected(&ordinary))
        .with(Evidence::of(&facts.cpu.online))
        .remedy(Remedy::Do(
            "widen the set where it is set (AllowedCPUs= of the unit, --cpuset-cpus of the container), or start \
             without taskset"
                .to_owned(),
        )),
    ))
}

#[cfg(test)]
mod tests {
    use crate::checks::testing::findings;

    fn fires(own: &str, init: &str, effective: &str) -> bool {
        let files = [
            ("/proc/self/status".to_owned(), format!("Cpus_allowed_list:\t{own}\n")),
            ("/proc/1/status".to_owned(), format!("Cpus_allowed_list:\t{init}\n")),
            (
                "/proc/self/mountinfo".to_owned(),
                "30 23 0:26 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n".to_owned(),
            ),
            ("/proc/self/cgroup".to_owned(), "0::/a\n".to_owned()),
            ("/sys/fs/cgroup/a/cpuset.cpus.effective".to_owned(), format!("{effective}\n")),
            ("/sys/devices/system/cpu/online".to_owned(), "0-7\n".to_owned()),
        ];
        !findings(&super::CHECK, &files).is_empty()
    }

    #[test]
    fn by_group_or_by_affinity() {
        assert!(fires("0-3", "0-7", "0-3"));
        assert!(fires("0-3", "0-7", "0-7"));
        assert!(!fires("0-63", "0-63", "0-7"));
        // That is a matter of the first process, which has its own check.
        assert!(!fires("0-3", "0-3", "0-7"));
    }
}
