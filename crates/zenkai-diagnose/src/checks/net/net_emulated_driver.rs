//! A card from the last century, played by a hypervisor.

use zenkai_facts::Facts;

use super::shared::{Card, cards};
use crate::{
    Check, Context, Evidence, Finding, Impact, Judgement, Outcome, Remedy, Subject, Subsystem, need,
};

/// See the explanation.
pub(super) static CHECK: Check = Check {
    id: "net-emulated-driver",
    subsystem: Subsystem::Net,
    summary: "a guest uses an emulated network card",
    impact: Impact::Large,
    effect: "several times the CPU time per packet and a fraction of the rate of a paravirtual device (estimate)",
    risk: "the interface name and its addresses may change with the device; the guest needs the driver first",
    source: "https://www.linux-kvm.org/page/Virtio",
    explanation: include_str!("net_emulated_driver.md"),
    run,
};

/// Drivers of cards that hypervisors imitate.
const IMITATED: [&str; 7] = ["e1000", "e1000e", "8139cp", "8139too", "pcnet32", "ne2k_pci", "tulip"];
/// PCI vendor numbers that only hypervisors use for the board: Red Hat, VMware, Xen, Oracle.
const HYPERVISORS: [(&str, &str); 4] = [
    ("0x1af4", "virtio-net"),
    ("0x15ad", "vmxnet3"),
    ("0x5853", "the Xen network frontend"),
    ("0x80ee", "virtio-net"),
];

fn run(facts: &Facts, _context: Context) -> Judgement {
    cards(facts).map(|cards| Judgement::each(&cards, judge)).into()
}

fn judge(card: &Card<'_>) -> Result<Option<Finding>, Outcome> {
    let driver = need(&card.hardware.driver)?;
    if !IMITATED.contains(&driver.as_str()) {
        return Ok(None);
    }
    let vendor = &card.hardware.subsystem_vendor;
    let Some((_, better)) = HYPERVISORS.iter().find(|(number, _)| Some(*number) == vendor.text()) else {
        return Ok(None);
    };
    Ok(Some(
        Finding::new(Subject::device(card.name()), format!("an emulated card with driver {driver}"))
            .with(Evidence::of(&card.hardware.driver).expected(better))
            .with(Evidence::of(vendor))
            .remedy(Remedy::Hypervisor(format!("give the guest {better} instead of the emulated card")))
            .because(format!("the network card is an emulated {driver}")),
    ))
}

#[cfg(test)]
mod tests {
    use crate::checks::net::shared_testing::{PCI, driver, found, healthy};

    #[test]
    fn only_when_a_hypervisor_made_it() {
        let guest = driver(healthy(), "e1000").file(&format!("{PCI}/subsystem_vendor"), "0x1af4\n");
        assert_eq!(found(&super::CHECK, guest)[0].what, "an emulated card with driver e1000");
        assert_eq!(found(&super::CHECK, driver(healthy(), "e1000")), [], "a real card");
        let virtio = driver(healthy(), "virtio_net").file(&format!("{PCI}/subsystem_vendor"), "0x1af4\n");
        assert_eq!(found(&super::CHECK, virtio), []);
    }
}
