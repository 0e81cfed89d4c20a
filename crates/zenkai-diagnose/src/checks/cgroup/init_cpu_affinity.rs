//! The first process may not use all CPUs, and so no service may.

use zenkai_facts::Facts;

use crate::{
    Check, Context, Evidence, Finding, Impact, Judgement, Outcome, Remedy, Subject, Subsystem, need,
};

/// See the explanation.
pub(super) static CHECK: Check = Check {
    id: "init-cpu-affinity",
    subsystem: Subsystem::Cgroup,
    summary: "services are kept off some CPUs",
    impact: Impact::Large,
    effect: "the share of the CPUs that is left out",
    risk: "work that was kept apart on purpose gets company",
    source: "https://man7.org/linux/man-pages/man5/systemd-system.conf.5.html",
    explanation: include_str!("init_cpu_affinity.md"),
    run,
};

fn run(facts: &Facts, _context: Context) -> Judgement {
    judge(facts).into()
}

fn judge(facts: &Facts) -> Result<Option<Finding>, Outcome> {
    // There the first process is the container's own, and whoever started it chose its CPUs.
    if facts.virtualisation.is_container() == Some(true) {
        return Err(Outcome::not_applicable("the first process here is a container's"));
    }
    let allowed = need(&facts.cgroup.cpuset.init_allowed)?;
    let online = need(&facts.cpu.online)?;
    let mut expected = match facts.cpu.isolated.get() {
        Some(isolated) => online.difference(isolated),
        None => online.clone(),
    };
    if let Some(effective) = facts.cgroup.cpuset.effective.get().filter(|set| !set.is_empty()) {
        expected = expected.intersection(effective);
    }
    let missing = expected.difference(allowed);
    if missing.is_empty() {
        return Ok(None);
    }
    let what = format!("no service runs on {} of {} CPUs ({missing})", missing.len(), online.len());
    let impact = if missing.len() * 4 >= online.len() { Impact::Large } else { Impact::Moderate };
    Ok(Some(
        Finding::new(Subject::Machine, what)
            .with(Evidence::of(&facts.cgroup.cpuset.init_allowed).expected(&expected))
            .with(Evidence::of(&facts.cpu.online))
            .remedy(Remedy::Do(
                "take CPUAffinity= out of /etc/systemd/system.conf, or systemd.cpu_affinity= off the kernel \
                 command line, and reboot"
                    .to_owned(),
            ))
            .impact(impact)
            .because(format!("services are kept off CPUs {missing}")),
    ))
}

#[cfg(test)]
mod tests {
    use crate::checks::testing::findings;

    fn fires(init: &str, online: &str, isolated: &str) -> bool {
        let dir = "/sys/devices/system/cpu";
        let files = [
            ("/proc/1/status".to_owned(), format!("Cpus_allowed_list:\t{init}\n")),
            (format!("{dir}/online"), format!("{online}\n")),
            (format!("{dir}/isolated"), format!("{isolated}\n")),
        ];
        !findings(&super::CHECK, &files).is_empty()
    }

    #[test]
    fn isolation_by_the_kernel_is_another_matter() {
        assert!(fires("0-3", "0-7", ""));
        assert!(!fires("0-7", "0-7", ""));
        assert!(!fires("0-3", "0-7", "4-7"));
        // The list may name CPUs that are not there.
        assert!(!fires("0-127", "0-7", ""));
    }

    #[test]
    fn a_container_has_another_first_process() {
        let files = [
            ("/proc/1/status", "Cpus_allowed_list:\t0-3\n"),
            ("/sys/devices/system/cpu/online", "0-7\n"),
            ("/sys/devices/system/cpu/isolated", "\n"),
            ("/run/.containerenv", ""),
        ];
        assert!(findings(&super::CHECK, &files).is_empty());
    }
}
