//! Many queues, one CPU.

use zenkai_facts::{Facts, irq::DeviceInterrupts};

use super::shared::{busy, crowded, housekeeping, only_cpu};
use crate::{
    Check, Context, Evidence, Finding, Impact, Judgement, Outcome, Remedy, Subject, Subsystem, need,
};

/// See the explanation.
pub(super) static CHECK: Check = Check {
    id: "irq-one-cpu",
    subsystem: Subsystem::Irq,
    summary: "all queues of a device interrupt one CPU",
    impact: Impact::Moderate,
    effect: "the queues cannot work in parallel: one CPU is the limit of the device (estimate)",
    risk: "interrupts may reach CPUs that were kept free of them",
    source: "https://docs.kernel.org/core-api/irq/irq-affinity.html",
    explanation: include_str!("irq_one_cpu.md"),
    run,
};

fn run(facts: &Facts, _context: Context) -> Judgement {
    // Several devices on one CPU are one problem, and told by irqbalance-missing.
    if crowded(facts).is_some() {
        return Outcome::not_applicable("it concerns several devices; see irqbalance-missing").into();
    }
    Judgement::each(&facts.irq.devices, |device| judge(facts, device))
}

fn judge(facts: &Facts, device: &DeviceInterrupts) -> Result<Option<Finding>, Outcome> {
    need(&facts.cpu.online)?;
    let free = housekeeping(facts).map_or(0, |cpus| cpus.len());
    let Some(cpu) = only_cpu(device).filter(|_| free >= 4) else { return Ok(None) };
    let queues = busy(device).count();
    let mut finding = Finding::new(
        Subject::device(&device.device),
        format!("{queues} busy queues all interrupt CPU {cpu}, of {free} that could take them"),
    )
    .with(Evidence::derived(facts.irq.interrupts.source(), format!("busiest CPU of every queue: {cpu}")));
    if let Some(first) = busy(device).next() {
        finding = finding.with(Evidence::of(&first.effective_affinity)).with(Evidence::of(&first.affinity));
    }
    Ok(Some(
        finding
            .remedy(Remedy::Do("give each queue's interrupt its own CPU in /proc/irq/N/smp_affinity_list, or let irqbalance do it".into()))
            .because(format!("all queues of {} interrupt one CPU", device.device)),
    ))
}

#[cfg(test)]
mod tests {
    use crate::checks::net::shared_testing::{found, healthy, interrupts};

    #[test]
    fn all_queues_on_one() {
        let one = || healthy().file("/proc/interrupts", &interrupts(|_| 2));
        assert_eq!(
            found(&super::CHECK, one())[0].what,
            "8 busy queues all interrupt CPU 2, of 8 that could take them"
        );
        assert_eq!(found(&super::CHECK, healthy()), []);
        let isolated = one().file("/sys/devices/system/cpu/isolated", "3-7\n");
        assert_eq!(found(&super::CHECK, isolated), [], "three CPUs are for everything else");
        let two = healthy().file("/proc/interrupts", &interrupts(|queue| queue % 2));
        assert_eq!(found(&super::CHECK, two), []);
    }

    #[test]
    fn both_directions_of_one_queue_are_one_queue() {
        let table = |names: [&str; 2]| {
            let line =
                |number: u32, name: &str| format!("{number}: 0 0 900000 0 0 0 0 0 PCI-MSI 1-edge {name}\n");
            let head = "    CPU0 CPU1 CPU2 CPU3 CPU4 CPU5 CPU6 CPU7\n";
            healthy().file("/proc/interrupts", &(head.to_owned() + &line(40, names[0]) + &line(41, names[1])))
        };
        assert_eq!(found(&super::CHECK, table(["virtio0-input.0", "virtio0-output.0"])), []);
        assert_eq!(found(&super::CHECK, table(["virtio0-input.0", "virtio0-input.1"])).len(), 1);
        assert_eq!(found(&super::CHECK, table(["eth0", "eth0"])), [], "the card of a Raspberry Pi");
    }
}
