//! Idle states limited on the kernel command line.

use zenkai_facts::Facts;
use zenkai_tune::Setting;

use crate::{
    Check, Context, Evidence, Finding, Impact, Judgement, Outcome, Remedy, Subject, Subsystem, Workload, need,
};

/// See the explanation.
pub(super) static CHECK: Check = Check {
    id: "idle-state-limit-cmdline",
    subsystem: Subsystem::Idle,
    summary: "the kernel command line limits idle states",
    impact: Impact::Depends,
    effect: "wake-ups are faster, and the busy cores may get less turbo (no published number)",
    risk: "wake-ups take longer",
    source: "https://docs.kernel.org/admin-guide/kernel-parameters.html",
    explanation: include_str!("idle_state_limit_cmdline.md"),
    run,
};

/// The arguments, the driver each of them limits, and the values that limit nothing.
const LIMITS: [(&str, Option<&str>, u32); 2] =
    [("intel_idle.max_cstate", None, 9), ("processor.max_cstate", Some("acpi_idle"), 8)];

fn run(facts: &Facts, context: Context) -> Judgement {
    judge(facts, context).into()
}

fn judge(facts: &Facts, context: Context) -> Result<Option<Finding>, Outcome> {
    need(&facts.kernel.command_line)?;
    if context.works_as(&[Workload::Latency, Workload::Hana]) {
        return Err(Outcome::not_applicable("such work rightly gives idle states up"));
    }
    let given: Vec<(&str, &str)> = LIMITS
        .iter()
        .filter_map(|(key, driver, unlimited)| {
            let value = facts.kernel.argument(key)?;
            let limits = value.parse::<u32>().is_ok_and(|limit| limit < *unlimited);
            // The limit of one driver means nothing while another one is at work.
            let acts = driver.is_none_or(|driver| facts.idle.driver.text() == Some(driver));
            (limits && acts).then_some((*key, value))
        })
        .collect();
    let Some((key, value)) = given.first() else { return Ok(None) };
    let mut finding =
        Finding::new(Subject::Machine, format!("{key}={value} keeps idle CPUs out of deeper states"));
    for (key, value) in &given {
        finding = finding
            .with(Evidence::part(&facts.kernel.command_line, format!("{key}={value}")).expected("not given"));
    }
    finding = finding.with(Evidence::of(&facts.idle.driver));
    let settings = given.iter().map(|(key, _)| Setting::kernel_argument(*key, "")).collect();
    Ok(Some(finding.remedy(Remedy::Set(settings))))
}

#[cfg(test)]
mod tests {
    use crate::{
        Context, Workload,
        checks::{idle::shared::worlds::healthy, testing::judge_host},
    };

    fn found(arguments: &str, workload: Option<Workload>) -> usize {
        let host = healthy().file("/proc/cmdline", &format!("{arguments}\n"));
        judge_host(&super::CHECK, host, Context { workload }).findings.len()
    }

    #[test]
    fn limits_that_act() {
        assert_eq!(found("intel_idle.max_cstate=1 processor.max_cstate=1", None), 1);
        assert_eq!(found("intel_idle.max_cstate=1", Some(Workload::Latency)), 0);
        assert_eq!(found("intel_idle.max_cstate=9", None), 0);
        assert_eq!(found("ro quiet", None), 0);
        // intel_idle is at work here.
        assert_eq!(found("processor.max_cstate=1", None), 0);
    }
}
