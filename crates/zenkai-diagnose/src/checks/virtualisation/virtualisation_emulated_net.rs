//! network cards that imitate old hardware.

use zenkai_facts::{
    Facts,
    virtualisation::{DeviceClass, EmulatedDevice},
};

use crate::{Check, Context, Evidence, Finding, Impact, Judgement, Remedy, Subject, Subsystem, need};

/// See the explanation.
pub(super) static CHECK: Check = Check {
    id: "virtualisation-emulated-net",
    subsystem: Subsystem::Virtualisation,
    summary: "network cards imitate old hardware",
    impact: Impact::Moderate,
    effect: "packet rates several times lower, more CPU for each byte (estimate)",
    risk: "the driver must be in the initial RAM disk before the change, and device names may change",
    source: "https://www.linux-kvm.org/page/Virtio",
    explanation: include_str!("virtualisation_emulated_net.md"),
    run,
};

fn run(facts: &Facts, _context: Context) -> Judgement {
    let devices = &facts.virtualisation.emulated_devices;
    need(devices).map(|all| judge(all, devices.source())).into()
}

fn judge(devices: &[EmulatedDevice], source: &str) -> Judgement {
    let ours = devices.iter().filter(|device| device.class == DeviceClass::Net);
    let findings = ours.map(|device| {
        let evidence =
            Evidence::derived(format!("{source}/{}/{}", device.driver, device.address), &device.driver);
        Finding::new(
            Subject::device(&device.name),
            format!("driven by {}, an imitation of old hardware", device.driver),
        )
        .with(evidence.expected("virtio-net, vmxnet3, xen-netfront or hv_netvsc"))
        .remedy(Remedy::Hypervisor(
            "give the guest a virtio, vmxnet3 or otherwise paravirtual network card".to_owned(),
        ))
    });
    // The list itself was readable: no imitation is an answer too.
    Judgement { findings: findings.collect(), judged: 1, ..Judgement::default() }
}

#[cfg(test)]
mod tests {
    use zenkai_host::FakeHost;

    use crate::{Context, checks::testing::judge_host};

    const DEVICE: &str = "/sys/devices/pci0000:00/0000:00:03.0";

    fn fires(driver: &str) -> bool {
        let host = FakeHost::new(&[(&format!("{DEVICE}/net/ens3/x") as &str, "1\n")])
            .file("/proc/cpuinfo", "flags : fpu hypervisor\n")
            .link("/sys/bus/pci/devices/0000:00:03.0", DEVICE)
            .link("/sys/block/sda", &format!("{DEVICE}/ata1/sda"))
            .link(&format!("/sys/bus/pci/drivers/{driver}/0000:00:03.0"), DEVICE);
        !judge_host(&super::CHECK, host, Context::default()).findings.is_empty()
    }

    #[test]
    fn imitations_only() {
        assert!(fires("e1000"));
        assert!(!fires("virtio-pci"));
        assert!(!fires("e1000e"));
    }
}
