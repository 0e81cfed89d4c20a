//! Isolated CPUs that are disturbed.

use zenkai_facts::{CpuSet, Facts, irq::DeviceInterrupts};

use super::shared::busy;
use crate::{
    Check, Context, Evidence, Finding, Impact, Judgement, Outcome, Remedy, Subject, Subsystem, need,
};

/// See the explanation.
pub(super) static CHECK: Check = Check {
    id: "irq-on-isolated-cpu",
    subsystem: Subsystem::Irq,
    summary: "device interrupts reach isolated CPUs",
    impact: Impact::Small,
    effect: "each one stops the work that the CPU was isolated for, for some microseconds (estimate)",
    risk: "the other CPUs get more to do",
    source: "https://docs.kernel.org/core-api/irq/irq-affinity.html",
    explanation: include_str!("irq_on_isolated_cpu.md"),
    run,
};

fn run(facts: &Facts, _context: Context) -> Judgement {
    need(&facts.cpu.isolated)
        .map(|isolated| {
            if isolated.is_empty() {
                return Outcome::not_applicable("no CPU is isolated").into();
            }
            Judgement::each(&facts.irq.devices, |device| judge(isolated, device))
        })
        .into()
}

fn judge(isolated: &CpuSet, device: &DeviceInterrupts) -> Result<Option<Finding>, Outcome> {
    let on_isolated = |set: &CpuSet| !set.is_empty() && set.is_subset(isolated);
    // Managed interrupts of isolated CPUs only come when programs there use the device themselves.
    let disturbing: Vec<_> = busy(device)
        .filter(|one| one.managed.value() != Some(true))
        .filter(|one| one.top_cpu.is_some_and(|cpu| isolated.contains(cpu)))
        .filter(|one| one.effective_affinity.get().is_some_and(on_isolated))
        .collect();
    let Some(first) = disturbing.first() else { return Ok(None) };
    // A user who bound the interrupt to isolated CPUs meant it; one that may go anywhere just happens to be there.
    if on_isolated(need(&first.affinity)?) {
        return Ok(None);
    }
    Ok(Some(
        Finding::new(
            Subject::device(&device.device),
            format!("{} busy interrupts go to isolated CPUs", disturbing.len()),
        )
        .with(Evidence::of(&first.effective_affinity).expected("a CPU that is not isolated"))
        .with(Evidence::of(&first.affinity))
        .remedy(Remedy::Do("take the isolated CPUs out of smp_affinity_list of these interrupts, and boot with irqaffinity= set to the others".into())),
    ))
}

#[cfg(test)]
mod tests {
    use crate::checks::net::shared_testing::{found, healthy};

    #[test]
    fn only_when_nobody_asked_for_it() {
        let isolated = || healthy().file("/sys/devices/system/cpu/isolated", "6-7\n");
        assert_eq!(found(&super::CHECK, isolated())[0].what, "2 busy interrupts go to isolated CPUs");
        let bound = isolated()
            .file("/proc/irq/46/smp_affinity_list", "6\n")
            .file("/proc/irq/47/smp_affinity_list", "7\n");
        assert_eq!(found(&super::CHECK, bound), []);
    }
}
