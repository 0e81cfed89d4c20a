//! Sandboxed programs lose speculation under kernels before 5.16.

use zenkai_facts::Facts;

use crate::{
    Check, Context, Evidence, Finding, Impact, Judgement, Outcome, Remedy, Subject, Subsystem, need,
};

/// See the explanation.
pub(super) static CHECK: Check = Check {
    id: "mitigations-seccomp-ssbd-old-kernel",
    subsystem: Subsystem::Kernel,
    summary: "sandboxed programs run without store bypass",
    impact: Impact::Depends,
    effect: "a few per cent up to a third for programs in a sandbox, by how they use memory (estimate)",
    risk: "one sandboxed program might read memory of its own process that it should not",
    source: "https://docs.kernel.org/admin-guide/kernel-parameters.html",
    explanation: include_str!("mitigations_seccomp_ssbd_old_kernel.md"),
    run,
};

fn run(facts: &Facts, _context: Context) -> Judgement {
    judge(facts).into()
}

fn judge(facts: &Facts) -> Result<Option<Finding>, Outcome> {
    need(&facts.vulnerabilities.entries)?;
    let none = || Outcome::not_applicable("this kernel does not know of speculative store bypass");
    let reading = facts.vulnerabilities.reading("spec_store_bypass").ok_or_else(none)?;
    if !need(reading)?.text.contains("seccomp") {
        return Ok(None);
    }
    let own = &facts.vulnerabilities.own_store_bypass;
    // The setting alone is the default of many long-lived kernels; it counts where it is seen to act.
    if !*need(&facts.vulnerabilities.own_seccomp_filter)? || need(own)? != "thread force mitigated" {
        return Ok(None);
    }
    Ok(Some(
        Finding::new(
            Subject::Machine,
            "programs under a seccomp filter, such as those in this container, run without store bypass",
        )
        .with(Evidence::of(reading))
        .with(Evidence::of(own).expected("thread vulnerable"))
        .remedy(Remedy::Do(
            "a kernel of 5.16 or later leaves the choice to each program; older ones do with \
                 spec_store_bypass_disable=prctl, which gives up this protection for programs that do not ask"
                .to_owned(),
        )),
    ))
}

#[cfg(test)]
mod tests {
    use crate::checks::testing::findings;

    fn fires(bypass: &str, status: &str) -> bool {
        let files = [
            ("/sys/devices/system/cpu/vulnerabilities/spec_store_bypass", bypass),
            ("/proc/self/status", status),
        ];
        !findings(&super::CHECK, &files).is_empty()
    }

    #[test]
    fn only_where_it_acts() {
        let old = "Mitigation: Speculative Store Bypass disabled via prctl and seccomp\n";
        let new = "Mitigation: Speculative Store Bypass disabled via prctl\n";
        let filtered = "Seccomp:\t2\nSpeculation_Store_Bypass:\tthread force mitigated\n";
        let free = "Seccomp:\t0\nSpeculation_Store_Bypass:\tthread vulnerable\n";
        assert!(fires(old, filtered));
        assert!(!fires(old, free));
        assert!(!fires(new, filtered));
    }
}
