//! Tickless CPUs that do ordinary work.

use zenkai_facts::Facts;

use crate::{
    Check, Context, Evidence, Finding, Impact, Judgement, Outcome, Remedy, Subject, Subsystem, need,
    need_or_not_applicable,
};

/// See the explanation.
pub(super) static CHECK: Check = Check {
    id: "kernel-nohz-full-shared",
    subsystem: Subsystem::Kernel,
    summary: "CPUs without a tick are used for ordinary work",
    impact: Impact::Small,
    effect: "each entry to the kernel costs more on these CPUs, tens of nanoseconds (estimate)",
    risk: "work that was meant to be alone there is interrupted by the tick",
    source: "https://docs.kernel.org/timers/no_hz.html",
    explanation: include_str!("kernel_nohz_full_shared.md"),
    run,
};

fn run(facts: &Facts, _context: Context) -> Judgement {
    judge(facts).into()
}

fn judge(facts: &Facts) -> Result<Option<Finding>, Outcome> {
    let reading = &facts.kernel.scheduler.nohz_full;
    let tickless = need_or_not_applicable(reading, "this kernel has no tickless CPUs")?;
    let isolated = need(&facts.cpu.isolated)?;
    let online = need(&facts.cpu.online)?;
    let shared_with_all = tickless.intersection(online).difference(isolated);
    // The first process tells whether systemd keeps services away from these CPUs instead of the kernel.
    let kept_away = facts
        .cgroup
        .cpuset
        .init_allowed
        .get()
        .is_some_and(|allowed| allowed.intersection(&shared_with_all).is_empty());
    if shared_with_all.is_empty() || kept_away {
        return Ok(None);
    }
    Ok(Some(
        Finding::new(Subject::Cpus(shared_with_all), "run without a tick, yet take ordinary work")
            .with(Evidence::of(reading))
            .with(Evidence::of(&facts.cpu.isolated).expected(tickless))
            .remedy(Remedy::Do("take nohz_full= off the command line, or isolate these CPUs".to_owned())),
    ))
}

#[cfg(test)]
mod tests {
    use crate::checks::testing::findings;

    fn fires(tickless: &str, isolated: &str, init: &str) -> bool {
        let dir = "/sys/devices/system/cpu";
        let files = [
            (format!("{dir}/nohz_full"), tickless.to_owned()),
            (format!("{dir}/isolated"), isolated.to_owned()),
            (format!("{dir}/online"), "0-7\n".to_owned()),
            ("/proc/1/status".to_owned(), format!("Cpus_allowed_list:\t{init}\n")),
        ];
        !findings(&super::CHECK, &files).is_empty()
    }

    #[test]
    fn isolated_ones_are_as_they_should_be() {
        assert!(fires("2-7\n", "\n", "0-7"));
        assert!(!fires("2-7\n", "2-7\n", "0-1"));
        assert!(!fires("2-7\n", "\n", "0-1"));
        assert!(!fires("  (null)\n", "\n", "0-7"));
    }
}
