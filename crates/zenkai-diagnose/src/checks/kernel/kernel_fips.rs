//! FIPS mode.

use zenkai_facts::Facts;

use crate::{
    Check, Context, Evidence, Finding, Impact, Judgement, Outcome, Remedy, Subject, Subsystem,
    need_or_not_applicable,
};

/// See the explanation.
pub(super) static CHECK: Check = Check {
    id: "kernel-fips",
    subsystem: Subsystem::Kernel,
    summary: "FIPS mode restricts cryptography",
    impact: Impact::Depends,
    effect: "none for AES, more for programs that use ChaCha20 or fast hashes elsewhere, and longer starts by self-tests (estimate)",
    risk: "certification requires the mode",
    source: "https://docs.redhat.com/en/documentation/red_hat_enterprise_linux/9/html/security_hardening/switching-rhel-to-fips-mode_security-hardening",
    explanation: include_str!("kernel_fips.md"),
    run,
};

fn run(facts: &Facts, _context: Context) -> Judgement {
    judge(facts).into()
}

fn judge(facts: &Facts) -> Result<Option<Finding>, Outcome> {
    let reading = &facts.kernel.fips;
    if !*need_or_not_applicable(reading, "this kernel has no FIPS mode")? {
        return Ok(None);
    }
    Ok(Some(
        Finding::new(Subject::Machine, "FIPS mode is on and restricts cryptography to certified algorithms")
            .with(Evidence::of_switch(reading).expected("0 where no rule asks for it"))
            .remedy(Remedy::None),
    ))
}

#[cfg(test)]
mod tests {
    use crate::checks::testing::findings;

    #[test]
    fn on_and_off() {
        let fires =
            |value: &str| !findings(&super::CHECK, &[("/proc/sys/crypto/fips_enabled", value)]).is_empty();
        assert!(fires("1\n"));
        assert!(!fires("0\n"));
    }
}
