//! Run time of BPF programs is measured all the time.

use zenkai_facts::Facts;
use zenkai_tune::Setting;

use crate::{
    Check, Context, Evidence, Finding, Impact, Judgement, Outcome, Remedy, Subject, Subsystem,
    need_or_not_applicable,
};

/// See the explanation.
pub(super) static CHECK: Check = Check {
    id: "kernel-bpf-stats-on",
    subsystem: Subsystem::Kernel,
    summary: "run time of BPF programs is measured all the time",
    impact: Impact::Small,
    effect: "two clock readings for each run of a BPF program, some tens of nanoseconds (estimate)",
    risk: "tools that show the run time of BPF programs show nothing",
    source: "https://docs.kernel.org/admin-guide/sysctl/kernel.html",
    explanation: include_str!("kernel_bpf_stats_on.md"),
    run,
};

fn run(facts: &Facts, _context: Context) -> Judgement {
    judge(facts).into()
}

fn judge(facts: &Facts) -> Result<Option<Finding>, Outcome> {
    let reading = &facts.kernel.tracing.bpf_statistics;
    if !*need_or_not_applicable(reading, "this kernel does not measure BPF programs")? {
        return Ok(None);
    }
    Ok(Some(
        Finding::new(Subject::Machine, "the kernel measures each run of each BPF program")
            .with(Evidence::of_switch(reading).expected("0"))
            .remedy(Remedy::Set(vec![Setting::sysctl("kernel.bpf_stats_enabled", "0")])),
    ))
}

#[cfg(test)]
mod tests {
    use crate::checks::testing::findings;

    #[test]
    fn on_and_off() {
        let fires = |value: &str| {
            !findings(&super::CHECK, &[("/proc/sys/kernel/bpf_stats_enabled", value)]).is_empty()
        };
        assert!(fires("1\n"));
        assert!(!fires("0\n"));
    }
}
