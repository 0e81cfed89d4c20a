//! Mitigations that cost but do not protect, for lack of microcode.

use zenkai_facts::Facts;

use crate::checks::shared::in_guest;
use crate::{
    Check, Context, Evidence, Finding, Impact, Judgement, Outcome, Remedy, Subject, Subsystem, need,
};

/// See the explanation.
pub(super) static CHECK: Check = Check {
    id: "mitigations-partial-no-microcode",
    subsystem: Subsystem::Kernel,
    summary: "a mitigation is paid for but does not protect, for lack of microcode",
    impact: Impact::Small,
    effect: "part of the cost of the mitigation, and the vulnerability stays open (the kernel says so)",
    risk: "new microcode may switch on further mitigations that cost more",
    source: "https://docs.kernel.org/admin-guide/hw-vuln/mds.html",
    explanation: include_str!("mitigations_partial_no_microcode.md"),
    run,
};

fn run(facts: &Facts, _context: Context) -> Judgement {
    judge(facts).into()
}

fn judge(facts: &Facts) -> Result<Option<Finding>, Outcome> {
    let entries = need(&facts.vulnerabilities.entries)?;
    let open = |text: &str| text.contains("Vulnerable") && text.to_lowercase().contains("no microcode");
    let found: Vec<_> =
        entries.iter().filter(|(_, reading)| reading.get().is_some_and(|one| open(&one.text))).collect();
    if found.is_empty() {
        return Ok(None);
    }
    let names: Vec<&str> = found.iter().map(|(name, _)| name.as_str()).collect();
    let remedy = if in_guest(facts) {
        Remedy::Hypervisor("update the host's microcode and show its features to the guest".to_owned())
    } else {
        Remedy::Do("install the microcode package, make the initial ramdisk anew and reboot".to_owned())
    };
    let what =
        format!("the kernel mitigates {} without the microcode that would make it work", names.join(", "));
    let finding = Finding::new(Subject::Machine, what).remedy(remedy);
    let finding = match facts.vulnerabilities.reading("old_microcode") {
        Some(old) if old.get().is_some_and(|one| one.text.starts_with("Vulnerable")) => {
            finding.with(Evidence::of(old).expected("Not affected"))
        }
        _ => finding,
    };
    Ok(Some(found.iter().fold(finding, |finding, (_, reading)| {
        finding.with(Evidence::of(*reading).expected("Mitigation: …"))
    })))
}

#[cfg(test)]
mod tests {
    use crate::checks::testing::findings;

    fn fires(text: &str) -> bool {
        !findings(&super::CHECK, &[("/sys/devices/system/cpu/vulnerabilities/mds", text)]).is_empty()
    }

    #[test]
    fn only_the_attempt_without_effect() {
        assert!(fires("Vulnerable: Clear CPU buffers attempted, no microcode; SMT vulnerable\n"));
        assert!(fires("Vulnerable: No microcode\n"));
        for fine in [
            "Vulnerable",
            "Mitigation: Clear CPU buffers; SMT vulnerable",
            "Not affected",
            "Mitigation: Microcode",
        ] {
            assert!(!fires(fine), "{fine}");
        }
    }
}
