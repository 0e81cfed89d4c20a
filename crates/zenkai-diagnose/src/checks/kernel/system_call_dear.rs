//! entering the kernel is expensive.

use zenkai_facts::Facts;

use crate::{
    Check, Context, Evidence, Finding, Impact, Judgement, Outcome, Remedy, Subject, Subsystem, need,
};

/// See the explanation.
pub(super) static CHECK: Check = Check {
    id: "system-call-dear",
    subsystem: Subsystem::Kernel,
    summary: "entering the kernel is expensive",
    impact: Impact::Depends,
    effect: "work that makes 100 000 system calls a second loses the extra time on each (measured here)",
    risk: "cheaper entries mean weaker isolation: newer CPUs are the way without a price",
    source: "https://www.brendangregg.com/blog/2018-02-09/kpti-kaiser-meltdown-performance.html",
    explanation: include_str!("system_call_dear.md"),
    run,
};

/// getppid costs 50 to 150 ns on CPUs that need no page-table switch, up to about 400 ns with the costliest software
/// mitigations (estimate from published KPTI measurements). More needs an explanation.
const DEAR_NS: f64 = 500.0;

fn run(facts: &Facts, _context: Context) -> Judgement {
    judge(facts).into()
}

fn judge(facts: &Facts) -> Result<Option<Finding>, Outcome> {
    let probe = need(&facts.probe)?;
    let Some(&call_ns) = probe.syscall_ns.value() else {
        return Err(Outcome::not_applicable("the cost of a system call could not be measured"));
    };
    if call_ns < DEAR_NS {
        return Ok(None);
    }
    Ok(Some(
        Finding::new(Subject::Machine, format!("the cheapest system call costs {call_ns:.0} ns"))
            .with(Evidence::derived("probe, getppid", format!("{call_ns:.1} ns")).expected(format!("below {DEAR_NS:.0}")))
            .remedy(Remedy::Do(
                "look for tracing or audit rules left on, a seccomp sandbox, and `zenkai facts vulnerabilities`".to_owned(),
            )),
    ))
}

#[cfg(test)]
mod tests {
    use zenkai_host::probe::Reading;

    use crate::checks::testing::{judge_probed, probe};

    #[test]
    fn only_what_mitigations_alone_do_not_explain() {
        let mut measured = probe(&[(3_000_000, 3_000_000)], 2_700_000);
        assert!(judge_probed(&super::CHECK, &[], &measured).findings.is_empty());
        measured.syscall_ns = Reading::Value(900.0);
        assert_eq!(judge_probed(&super::CHECK, &[], &measured).findings.len(), 1);
    }
}
