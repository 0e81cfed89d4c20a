//! A default that leaves out most of the machine.

use zenkai_facts::Facts;

use super::shared::housekeeping;
use crate::{
    Check, Context, Evidence, Finding, Impact, Judgement, Outcome, Remedy, Subject, Subsystem, need,
};

/// See the explanation.
pub(super) static CHECK: Check = Check {
    id: "irq-default-affinity-narrow",
    subsystem: Subsystem::Irq,
    summary: "new interrupts may only go to a few CPUs",
    impact: Impact::Small,
    effect: "interrupt work gathers on these CPUs (estimate)",
    risk: "interrupts may reach CPUs that were kept free of them",
    source: "https://docs.kernel.org/core-api/irq/irq-affinity.html",
    explanation: include_str!("irq_default_affinity_narrow.md"),
    run,
};

fn run(facts: &Facts, _context: Context) -> Judgement {
    judge(facts).into()
}

fn judge(facts: &Facts) -> Result<Option<Finding>, Outcome> {
    let reading = &facts.irq.default_affinity;
    let allowed = need(reading)?.intersection(need(&facts.cpu.online)?);
    let isolated = need(&facts.cpu.isolated)?;
    if !isolated.is_empty() {
        return Err(Outcome::not_applicable("CPUs are isolated here, so the default is narrow on purpose"));
    }
    let all = housekeeping(facts).map_or(0, |cpus| cpus.len());
    if all < 4 || allowed.is_empty() || allowed.len() * 2 >= all {
        return Ok(None);
    }
    Ok(Some(
        Finding::new(Subject::Machine, format!("new interrupts may only go to CPUs {allowed}, of {all}"))
            .with(Evidence::of(reading).expected("all CPUs"))
            .with(Evidence::of(&facts.cpu.online))
            .remedy(Remedy::Do("find what sets it (irqaffinity= on the kernel command line, a tuning profile), and take it back if nobody needs it".into())),
    ))
}

#[cfg(test)]
mod tests {
    use crate::checks::net::shared_testing::{found, healthy};

    #[test]
    fn narrow_without_a_reason() {
        let with = |mask: &str| healthy().file("/proc/irq/default_smp_affinity", mask);
        assert_eq!(found(&super::CHECK, with("01\n"))[0].what, "new interrupts may only go to CPUs 0, of 8");
        assert_eq!(found(&super::CHECK, with("ffffffff,ffffffff\n")), []);
        assert_eq!(found(&super::CHECK, with("03\n").file("/sys/devices/system/cpu/isolated", "2-7\n")), []);
    }
}
