//! What the checks of interrupts share.

use std::collections::BTreeSet;

use zenkai_facts::{
    CpuSet, Facts,
    irq::{DeviceInterrupt, DeviceInterrupts},
};

/// An interrupt that came less often than this since boot tells nothing.
const BUSY: u64 = 100_000;

/// The queues of a device that have had work.
pub(super) fn busy(device: &DeviceInterrupts) -> impl Iterator<Item = &DeviceInterrupt> {
    device.interrupts.iter().filter(|interrupt| interrupt.total >= BUSY)
}

/// The CPU that got nearly all interrupts of all busy queues of a device, when it has more than one such queue.
pub(super) fn only_cpu(device: &DeviceInterrupts) -> Option<u32> {
    let mut queues = busy(device).peekable();
    let cpu = queues.peek()?.top_cpu?;
    let mut names = BTreeSet::new();
    let same = queues.all(|queue| {
        // Both directions of one queue belong on one CPU (virtio: `virtio0-input.0`, `virtio0-output.0`), and lines
        // of equal names are no queues (the two of a Raspberry Pi's card).
        names.insert(queue.action.replace("-output", "-input"));
        // Nine of ten: a few go elsewhere while interrupts are set up.
        queue.top_cpu == Some(cpu) && queue.top_count.saturating_mul(10) >= queue.total.saturating_mul(9)
    });
    (same && names.len() > 1).then_some(cpu)
}

/// Two or more devices whose busy queues all interrupt the same one CPU, and that CPU.
pub(super) fn crowded(facts: &Facts) -> Option<(u32, Vec<&DeviceInterrupts>)> {
    let all: Vec<_> =
        facts.irq.devices.iter().filter_map(|device| Some((only_cpu(device)?, device))).collect();
    let (cpu, _) = *all.first()?;
    let devices: Vec<_> = all.iter().filter(|(own, _)| *own == cpu).map(|(_, device)| *device).collect();
    (devices.len() > 1).then_some((cpu, devices))
}

/// CPUs that are online and may be disturbed.
pub(super) fn housekeeping(facts: &Facts) -> Option<CpuSet> {
    let online = facts.cpu.online.get()?;
    Some(facts.cpu.isolated.get().map_or_else(|| online.clone(), |isolated| online.difference(isolated)))
}
