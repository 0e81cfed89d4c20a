//! The interrupts of network cards and NVMe drives.

use std::collections::HashMap;

use serde::Serialize;

use super::Line;
use crate::{CpuSet, Observed, Reader, net::Net, reader::join};

/// More interrupts of one device than this are not looked at: PCI allows 2 048.
const INTERRUPT_LIMIT: usize = 2_048;
/// The kernel tells which interrupts it keeps to itself only here, when built to (`kernel/irq/debugfs.c`).
const DEBUG_DIR: &str = "/sys/kernel/debug/irq/irqs";

/// What kind of device it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Class {
    /// A network interface.
    Net,
    /// An NVMe controller.
    Nvme,
}

/// The interrupts of one device.
#[derive(Debug, Clone, Serialize)]
pub struct DeviceInterrupts {
    /// `eth0`, `nvme0`.
    pub device: String,
    /// What it is.
    pub class: Class,
    /// Its interrupts, by number.
    pub interrupts: Vec<DeviceInterrupt>,
}

/// One interrupt of a device.
#[derive(Debug, Clone, Serialize)]
pub struct DeviceInterrupt {
    /// Its number.
    pub number: u32,
    /// What the driver calls it.
    pub action: String,
    /// CPUs it may go to.
    pub affinity: Observed<CpuSet>,
    /// The CPU or CPUs the interrupt controller really sends it to.
    pub effective_affinity: Observed<CpuSet>,
    /// Whether the kernel places it by itself and refuses to be told otherwise.
    pub managed: Observed<bool>,
    /// How often it came since boot.
    pub total: u64,
    /// The CPU that got the most.
    pub top_cpu: Option<u32>,
    /// How many that CPU got.
    pub top_count: u64,
}

pub(super) fn observe(reader: &Reader<'_>, net: &Net, lines: &[Line]) -> Vec<DeviceInterrupts> {
    let by_number: HashMap<u32, &Line> =
        lines.iter().filter_map(|line| Some((line.name.parse().ok()?, line))).collect();
    let debug = reader.names(DEBUG_DIR);
    let looker = Looker { reader, by_number, debug };
    let cards = net.interfaces().iter().filter_map(|interface| {
        let device = interface.hardware.as_ref()?.device.text()?;
        Some(looker.device(&interface.name, Class::Net, device, is_named))
    });
    let drives = reader.names("/sys/class/nvme").get().cloned().unwrap_or_default();
    let drives = drives.iter().map(|name| {
        let device = join("/sys/class/nvme", format_args!("{name}/device"));
        looker.device(name, Class::Nvme, &device, |line, name| {
            line.description
                .rsplit(' ')
                .next()
                .is_some_and(|action| action.strip_prefix(name).is_some_and(|rest| rest.starts_with('q')))
        })
    });
    cards.chain(drives).filter(|device| !device.interrupts.is_empty()).collect()
}

struct Looker<'h> {
    reader: &'h Reader<'h>,
    by_number: HashMap<u32, &'h Line>,
    debug: Observed<Vec<String>>,
}

impl Looker<'_> {
    /// A device has its vectors listed in `msi_irqs`; what has none (Xen, old cards) is found by name.
    fn device(
        &self,
        name: &str,
        class: Class,
        dir: &str,
        is_named: impl Fn(&Line, &str) -> bool,
    ) -> DeviceInterrupts {
        let listed = self.reader.names(&join(dir, "msi_irqs")).get().cloned().unwrap_or_default();
        let mut numbers: Vec<u32> = listed.iter().filter_map(|number| number.parse().ok()).collect();
        if numbers.is_empty() {
            let named = self.by_number.iter().filter(|(_, line)| is_named(line, name));
            numbers = named.map(|(number, _)| *number).collect();
        }
        numbers.sort_unstable();
        numbers.truncate(INTERRUPT_LIMIT);
        // Vectors that are allocated but not in use have no line in the table.
        let used =
            numbers.iter().filter_map(|number| Some(self.interrupt(*number, self.by_number.get(number)?)));
        DeviceInterrupts { device: name.to_owned(), class, interrupts: used.collect() }
    }

    fn interrupt(&self, number: u32, line: &Line) -> DeviceInterrupt {
        let at = |name: &str| format!("/proc/irq/{number}/{name}");
        DeviceInterrupt {
            number,
            action: line.description.rsplit(' ').next().unwrap_or_default().to_owned(),
            affinity: self.reader.cpu_set(&at("smp_affinity_list")),
            effective_affinity: self.reader.cpu_set(&at("effective_affinity_list")),
            managed: match self.debug.outcome() {
                Ok(_) => {
                    let state = self.reader.text(&join(DEBUG_DIR, number));
                    state.map(|text| text.contains("IRQD_AFFINITY_MANAGED"))
                }
                Err(reason) => Observed::unavailable(DEBUG_DIR, reason.clone()),
            },
            total: line.total,
            top_cpu: line.top_cpu,
            top_count: line.top_count,
        }
    }
}

/// Whether one of the actions of a line belongs to an interface: `eth0`, `eth0-TxRx-3`, `eth0-q1-rx`.
fn is_named(line: &Line, name: &str) -> bool {
    line.description.split([' ', ',']).any(|action| {
        action.strip_prefix(name).is_some_and(|rest| rest.is_empty() || rest.starts_with(['-', ':', '@']))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_interrupts() {
        let line = |description: &str| Line {
            name: "9".into(),
            description: description.into(),
            total: 0,
            top_cpu: None,
            top_count: 0,
            cpus: 0,
        };
        assert!(is_named(&line("xen-dyn -event eth0-q0-tx"), "eth0"));
        assert!(is_named(&line("IO-APIC 16-fasteoi uhci_hcd, eth0"), "eth0"));
        assert!(!is_named(&line("PCI-MSI 1-edge eth01-rx"), "eth0"));
    }
}
