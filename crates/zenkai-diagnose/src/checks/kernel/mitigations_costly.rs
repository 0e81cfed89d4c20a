//! Mitigations that are known to cost much, for work that is often in the kernel.

use zenkai_facts::Facts;

use super::shared;
use crate::{
    Check, Context, Evidence, Finding, Impact, Judgement, Outcome, Remedy, Subject, Subsystem, Workload, need,
};

/// See the explanation.
pub(super) static CHECK: Check = Check {
    id: "mitigations-costly",
    subsystem: Subsystem::Kernel,
    summary: "mitigations with a known high cost are in force",
    impact: Impact::Depends,
    effect: "KPTI took a MySQL demonstration from 31 353 to 22 795 queries a second, and Netflix expected to lose 0.1 to 6 % (B. Gregg, 2018); the others are estimates",
    risk: "switching a mitigation off opens the hole that it closes",
    source: "https://docs.kernel.org/admin-guide/hw-vuln/index.html",
    explanation: include_str!("mitigations_costly.md"),
    run,
};

/// Vulnerability, the words in its file that tell the expensive form, and what that form is.
const COSTLY: [(&str, &str, &str); 11] = [
    ("meltdown", "Mitigation: PTI", "page-table isolation"),
    ("retbleed", "Mitigation: IBRS", "IBRS"),
    ("retbleed", "Mitigation: untrained return thunk", "untrained return thunks"),
    ("spec_rstack_overflow", "Mitigation: Safe RET", "safe returns"),
    // Written so before 6.7.
    ("spec_rstack_overflow", "Mitigation: safe RET", "safe returns"),
    ("spec_rstack_overflow", "Mitigation: IBPB;", "predictor flushes on kernel entry"),
    ("mds", "Mitigation: Clear CPU buffers", "clearing of CPU buffers"),
    ("tsx_async_abort", "Mitigation: Clear CPU buffers", "clearing of CPU buffers"),
    ("mmio_stale_data", "Mitigation: Clear CPU buffers", "clearing of CPU buffers"),
    ("reg_file_data_sampling", "Mitigation: Clear Register File", "clearing of the register file"),
    (
        "spec_store_bypass",
        "Mitigation: Speculative Store Bypass disabled;",
        "store bypass off for everything",
    ),
];

const GATHER: [(&str, &str, &str); 1] =
    [("gather_data_sampling", "Mitigation: Microcode", "slow gather instructions")];

fn run(facts: &Facts, context: Context) -> Judgement {
    judge(facts, context).into()
}

fn judge(facts: &Facts, context: Context) -> Result<Option<Finding>, Outcome> {
    need(&facts.vulnerabilities.entries)?;
    let list: &[(&str, &str, &str)] = if context.works_as(&shared::KERNEL_HEAVY) {
        &COSTLY
    } else if context.works_as(&[Workload::Hpc]) {
        &GATHER
    } else {
        // Half of all healthy machines have one of these, and what they cost depends on the work.
        return Ok(None);
    };
    let mut names: Vec<&str> = Vec::new();
    let mut evidence = Vec::new();
    for (file, words, name) in list {
        let Some(reading) = facts.vulnerabilities.reading(file) else { continue };
        // The semicolon tells a whole text from one that goes on with `via prctl`.
        if !reading.get().is_some_and(|one| format!("{};", one.text).starts_with(words)) {
            continue;
        }
        evidence.push(Evidence::of(reading));
        if !names.contains(name) {
            names.push(name);
        }
    }
    if names.is_empty() {
        return Ok(None);
    }
    let finding =
        Finding::new(Subject::Machine, format!("mitigations cost much on this CPU: {}", names.join(", ")));
    let remedy = "keep them; fewer system calls make them cheaper, newer CPUs do without".to_owned();
    Ok(Some(Finding { evidence, ..finding.remedy(Remedy::Do(remedy)) }))
}

#[cfg(test)]
mod tests {
    use zenkai_host::FakeHost;

    use crate::{Context, Workload, checks::testing::judge_host};

    fn what(name: &str, text: &str, workload: Option<Workload>) -> Option<String> {
        let path = format!("/sys/devices/system/cpu/vulnerabilities/{name}");
        let host = FakeHost::new(&[(path.as_str(), text)]);
        let findings = judge_host(&super::CHECK, host, Context { workload }).findings;
        findings.first().map(|finding| finding.what.clone())
    }

    #[test]
    fn a_healthy_epyc_is_silent_until_the_work_is_named() {
        let srso = ("spec_rstack_overflow", "Mitigation: Safe RET\n");
        assert_eq!(what(srso.0, srso.1, None), None);
        assert!(what(srso.0, srso.1, Some(Workload::Database)).unwrap().contains("safe returns"));
        assert_eq!(what(srso.0, srso.1, Some(Workload::Hpc)), None);
    }

    #[test]
    fn each_by_its_own_words() {
        let web = Some(Workload::Web);
        let bypass = "spec_store_bypass";
        assert_eq!(what(bypass, "Mitigation: Speculative Store Bypass disabled via prctl\n", web), None);
        assert!(what(bypass, "Mitigation: Speculative Store Bypass disabled\n", web).is_some());
        assert_eq!(what("retbleed", "Mitigation: Enhanced IBRS\n", web), None);
        let srso = "spec_rstack_overflow";
        assert!(what(srso, "Mitigation: safe RET\n", web).is_some());
        assert!(what(srso, "Mitigation: IBPB\n", web).is_some());
        assert_eq!(what(srso, "Mitigation: IBPB on VMEXIT only\n", web), None);
        assert!(what("gather_data_sampling", "Mitigation: Microcode\n", Some(Workload::Hpc)).is_some());
    }
}
