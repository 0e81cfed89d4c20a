//! amd_pstate was asked for and is not at work.

use zenkai_facts::Facts;
use zenkai_tune::Setting;

use super::shared::policies;

use crate::{
    Check, Context, Evidence, Finding, Impact, Judgement, Outcome, Remedy, Subject, Subsystem, need,
};

/// See the explanation.
pub(super) static CHECK: Check = Check {
    id: "cpu-amd-acpi-cpufreq",
    subsystem: Subsystem::Cpu,
    summary: "the amd_pstate driver is switched off or could not start",
    impact: Impact::Depends,
    effect: "finer steps and faster changes of the clock; depends on the work (no number verified)",
    risk: "a restart",
    source: "https://docs.kernel.org/admin-guide/pm/amd-pstate.html",
    explanation: include_str!("cpu_amd_acpi_cpufreq.md"),
    run,
};

fn run(facts: &Facts, _context: Context) -> Judgement {
    judge(facts).into()
}

fn judge(facts: &Facts) -> Result<Option<Finding>, Outcome> {
    if !facts.cpu.is_amd() {
        return Err(Outcome::not_applicable("not an AMD CPU"));
    }
    let Some(policy) = policies(facts)?.first() else { return Ok(None) };
    // acpi-cpufreq by itself is the default of many kernels and healthy: only a choice that failed is told.
    let Some(wanted) = facts.kernel.argument("amd_pstate") else { return Ok(None) };
    if need(&policy.driver)? != "acpi-cpufreq" {
        return Ok(None);
    }
    let finding = |what: String| {
        Finding::new(Subject::Machine, what)
            .with(Evidence::of(&policy.driver).expected("amd-pstate or amd-pstate-epp"))
            .with(Evidence::part(&facts.kernel.command_line, format!("amd_pstate={wanted}")))
    };
    if wanted == "disable" {
        return Ok(Some(
            finding("amd_pstate is switched off on the kernel command line".into())
                .remedy(Remedy::Set(vec![Setting::kernel_argument("amd_pstate", "active")])),
        ));
    }
    let cppc = &facts.cpu.frequency.cppc.highest_perf;
    let told = finding(format!("amd_pstate={wanted} is asked for, but acpi-cpufreq steers the clock"));
    Ok(Some(if cppc.get().is_none() {
        told.with(Evidence::of(cppc))
            .remedy(Remedy::Firmware("enable CPPC (Collaborative Processor Performance Control)".into()))
    } else {
        told.remedy(Remedy::Do("look into the kernel log for why amd_pstate did not start".into()))
    }))
}

#[cfg(test)]
mod tests {
    use crate::{
        Context, Remedy,
        checks::{
            cpu::shared::worlds::{epyc, policy},
            testing::judge_host,
        },
    };

    fn found(arguments: &str, driver: &str) -> Vec<crate::Finding> {
        let files = policy(&[("scaling_driver", driver)]);
        let host = files.iter().fold(epyc("cppc"), |host, (path, content)| host.file(path, content));
        judge_host(&super::CHECK, host.file("/proc/cmdline", arguments), Context::default()).findings
    }

    #[test]
    fn only_a_choice_that_failed() {
        assert!(matches!(found("amd_pstate=active\n", "acpi-cpufreq")[0].remedy, Remedy::Firmware(_)));
        assert!(matches!(found("amd_pstate=disable\n", "acpi-cpufreq")[0].remedy, Remedy::Set(_)));
        assert!(found("ro\n", "acpi-cpufreq").is_empty(), "healthy EPYC");
        assert!(found("amd_pstate=active\n", "amd-pstate-epp").is_empty());
    }
}
