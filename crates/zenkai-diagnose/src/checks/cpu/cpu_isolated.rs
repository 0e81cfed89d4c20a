//! CPUs that the scheduler leaves alone.

use zenkai_facts::Facts;
use zenkai_tune::Setting;

use crate::{
    Check, Context, Evidence, Finding, Impact, Judgement, Outcome, Remedy, Subject, Subsystem, Workload, need,
};

/// See the explanation.
pub(super) static CHECK: Check = Check {
    id: "cpu-isolated",
    subsystem: Subsystem::Cpu,
    summary: "CPUs are kept out of the scheduler",
    impact: Impact::Depends,
    effect: "the isolated share of the machine is lost to ordinary work (follows from the count)",
    risk: "work that counts on quiet CPUs is disturbed again",
    source: "https://docs.kernel.org/admin-guide/kernel-parameters.html",
    explanation: include_str!("cpu_isolated.md"),
    run,
};

fn run(facts: &Facts, context: Context) -> Judgement {
    judge(facts, context).into()
}

fn judge(facts: &Facts, context: Context) -> Result<Option<Finding>, Outcome> {
    let isolated = need(&facts.cpu.isolated)?;
    // Packet processing and low-latency work is what isolation is for.
    if isolated.is_empty() || context.works_as(&[Workload::Latency, Workload::Network]) {
        return Ok(None);
    }
    let online = need(&facts.cpu.online)?.len();
    let mut finding = Finding::new(
        Subject::Cpus(isolated.clone()),
        format!("isolated: ordinary work has {} of {online} CPUs", online.saturating_sub(isolated.len())),
    )
    .with(Evidence::of(&facts.cpu.isolated).expected("empty, unless something is pinned there"));
    finding = match facts.kernel.argument("isolcpus") {
        Some(list) => finding
            .with(Evidence::part(&facts.kernel.command_line, format!("isolcpus={list}")))
            .remedy(Remedy::Set(vec![Setting::kernel_argument("isolcpus", "")])),
        None => finding
            .remedy(Remedy::Do("dissolve the isolated cpuset partition if nothing is pinned there".into())),
    };
    Ok(Some(finding.because(format!("{} CPUs are isolated", isolated.len()))))
}

#[cfg(test)]
mod tests {
    use crate::{Context, Workload, checks::testing::judge_host};
    use zenkai_host::FakeHost;

    fn found(isolated: &str, workload: Option<Workload>) -> usize {
        let host = FakeHost::new(&[
            ("/sys/devices/system/cpu/isolated", isolated),
            ("/sys/devices/system/cpu/online", "0-7\n"),
            ("/proc/cmdline", "isolcpus=2-7\n"),
        ]);
        judge_host(&super::CHECK, host, Context { workload }).findings.len()
    }

    #[test]
    fn leftovers() {
        assert_eq!(found("2-7\n", None), 1);
        assert_eq!(found("\n", None), 0);
        assert_eq!(found("2-7\n", Some(Workload::Network)), 0);
    }
}
