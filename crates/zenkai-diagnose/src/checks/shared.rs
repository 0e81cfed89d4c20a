//! What the checks of several folders ask of the machine, and how they say it.

use zenkai_facts::Facts;

use crate::{Outcome, Remedy};

/// Why a guest without PCI (Firecracker, mainframes) has no imitations of PCI hardware.
pub(crate) const NO_PCI: &str = "this machine has no PCI bus";

/// Whether the devices, the firmware and the CPU model are a hypervisor's, out of our reach. What could not be told
/// counts as a machine of its own.
pub(crate) fn in_guest(facts: &Facts) -> bool {
    facts.virtualisation.is_guest() == Some(true)
}

/// For rules about clock, power and registers: where a hypervisor owns the CPUs, a Xen dom0 too, it decides.
pub(crate) fn needs_own_cpus(facts: &Facts, why: &str) -> Result<(), Outcome> {
    if facts.virtualisation.cpus_are_lent() { Err(Outcome::not_applicable(why)) } else { Ok(()) }
}

/// For rules about real hardware: guests and containers are let out.
pub(crate) fn needs_hardware(facts: &Facts) -> Result<(), Outcome> {
    if in_guest(facts) {
        return Err(Outcome::not_applicable("the hardware belongs to the hypervisor"));
    }
    outside_container(facts, "the hardware belongs to the container's host")
}

/// For rules about what only the host of a container has a say in: a container is let out, for this reason.
pub(crate) fn outside_container(facts: &Facts, why: &str) -> Result<(), Outcome> {
    if facts.virtualisation.is_container() == Some(true) {
        return Err(Outcome::not_applicable(why));
    }
    Ok(())
}

/// Work on a device: on the hypervisor's side when it is one that a guest was given.
pub(crate) fn work_on_device(facts: &Facts, what: impl Into<String>) -> Remedy {
    if in_guest(facts) { Remedy::Hypervisor(what.into()) } else { Remedy::Hardware(what.into()) }
}

/// A share in thousandths as per cent with one decimal.
pub(crate) fn per_cent(per_mille: u64) -> String {
    format!("{}.{} %", per_mille / 10, per_mille % 10)
}

#[cfg(test)]
mod tests {
    use zenkai_host::FakeHost;

    use super::*;

    #[test]
    fn what_each_kind_of_machine_answers_for() {
        let observe = |files: &[(&str, &str)]| zenkai_facts::observe(&FakeHost::new(files));
        let metal = observe(&[("/proc/cpuinfo", "flags : fpu\n")]);
        assert!(!in_guest(&metal) && needs_hardware(&metal).is_ok() && needs_own_cpus(&metal, "").is_ok());
        let guest = observe(&[("/proc/cpuinfo", "flags : fpu hypervisor\n")]);
        assert!(in_guest(&guest) && needs_hardware(&guest).is_err() && needs_own_cpus(&guest, "").is_err());
        assert!(matches!(work_on_device(&guest, "x"), Remedy::Hypervisor(_)));
        let dom0 = observe(&[("/sys/hypervisor/type", "xen\n"), ("/proc/xen/capabilities", "control_d\n")]);
        assert!(!in_guest(&dom0) && needs_hardware(&dom0).is_ok() && needs_own_cpus(&dom0, "").is_err());
        assert!(matches!(work_on_device(&dom0, "x"), Remedy::Hardware(_)));
        let container =
            observe(&[("/proc/cpuinfo", "flags : fpu\n"), ("/run/.containerenv", "engine=\"x\"\n")]);
        assert!(needs_hardware(&container).is_err() && outside_container(&container, "").is_err());
    }
}
