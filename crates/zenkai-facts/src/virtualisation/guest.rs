//! What a hypervisor takes from a guest.

use serde::Serialize;

use crate::{Observed, Reader, Reason};

/// CPU time that a hypervisor gave to others, from the first line of `/proc/stat`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Steal {
    /// Ticks (`USER_HZ`) of all CPUs since boot: user, nice, system, idle, iowait, irq, softirq and steal.
    pub total_ticks: u64,
    /// Ticks in none of idle and iowait: what we ran or wanted to run.
    pub wanted_ticks: u64,
    /// Ticks stolen.
    pub steal_ticks: u64,
    /// Stolen share of what we wanted, in thousandths; 0 when we wanted nothing.
    pub steal_per_mille: u64,
}

/// What a balloon driver gave back to the hypervisor.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Balloon {
    /// `virtio_balloon`, `vmware`, `xen`, `hv_balloon`.
    pub driver: String,
    /// Memory in the balloon now, in bytes, which the guest cannot use.
    pub size_bytes: Observed<u64>,
}

/// The stolen time since boot.
pub(super) fn steal(reader: &Reader<'_>) -> Observed<Steal> {
    reader.text("/proc/stat").parse(|text| parse_steal(&text).ok_or_else(|| "no line of all CPUs".to_owned()))
}

/// `cpu user nice system idle iowait irq softirq steal guest guest_nice` (`Documentation/filesystems/proc.rst`);
/// guest time is already in user time.
fn parse_steal(text: &str) -> Option<Steal> {
    let line = text.lines().next()?.strip_prefix("cpu ")?;
    let mut ticks = [0_u64; 8];
    let mut fields = line.split_whitespace();
    for tick in &mut ticks {
        *tick = fields.next()?.parse().ok()?;
    }
    let [_, _, _, idle, waiting, _, _, stolen] = ticks;
    let total = ticks.iter().fold(0_u64, |sum, tick| sum.saturating_add(*tick));
    let wanted = total.saturating_sub(idle.saturating_add(waiting));
    let steal_per_mille = stolen.saturating_mul(1000).checked_div(wanted).unwrap_or(0);
    Some(Steal { total_ticks: total, wanted_ticks: wanted, steal_ticks: stolen, steal_per_mille })
}

/// The balloon that is in this guest, if any.
pub(super) fn balloon(reader: &Reader<'_>) -> Observed<Balloon> {
    const VIRTIO: &str = "/sys/bus/virtio/drivers/virtio_balloon";
    const XEN: &str = "/sys/devices/system/xen_memory/xen_memory0";
    let virtio = reader.names(VIRTIO);
    if virtio.get().is_some_and(|names| names.iter().any(|name| is_virtio_device(name))) {
        let size_bytes = vmstat_balloon(reader);
        return virtio.map(|_| Balloon { driver: "virtio_balloon".into(), size_bytes });
    }
    let xen = reader.names(XEN);
    if xen.get().is_some() {
        return xen.map(|_| Balloon { driver: "xen".into(), size_bytes: xen_balloon(reader) });
    }
    let vmware = reader.text("/sys/kernel/debug/vmmemctl");
    if vmware.get().is_some() || vmware.reason() == Some(&Reason::Denied) && has_module(reader, "vmw_balloon")
    {
        let size_bytes =
            vmware.parse(|text| vmware_balloon(&text).ok_or_else(|| "no `current:` line".to_owned()));
        return Observed::known(
            "/sys/kernel/debug/vmmemctl",
            Balloon { driver: "vmware".into(), size_bytes },
        );
    }
    let hyper_v = reader.names("/sys/bus/vmbus/drivers/hv_balloon");
    hyper_v.map(|_| Balloon {
        driver: "hv_balloon".into(),
        size_bytes: Observed::unavailable("/sys/bus/vmbus/drivers/hv_balloon", Reason::Absent),
    })
}

fn has_module(reader: &Reader<'_>, name: &str) -> bool {
    reader.names(&format!("/sys/module/{name}")).get().is_some()
}

fn is_virtio_device(name: &str) -> bool {
    name.strip_prefix("virtio").is_some_and(|number| number.parse::<u32>().is_ok())
}

/// Pages in the balloon: the gauge of newer kernels, else inflations less deflations (`include/linux/vm_event_item.h`).
fn vmstat_balloon(reader: &Reader<'_>) -> Observed<u64> {
    reader.text("/proc/vmstat").parse(|text| {
        let field = |name: &str| {
            text.lines()
                .find_map(|line| line.strip_prefix(name)?.strip_prefix(' ')?.trim().parse::<u64>().ok())
        };
        let counted = || Some(field("balloon_inflate")?.saturating_sub(field("balloon_deflate")?));
        let pages = field("nr_balloon_pages").or_else(counted);
        // Balloon pages are always of 4 KiB, whatever the page size (virtio 1.2, 5.5.6).
        pages.map(|pages| pages.saturating_mul(4096)).ok_or_else(|| "no balloon counters".to_owned())
    })
}

/// `low` and `high` count what the balloon took (`drivers/xen/xen-balloon.c`).
fn xen_balloon(reader: &Reader<'_>) -> Observed<u64> {
    let info = "/sys/devices/system/xen_memory/xen_memory0/info";
    let high = reader.number::<u64>(&format!("{info}/high_kb")).value().unwrap_or(0);
    reader.number::<u64>(&format!("{info}/low_kb")).map(|low| low.saturating_add(high).saturating_mul(1024))
}

/// `current: 1234 pages` (`drivers/misc/vmw_balloon.c`).
fn vmware_balloon(text: &str) -> Option<u64> {
    let line = text.lines().find(|line| line.trim_start().starts_with("current"))?;
    let pages = line.split(':').nth(1)?.split_whitespace().next()?.parse::<u64>().ok()?;
    Some(pages.saturating_mul(4096))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use zenkai_host::FakeHost;

    use super::*;

    #[test]
    fn stolen_of_what_was_wanted() {
        let steal = parse_steal("cpu  100 0 100 1000 0 0 0 50 30 0\ncpu0 1 2\n").unwrap();
        assert_eq!((steal.wanted_ticks, steal.steal_per_mille), (250, 200));
        assert_eq!(parse_steal("cpu  1 2 3\n"), None, "kernels of 2.6.10 and before have no steal");
        assert_eq!(parse_steal("cpu  0 0 0 0 0 0 0 0 0 0\n").unwrap().steal_per_mille, 0);
    }

    #[test]
    fn the_size_of_a_balloon() {
        let host = FakeHost::new(&[("/proc/vmstat", "balloon_inflate 300\nballoon_deflate 44\n")])
            .link("/sys/bus/virtio/drivers/virtio_balloon/virtio0", "/sys/devices/virtio0")
            .file("/sys/devices/virtio0/device", "0x0005\n");
        let balloon = balloon(&Reader::new(&host)).get().cloned().unwrap();
        assert_eq!(balloon.size_bytes.value(), Some(256 * 4096));
        assert_eq!(vmware_balloon("target:  10 pages\ncurrent:  7 pages\n"), Some(7 * 4096));
    }

    proptest! {
        #[test]
        fn parsers_never_panic(text in "(cpu |current: ?)?[ -~\n]{0,200}") {
            let _ = parse_steal(&text);
            let _ = vmware_balloon(&text);
        }
    }
}
