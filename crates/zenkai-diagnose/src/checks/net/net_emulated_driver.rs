//! A card from the last century, played by a hypervisor.

use zenkai_facts::{
    Facts,
    virtualisation::{DeviceClass, EmulatedDevice, Kind},
};

use super::shared::{Card, cards};
use crate::checks::shared::NO_PCI;
use crate::{
    Check, Context, Evidence, Finding, Impact, Judgement, Outcome, Remedy, Subject, Subsystem,
    need_or_not_applicable,
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

fn run(facts: &Facts, _context: Context) -> Judgement {
    cards(facts).map(|cards| Judgement::each(&cards, |card| judge(facts, card))).into()
}

fn judge(facts: &Facts, card: &Card<'_>) -> Result<Option<Finding>, Outcome> {
    let emulated = need_or_not_applicable(&facts.virtualisation.emulated_devices, NO_PCI)?;
    let ours = |device: &&EmulatedDevice| device.class == DeviceClass::Net && device.name == card.name();
    let Some(device) = emulated.iter().find(ours) else { return Ok(None) };
    let better = better(facts.virtualisation.kind.get());
    Ok(Some(
        Finding::new(Subject::device(card.name()), format!("an emulated card with driver {}", device.driver))
            .with(Evidence::of(&card.hardware.driver).expected(better))
            .with(Evidence::of(&card.hardware.subsystem_vendor))
            .remedy(Remedy::Hypervisor(format!("give the guest {better} instead of the emulated card")))
            .because(format!("the network card is an emulated {}", device.driver)),
    ))
}

/// What this hypervisor offers in place of an imitation.
fn better(kind: Option<&Kind>) -> &'static str {
    match kind {
        Some(Kind::Vmware) => "vmxnet3",
        Some(Kind::HyperV) => "the synthetic network adapter",
        Some(kind) if kind.is_xen() => "the Xen network frontend",
        _ => "virtio-net",
    }
}

#[cfg(test)]
mod tests {
    use zenkai_host::FakeHost;

    use crate::checks::net::shared_testing::{PCI, driver, found, healthy};

    /// The healthy machine's card, with this driver, in a guest.
    fn guest(name: &str) -> FakeHost {
        let address = PCI.rsplit('/').next().unwrap();
        driver(healthy(), name)
            .file("/proc/cpuinfo", "flags : fpu hypervisor\n")
            .file(&format!("{PCI}/net/eth0/mtu"), "1500\n")
            .link(&format!("/sys/bus/pci/devices/{address}"), PCI)
            .link(&format!("/sys/bus/pci/drivers/{name}/{address}"), PCI)
    }

    #[test]
    fn only_when_a_hypervisor_made_it() {
        assert_eq!(found(&super::CHECK, guest("e1000"))[0].what, "an emulated card with driver e1000");
        let vmware = guest("e1000").file("/sys/class/dmi/id/sys_vendor", "VMware, Inc.\n");
        assert_eq!(found(&super::CHECK, vmware)[0].evidence[0].expected.as_deref(), Some("vmxnet3"));
        let qemu = guest("e1000e")
            .file(&format!("{PCI}/subsystem_vendor"), "0x8086\n")
            .file(&format!("{PCI}/subsystem_device"), "0x0000\n");
        assert_eq!(found(&super::CHECK, qemu).len(), 1, "QEMU's e1000e");
        assert_eq!(found(&super::CHECK, guest("e1000e")), [], "passed through");
        assert_eq!(found(&super::CHECK, guest("virtio_net")), []);
        let metal = guest("e1000").file("/proc/cpuinfo", "flags : fpu\n");
        assert_eq!(found(&super::CHECK, metal), [], "a real card");
    }
}
