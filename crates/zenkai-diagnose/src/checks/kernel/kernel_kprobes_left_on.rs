//! Kernel probes that trap on each pass.

use zenkai_facts::Facts;

use crate::{
    Check, Context, Evidence, Finding, Impact, Judgement, Outcome, Remedy, Subject, Subsystem,
    need_or_not_applicable,
};

/// See the explanation.
pub(super) static CHECK: Check = Check {
    id: "kernel-kprobes-left-on",
    subsystem: Subsystem::Kernel,
    summary: "kernel probes trap on each pass",
    impact: Impact::Depends,
    effect: "half a microsecond to one each time a probed function runs (kernel documentation, hardware of 2005)",
    risk: "the tool behind the probes goes blind",
    source: "https://docs.kernel.org/trace/kprobes.html",
    explanation: include_str!("kernel_kprobes_left_on.md"),
    run,
};

fn run(facts: &Facts, _context: Context) -> Judgement {
    judge(facts).into()
}

fn judge(facts: &Facts) -> Result<Option<Finding>, Outcome> {
    let reading = &facts.kernel.tracing.kprobes;
    let probes = need_or_not_applicable(reading, "debugfs is not mounted, or the kernel has no probes")?;
    if probes.by_breakpoint == 0 {
        return Ok(None);
    }
    let shown = reading.clone().map(|probes| format!("{} by breakpoint", probes.by_breakpoint));
    Ok(Some(
        Finding::new(Subject::Machine, format!("{} kernel probes trap on each pass", probes.by_breakpoint))
            .with(Evidence::of(&shown).expected("none, or only [OPTIMIZED] and [FTRACE]"))
            .remedy(Remedy::Do(
                "find the agent that set them, and end it or have it use fentry or tracepoints".into(),
            )),
    ))
}

#[cfg(test)]
mod tests {
    use crate::checks::testing::findings;

    #[test]
    fn cheap_probes_are_silent() {
        let fires =
            |list: &str| !findings(&super::CHECK, &[("/sys/kernel/debug/kprobes/list", list)]).is_empty();
        assert!(fires("ffff0 k tcp_sendmsg+0x0\n"));
        assert!(!fires(
            "ffff0 k tcp_sendmsg+0x0 [FTRACE]\nffff1 k x+0x4 [OPTIMIZED]\nffff2 r y+0x0 [DISABLED]\n"
        ));
        assert!(!fires(""));
    }
}
