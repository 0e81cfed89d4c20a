//! Mitigations that were asked for in a stronger form than the kernel would choose.

use zenkai_facts::{Facts, vulnerabilities::State};

use crate::{
    Check, Context, Evidence, Finding, Impact, Judgement, Outcome, Remedy, Subject, Subsystem, need,
};

/// See the explanation.
pub(super) static CHECK: Check = Check {
    id: "mitigations-above-default",
    subsystem: Subsystem::Kernel,
    summary: "a mitigation was asked for in a stronger form than the kernel chooses",
    impact: Impact::Depends,
    effect: "the stronger forms cost more on each entry to the kernel or each task switch (estimate)",
    risk: "protection falls back to what the kernel chooses by itself",
    source: "https://docs.kernel.org/admin-guide/kernel-parameters.html",
    explanation: include_str!("mitigations_above_default.md"),
    run,
};

/// Argument, its stronger-than-default values, and the vulnerability it belongs to
/// (`Documentation/admin-guide/kernel-parameters.txt`).
const STRONGER: [(&str, &[&str], &str); 8] = [
    ("spectre_v2", &["on"], "spectre_v2"),
    ("spectre_v2_user", &["on"], "spectre_v2"),
    ("spec_store_bypass_disable", &["on"], "spec_store_bypass"),
    ("spec_rstack_overflow", &["ibpb", "ibpb-vmexit"], "spec_rstack_overflow"),
    ("retbleed", &["ibpb"], "retbleed"),
    ("l1tf", &["full", "full,force"], "l1tf"),
    ("kvm-intel.vmentry_l1d_flush", &["always"], "l1tf"),
    ("pti", &["on"], "meltdown"),
];

fn run(facts: &Facts, _context: Context) -> Judgement {
    judge(facts).into()
}

fn judge(facts: &Facts) -> Result<Option<Finding>, Outcome> {
    let line = need(&facts.kernel.command_line)?;
    need(&facts.vulnerabilities.entries)?;
    let mut evidence = Vec::new();
    let mut asked = Vec::new();
    for (key, values, name) in STRONGER {
        let Some(value) = line.value(key).filter(|value| values.contains(value)) else { continue };
        let Some(reading) = facts.vulnerabilities.reading(name) else { continue };
        let state = reading.get().map(|one| one.state);
        // An affected CPU gets page-table isolation by default; asking for it matters where it would not.
        let matters = if key == "pti" {
            reading.get().is_some_and(|one| one.text.contains("PTI")) && line.has("mitigations")
        } else {
            state.is_some_and(|state| state != State::NotAffected)
        };
        if matters {
            asked.push(format!("{key}={value}"));
            evidence.push(Evidence::of(reading));
        }
    }
    if asked.is_empty() {
        return Ok(None);
    }
    let asked = asked.join(" ");
    evidence.insert(0, Evidence::part(&facts.kernel.command_line, &asked).expected("none of them"));
    let finding =
        Finding::new(Subject::Machine, format!("mitigations are stronger than the default: {asked}"));
    let remedy = format!(
        "if nobody decided on it, take {asked} off the kernel command line; the default protection stays"
    );
    Ok(Some(Finding { evidence, ..finding.remedy(Remedy::Do(remedy)) }))
}

#[cfg(test)]
mod tests {
    use crate::checks::testing::findings;

    fn fires(line: &str, name: &str, text: &str) -> bool {
        let files = [
            ("/proc/cmdline".to_owned(), line),
            (format!("/sys/devices/system/cpu/vulnerabilities/{name}"), text),
        ];
        !findings(&super::CHECK, &files).is_empty()
    }

    #[test]
    fn only_what_was_asked_for_and_matters() {
        let srso = "spec_rstack_overflow";
        assert!(fires("spec_rstack_overflow=ibpb", srso, "Mitigation: IBPB"));
        assert!(!fires("spec_rstack_overflow=ibpb", srso, "Not affected"));
        assert!(!fires("spec_rstack_overflow=safe-ret", srso, "Mitigation: Safe RET"));
        assert!(!fires("ro quiet", srso, "Mitigation: Safe RET"));
        // It only lets programs ask for the flush.
        assert!(!fires("l1d_flush=on", "l1tf", "Mitigation: PTE Inversion"));
        let bypass = "Mitigation: Speculative Store Bypass disabled";
        assert!(fires("spec_store_bypass_disable=on", "spec_store_bypass", bypass));
    }
}
