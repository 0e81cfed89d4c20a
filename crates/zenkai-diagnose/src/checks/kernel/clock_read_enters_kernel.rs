//! reading the clock enters the kernel every time.

use zenkai_facts::Facts;

use crate::checks::shared::in_guest;
use crate::{
    Check, Context, Evidence, Finding, Impact, Judgement, Outcome, Remedy, Subject, Subsystem, need,
};

/// See the explanation.
pub(super) static CHECK: Check = Check {
    id: "clock-read-enters-kernel",
    subsystem: Subsystem::Kernel,
    summary: "reading the clock enters the kernel every time",
    impact: Impact::Moderate,
    effect: "5 times slower clock reads and 30 % more CPU time in one published case",
    risk: "a wrong choice of clock source can let time drift",
    source: "https://www.brendangregg.com/blog/2021-09-26/the-speed-of-time.html",
    explanation: include_str!("clock_read_enters_kernel.md"),
    run,
};

/// A read through the vDSO costs a few tens of ns; one that enters the kernel costs at least a system call.
const SHARE_OF_SYSTEM_CALL: f64 = 0.8;

fn run(facts: &Facts, _context: Context) -> Judgement {
    judge(facts).into()
}

fn judge(facts: &Facts) -> Result<Option<Finding>, Outcome> {
    let probe = need(&facts.probe)?;
    let (Some(&read_ns), Some(&call_ns)) = (probe.clock_gettime_ns.value(), probe.syscall_ns.value()) else {
        return Err(Outcome::not_applicable("the cost of a clock read could not be measured"));
    };
    if read_ns < call_ns * SHARE_OF_SYSTEM_CALL {
        return Ok(None);
    }
    let remedy = if in_guest(facts) {
        Remedy::Hypervisor(
            "offer the guest a clock it can read by itself: a stable TSC, kvm-clock or the Hyper-V page"
                .to_owned(),
        )
    } else {
        Remedy::Do(
            "make the kernel use the tsc clock source; `dmesg | grep -i tsc` says why it does not".to_owned(),
        )
    };
    Ok(Some(
        Finding::new(
            Subject::Machine,
            format!("one read of the clock costs {read_ns:.0} ns, a system call {call_ns:.0} ns"),
        )
        .with(
            Evidence::derived("probe, clock_gettime", format!("{read_ns:.1} ns"))
                .expected("a few tens of ns"),
        )
        .with(Evidence::derived("probe, getppid", format!("{call_ns:.1} ns")))
        .remedy(remedy),
    ))
}

#[cfg(test)]
mod tests {
    use zenkai_host::probe::Reading;

    use crate::checks::testing::{judge_probed, probe};

    #[test]
    fn a_read_as_dear_as_a_system_call() {
        let mut measured = probe(&[(3_000_000, 3_000_000)], 2_700_000);
        assert!(judge_probed(&super::CHECK, &[], &measured).findings.is_empty());
        measured.clock_gettime_ns = Reading::Value(250.0);
        assert_eq!(judge_probed(&super::CHECK, &[], &measured).findings.len(), 1);
        measured.clock_gettime_ns = Reading::Absent("no".into());
        assert!(judge_probed(&super::CHECK, &[], &measured).not_applicable.is_some());
    }
}
