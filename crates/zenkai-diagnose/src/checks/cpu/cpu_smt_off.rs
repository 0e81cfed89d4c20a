//! Second threads of the cores switched off.

use zenkai_facts::Facts;

use crate::{
    Check, Context, Evidence, Finding, Impact, Judgement, Outcome, Remedy, Subject, Subsystem, Workload,
    need_or_not_applicable,
};

/// See the explanation.
pub(super) static CHECK: Check = Check {
    id: "cpu-smt-off",
    subsystem: Subsystem::Cpu,
    summary: "simultaneous multithreading is switched off",
    impact: Impact::Depends,
    effect: "15 to 30 % of throughput for work with many threads (estimate); nothing, or a gain, for work that saturates each core",
    risk: "SMT lets threads of one core observe each other (L1TF, MDS): a security decision",
    source: "https://docs.kernel.org/admin-guide/hw-vuln/l1tf.html",
    explanation: include_str!("cpu_smt_off.md"),
    run,
};

fn run(facts: &Facts, context: Context) -> Judgement {
    judge(facts, context).into()
}

fn judge(facts: &Facts, context: Context) -> Result<Option<Finding>, Outcome> {
    let control = &facts.cpu.smt_control;
    // HPC and latency guides commonly switch it off.
    let switched_off = matches!(
        need_or_not_applicable(control, "this kernel does not switch SMT")?.as_str(),
        "off" | "forceoff"
    );
    if !switched_off || context.works_as(&[Workload::Hpc, Workload::Latency]) {
        return Ok(None);
    }
    let mut finding = Finding::new(Subject::Machine, "SMT is switched off: each core runs one thread of two")
        .with(Evidence::of(control).expected("on"))
        .with(Evidence::of(&facts.cpu.online));
    for key in ["nosmt", "mitigations"] {
        let given = facts.kernel.argument(key).filter(|value| key == "nosmt" || value.contains("nosmt"));
        if let Some(value) = given {
            let shown = if value.is_empty() { key.to_owned() } else { format!("{key}={value}") };
            finding = finding.with(Evidence::part(&facts.kernel.command_line, shown));
        }
    }
    Ok(Some(finding.remedy(Remedy::Do(
        "decide whether all work on this machine trusts each other; if so, write `on` to the file and remove nosmt from the kernel command line".into(),
    ))))
}

#[cfg(test)]
mod tests {
    use crate::{Context, Workload, checks::testing::judge_host};
    use zenkai_host::FakeHost;

    fn fires(control: &str, workload: Option<Workload>) -> bool {
        let host = FakeHost::new(&[
            ("/sys/devices/system/cpu/smt/control", control),
            ("/proc/cmdline", "ro nosmt\n"),
        ]);
        !judge_host(&super::CHECK, host, Context { workload }).findings.is_empty()
    }

    #[test]
    fn only_when_switched_off() {
        assert!(fires("off\n", None));
        assert!(fires("forceoff\n", Some(Workload::Web)));
        assert!(!fires("forceoff\n", Some(Workload::Hpc)));
        for healthy in ["on\n", "notsupported\n", "notimplemented\n"] {
            assert!(!fires(healthy, None));
        }
    }
}
