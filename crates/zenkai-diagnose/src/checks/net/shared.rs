//! What the checks of network devices and interrupts share.

use zenkai_facts::{
    CpuSet, Facts,
    net::{Hardware, Interface},
};

use crate::{Outcome, need};

/// Drivers of cards that only exist in a hypervisor or a cloud: what they say of speed, rings and coalescing is
/// made up or set by someone else.
pub(in crate::checks) const PARAVIRTUAL: [&str; 9] =
    ["virtio_net", "vmxnet3", "hv_netvsc", "vif", "xen_netfront", "ena", "gve", "mana", "ibmveth"];

/// Drivers of virtual functions. A guest sees no `physfn` that would give them away.
const VIRTUAL_FUNCTIONS: [&str; 5] = ["iavf", "i40evf", "ixgbevf", "igbvf", "cxgb4vf"];
/// Drivers of USB network functions that leave the duplex mode at 0, which reads as "half" (`usbnet.c`,
/// `usbnet_get_link_ksettings_internal`). The management controllers of most servers are such a device, and the
/// line to it is no cable.
const USB_CLASS: [&str; 5] = ["cdc_ether", "cdc_ncm", "cdc_eem", "rndis_host", "cdc_mbim"];

/// A network card that is up, with what is behind it.
pub(in crate::checks) struct Card<'f> {
    pub(in crate::checks) interface: &'f Interface,
    pub(in crate::checks) hardware: &'f Hardware,
}

impl Card<'_> {
    pub(in crate::checks) fn name(&self) -> &str {
        &self.interface.name
    }

    pub(in crate::checks) fn driver(&self) -> &str {
        self.hardware.driver.text().unwrap_or_default()
    }

    /// Whether it has a wire of its own: no virtual function, no hypervisor's device.
    pub(in crate::checks) fn has_wire(&self) -> bool {
        let lists: [&[&str]; 3] = [&PARAVIRTUAL, &VIRTUAL_FUNCTIONS, &USB_CLASS];
        !self.hardware.virtual_function && !lists.iter().any(|list| list.contains(&self.driver()))
    }

    /// Whether it has a PCIe link, as a physical card that was handed to a guest has. A virtual function shows none
    /// (SR-IOV specification: its link status is reserved), nor do most imitated cards.
    fn has_link_of_its_own(&self) -> bool {
        let device = self.hardware.pcie.get().and_then(|path| path.first());
        device.is_some_and(|device| device.current_width.value().is_some())
    }

    /// The link speed, when it is one that the driver did not make up.
    pub(in crate::checks) fn speed_mbps(&self) -> Option<u32> {
        self.interface.speed_mbps.value()
    }

    /// Whether the link is known to be slower than this. A hypervisor's device of unknown speed is not.
    pub(in crate::checks) fn is_slower_than(&self, mbps: u32) -> bool {
        self.speed_mbps().is_some_and(|speed| speed < mbps)
    }

    /// One of the driver's own counters.
    pub(in crate::checks) fn counter(&self, name: &str) -> Option<u64> {
        self.hardware.ethtool.statistics.get()?.get(name).copied()
    }

    /// The largest of several counters that say the same in different drivers' words, with its name.
    pub(in crate::checks) fn largest<'n>(&self, names: &[&'n str]) -> Option<(&'n str, u64)> {
        names.iter().filter_map(|name| Some((*name, self.counter(name)?))).max_by_key(|(_, count)| *count)
    }
}

/// The network cards with a link.
pub(in crate::checks) fn cards(facts: &Facts) -> Result<Vec<Card<'_>>, Outcome> {
    let interfaces = need(&facts.net.interfaces)?.iter();
    let card = |interface: &'_ Interface| interface.is_up();
    Ok(interfaces
        .filter(|interface| card(interface))
        .filter_map(|interface| Some(Card { interface, hardware: interface.card()? }))
        .collect())
}

/// The network cards with a wire of their own and a link on it.
pub(in crate::checks) fn wired(facts: &Facts) -> Result<Vec<Card<'_>>, Outcome> {
    let cards = cards(facts)?;
    let found = !cards.is_empty();
    let guest = facts.virtualisation.is_guest() == Some(true);
    let wired: Vec<_> =
        cards.into_iter().filter(|card| card.has_wire() && (!guest || card.has_link_of_its_own())).collect();
    if found && wired.is_empty() {
        return Err(Outcome::not_applicable("the network cards here are a hypervisor's"));
    }
    Ok(wired)
}

/// Whether `part` is at least so many millionths of `whole`.
pub(in crate::checks) fn at_least(part: u64, whole: u64, millionths: u64) -> bool {
    u128::from(part) * 1_000_000 >= u128::from(whole) * u128::from(millionths)
}

/// A share in per cent, with as many digits as make sense.
pub(in crate::checks) fn percent(part: u64, whole: u64) -> String {
    // Not all parts are counted in their whole: damaged packets are not among those received.
    if part > whole {
        return "more than 100 %".to_owned();
    }
    let hundredths = u128::from(part) * 10_000 / u128::from(whole.max(1));
    match (hundredths / 100, hundredths % 100) {
        (0, 0) => "less than 0.01 %".to_owned(),
        (0, rest) => format!("0.{rest:02} %"),
        (whole, rest) if whole < 10 => format!("{whole}.{} %", rest / 10),
        (whole, _) => format!("{whole} %"),
    }
}

/// The kernel's mask form of a set: words of 32 bits, highest first.
pub(in crate::checks) fn mask(cpus: &CpuSet) -> String {
    let highest = cpus.iter().last().unwrap_or(0);
    let mut words = vec![0_u32; highest as usize / 32 + 1];
    for cpu in cpus.iter() {
        if let Some(word) = words.get_mut(cpu as usize / 32) {
            *word |= 1 << (cpu % 32);
        }
    }
    let mut texts = words.iter().rev();
    let first = texts.next().map(|word| format!("{word:x}")).unwrap_or_default();
    texts.fold(first, |text, word| format!("{text},{word:08x}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arithmetic() {
        assert!(at_least(1, 1_000_000, 1) && !at_least(1, 1_000_001, 1) && at_least(u64::MAX, u64::MAX, 1));
        assert_eq!(percent(1, 1_000_000), "less than 0.01 %");
        assert_eq!(percent(25, 10_000), "0.25 %");
        assert_eq!(percent(23, 1_000), "2.3 %");
        assert_eq!(percent(5, 10), "50 %");
        assert_eq!(percent(10, 10), "100 %");
        assert_eq!(percent(u64::MAX, 0), "more than 100 %");
        assert_eq!(mask(&"0-3,32".parse().unwrap()), "1,0000000f");
        assert_eq!(mask(&"1".parse().unwrap()), "2");
    }
}
