//! Page-table isolation on a CPU, or in a guest, without address space tags.

use zenkai_facts::Facts;
use zenkai_tune::Setting;

use crate::checks::shared::in_guest;
use crate::{
    Check, Context, Evidence, Finding, Impact, Judgement, Outcome, Remedy, Subject, Subsystem, need,
};

/// See the explanation.
pub(super) static CHECK: Check = Check {
    id: "mitigations-pti-without-pcid",
    subsystem: Subsystem::Kernel,
    summary: "page-table isolation without PCID empties the TLB on each entry to the kernel",
    impact: Impact::Moderate,
    effect: "tens of per cent for work with very many system calls, little for others (estimate)",
    risk: "a guest with more CPU features cannot move to an older host",
    source: "https://docs.kernel.org/arch/x86/pti.html",
    explanation: include_str!("mitigations_pti_without_pcid.md"),
    run,
};

fn run(facts: &Facts, _context: Context) -> Judgement {
    judge(facts).into()
}

fn judge(facts: &Facts) -> Result<Option<Finding>, Outcome> {
    need(&facts.vulnerabilities.entries)?;
    let none = || Outcome::not_applicable("this kernel does not know of Meltdown");
    let reading = facts.vulnerabilities.reading("meltdown").ok_or_else(none)?;
    if !need(reading)?.text.contains("PTI") || *need(&facts.vulnerabilities.pcid)? {
        return Ok(None);
    }
    let off = facts.kernel.command_line.get().is_some_and(|line| line.has("nopcid"));
    let remedy = if off {
        Remedy::Set(vec![Setting::kernel_argument("nopcid", "")])
    } else if in_guest(facts) {
        Remedy::Hypervisor("give the guest a CPU model with PCID (QEMU: `-cpu host` or `+pcid`)".to_owned())
    } else {
        Remedy::Hardware(
            "a CPU with PCID (Intel since 2010), or one that Meltdown does not affect".to_owned(),
        )
    };
    Ok(Some(
        Finding::new(Subject::Machine, "page-table isolation is on and the CPU has no PCID to make it cheap")
            .with(Evidence::of(reading))
            .with(Evidence::part(&facts.vulnerabilities.pcid, "no feature `pcid`").expected("pcid"))
            .remedy(remedy)
            .because("page-table isolation runs without PCID"),
    ))
}

#[cfg(test)]
mod tests {
    use crate::checks::testing::findings;

    fn remedy(meltdown: &str, features: &str, line: &str) -> Option<crate::Remedy> {
        remedy_on("", meltdown, features, line)
    }

    fn remedy_on(flags: &str, meltdown: &str, features: &str, line: &str) -> Option<crate::Remedy> {
        let files = [
            ("/sys/devices/system/cpu/vulnerabilities/meltdown", meltdown.to_owned()),
            (
                "/sys/devices/system/cpu/modalias",
                format!("cpu:type:x86,ven0000fam0006mod003F:feature:,{features}\n"),
            ),
            ("/proc/cmdline", line.to_owned()),
            ("/proc/cpuinfo", format!("flags : fpu {flags}\n")),
        ];
        findings(&super::CHECK, &files).first().map(|finding| finding.remedy.clone())
    }

    #[test]
    fn only_with_isolation_and_without_tags() {
        use crate::Remedy;
        let guest = remedy_on("hypervisor", "Mitigation: PTI", "0001,009F", "");
        assert!(matches!(guest, Some(Remedy::Hypervisor(_))));
        assert!(matches!(remedy("Mitigation: PTI", "0001", "ro nopcid"), Some(Remedy::Set(_))));
        assert!(matches!(remedy("Mitigation: PTI", "0001", "ro"), Some(Remedy::Hardware(_))));
        assert_eq!(remedy("Mitigation: PTI", "0001,0091", "ro"), None);
        assert_eq!(remedy("Not affected", "0001", "ro"), None);
    }
}
