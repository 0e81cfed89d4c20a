//! What kind of machine this is: metal, guest or container; what the hypervisor takes and what it shows.

mod container;
mod devices;
mod guest;
mod kind;

use serde::Serialize;

use crate::{Observed, Reader};

pub use container::Container;
pub use devices::{DeviceClass, EmulatedDevice};
pub use guest::{Balloon, Steal};
pub use kind::Kind;

/// What kind of machine this is, and what a hypervisor does to it.
#[derive(Debug, Clone, Serialize)]
pub struct Virtualisation {
    /// Metal, or which hypervisor runs us (or is run by us, for [`Kind::XenDom0`]).
    pub kind: Observed<Kind>,
    /// The container zenkai itself runs in; none on an ordinary system.
    pub container: Observed<Option<Container>>,
    /// CPU time that the hypervisor gave to others while we wanted to run, since boot.
    pub steal: Observed<Steal>,
    /// Memory taken back by the hypervisor through a balloon driver; not applicable on metal.
    pub balloon: Observed<Balloon>,
    /// Disks and network cards that are imitations of old hardware; not applicable on metal.
    pub emulated_devices: Observed<Vec<EmulatedDevice>>,
    /// In a Xen dom0, Xen's own command line as the boot loader's configuration has it (not necessarily what
    /// the running Xen was started with); not applicable elsewhere.
    pub xen_command_line: Observed<String>,
}

impl Virtualisation {
    /// Whether the hardware we see is a hypervisor's: everything but metal, a Xen dom0 and a Hyper-V root
    /// partition, which own the real devices. `None` when it could not be told.
    pub fn is_guest(&self) -> Option<bool> {
        self.kind.get().map(Kind::is_guest)
    }

    /// Whether there is no hypervisor below this kernel. A Xen dom0 is neither guest nor metal: it owns the
    /// devices, but Xen owns the CPUs.
    pub fn is_metal(&self) -> Option<bool> {
        self.kind.get().map(|kind| *kind == Kind::Metal)
    }

    /// Whether a hypervisor is known to own the CPUs: in a guest, but in a Xen dom0 and a Hyper-V root partition
    /// too. What a CPU says of itself is then made up.
    pub fn cpus_are_lent(&self) -> bool {
        self.is_metal() == Some(false)
    }

    /// Whether we run inside a container.
    pub fn is_container(&self) -> Option<bool> {
        self.container.get().map(Option::is_some)
    }
}

/// Reads this subsystem.
pub fn observe(reader: &Reader<'_>) -> Virtualisation {
    let kind = kind::observe(reader);
    let guest = kind.get().is_none_or(Kind::is_guest);
    Virtualisation {
        container: container::observe(reader),
        steal: guest::steal(reader),
        balloon: if guest { guest::balloon(reader) } else { on_metal() },
        emulated_devices: if guest { devices::observe(reader) } else { on_metal() },
        xen_command_line: kind::xen_command_line(reader, kind.get()),
        kind,
    }
}

/// For what only exists in a guest.
fn on_metal<T>() -> Observed<T> {
    Observed::unavailable("virtualisation", crate::Reason::NotApplicable("not a guest".into()))
}

#[cfg(test)]
mod tests {
    use zenkai_host::FakeHost;

    use super::*;

    #[test]
    fn an_empty_world_claims_nothing() {
        let facts = observe(&Reader::new(&FakeHost::new(&[])));
        assert_eq!((facts.is_guest(), facts.is_metal(), facts.is_container()), (None, None, None));
        assert!(facts.steal.get().is_none());
        assert!(facts.xen_command_line.get().is_none());
    }

    #[test]
    fn metal_has_no_guest_facts() {
        let host = FakeHost::new(&[
            ("/proc/cpuinfo", "processor\t: 0\nvendor_id\t: GenuineIntel\nflags\t\t: fpu aes\n"),
            ("/proc/1/comm", "systemd\n"),
            ("/proc/2/comm", "kthreadd\n"),
        ]);
        let facts = observe(&Reader::new(&host));
        assert_eq!(
            (facts.is_guest(), facts.is_metal(), facts.is_container()),
            (Some(false), Some(true), Some(false))
        );
        assert!(matches!(facts.balloon.reason(), Some(crate::Reason::NotApplicable(_))));
    }
}
