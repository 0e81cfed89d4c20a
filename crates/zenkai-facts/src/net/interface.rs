//! One network interface (`Documentation/ABI/testing/sysfs-class-net`).

use serde::Serialize;

use super::{CLASS_DIR, bond, bond::Bond, ethtool, ethtool::Ethtool};
use crate::{
    CpuSet, Observed, Reader, Reason,
    pcie::{Hop, Paths},
    reader::join,
};

/// More queues than this are counted but not looked at one by one.
const QUEUE_LIMIT: usize = 512;

/// What an interface is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// The loopback device.
    Loopback,
    /// Ethernet on a device: a card, or what a hypervisor shows as one.
    Device,
    /// A port of a switch inside a card (SR-IOV representor), which has no wire of its own.
    Representor,
    /// InfiniBand.
    Infiniband,
    /// Wireless.
    Wireless,
    /// A bond of several devices.
    Bond,
    /// A team of several devices.
    Team,
    /// A bridge.
    Bridge,
    /// A VLAN on another interface.
    Vlan,
    /// A tun or tap device, the other end of which is a program.
    Tap,
    /// Anything else without hardware: veth, dummy, ifb, tunnels, macvlan …
    Virtual,
}

/// One network interface.
#[derive(Debug, Clone, Serialize)]
pub struct Interface {
    /// Its name.
    pub name: String,
    /// What it is.
    pub kind: Kind,
    /// `up`, `down`, `unknown` (virtual devices), `lowerlayerdown`, `dormant` …
    pub operstate: Observed<String>,
    /// Whether there is a signal on the wire.
    pub carrier: Observed<bool>,
    /// How often the carrier came or went since the interface exists.
    pub carrier_changes: Observed<u64>,
    /// Link speed in Mbit/s. Not applicable without a link, or where the driver knows none (virtio).
    pub speed_mbps: Observed<u32>,
    /// `full` or `half`.
    pub duplex: Observed<String>,
    /// Largest packet in bytes.
    pub mtu_bytes: Observed<u32>,
    /// Packets the default queueing discipline may hold.
    pub tx_queue_len: Observed<u64>,
    /// Interface flags (`linux/if.h`).
    pub flags: Observed<u32>,
    /// The bond, team or bridge it belongs to.
    pub master: Option<String>,
    /// Interfaces it is built on.
    pub lower: Vec<String>,
    /// Interfaces built on it.
    pub upper: Vec<String>,
    /// Traffic and error counters since the interface exists; not looked at for interfaces without hardware,
    /// except bonds, teams and bridges.
    pub statistics: Option<Statistics>,
    /// State of a bond.
    pub bond: Option<Bond>,
    /// The device behind it, for interfaces that are Ethernet or InfiniBand hardware or look like it.
    pub hardware: Option<Hardware>,
}

/// The device behind an interface.
#[derive(Debug, Clone, Serialize)]
pub struct Hardware {
    /// Its driver.
    pub driver: Observed<String>,
    /// Where it is, as a path in /sys/devices. For virtio the PCI function that carries it.
    pub device: Observed<String>,
    /// Who built the card, as a PCI vendor number such as `0x8086`; hypervisors put their own here.
    pub subsystem_vendor: Observed<String>,
    /// Whether the device is an SR-IOV virtual function.
    pub virtual_function: bool,
    /// The PCIe functions from the device up to the root port.
    pub pcie: Observed<Vec<Hop>>,
    /// NUMA node of the device.
    pub numa_node: Observed<u32>,
    /// CPUs near the device.
    pub local_cpus: Observed<CpuSet>,
    /// Its queues and which CPUs serve them.
    pub queues: Queues,
    /// What the driver answers to ethtool.
    pub ethtool: Ethtool,
}

impl Interface {
    /// The hardware, when it is Ethernet.
    pub fn card(&self) -> Option<&Hardware> {
        self.hardware.as_ref().filter(|_| self.kind == Kind::Device)
    }

    /// Whether packets can flow: carrier, or a state that says so.
    pub fn is_up(&self) -> bool {
        self.carrier.value() == Some(true) && self.operstate.text().is_none_or(|state| state != "down")
    }

    /// Packets in both directions since the interface exists, when counted.
    pub fn packets(&self) -> Option<u64> {
        let statistics = self.statistics.as_ref()?;
        Some(statistics.rx_packets.value()?.saturating_add(statistics.tx_packets.value()?))
    }
}

/// The queues of an interface.
#[derive(Debug, Clone, Serialize)]
pub struct Queues {
    /// Number of receive queues.
    pub rx_count: Observed<u32>,
    /// Number of transmit queues.
    pub tx_count: Observed<u32>,
    /// Receive queues; `cpus` are those that software spreads packets over (`rps_cpus`), empty when it does not.
    pub rx: Vec<Queue>,
    /// Transmit queues; `cpus` are those that prefer this queue (`xps_cpus`). Absent on a single queue.
    pub tx: Vec<Queue>,
    /// Times a transmit queue stood still until the watchdog stepped in, over all queues.
    pub tx_timeouts: Observed<u64>,
}

/// One queue.
#[derive(Debug, Clone, Serialize)]
pub struct Queue {
    /// N of `rx-N` or `tx-N`.
    pub number: u32,
    /// CPUs the kernel was told to use for it.
    pub cpus: Observed<CpuSet>,
}

/// Counters of an interface since it exists (`statistics/`, `struct rtnl_link_stats64`).
#[derive(Debug, Clone, Serialize)]
pub struct Statistics {
    /// Packets received.
    pub rx_packets: Observed<u64>,
    /// Packets sent.
    pub tx_packets: Observed<u64>,
    /// Bytes received.
    pub rx_bytes: Observed<u64>,
    /// Bytes sent.
    pub tx_bytes: Observed<u64>,
    /// Bad packets received, of all kinds.
    pub rx_errors: Observed<u64>,
    /// Packets that failed to be sent.
    pub tx_errors: Observed<u64>,
    /// Packets received and thrown away: no memory, or nobody wanted them.
    pub rx_dropped: Observed<u64>,
    /// Packets thrown away before they were sent.
    pub tx_dropped: Observed<u64>,
    /// Packets the device lost because the host had no buffer ready.
    pub rx_missed_errors: Observed<u64>,
    /// Packets lost in the device's own memory.
    pub rx_fifo_errors: Observed<u64>,
    /// Packets with a bad checksum on the wire.
    pub rx_crc_errors: Observed<u64>,
    /// Collisions; none on a full-duplex link.
    pub collisions: Observed<u64>,
}

pub(super) fn observe(reader: &Reader<'_>, paths: &Paths<'_>) -> Observed<Vec<Interface>> {
    // `bonding_masters` is a file among the interfaces.
    reader.names(CLASS_DIR).map(|names| {
        names
            .into_iter()
            .filter(|name| name != "bonding_masters")
            .map(|name| read(reader, paths, name))
            .collect()
    })
}

/// The names in an interface's directory tell most of what it is, at the price of one listing.
struct Entries(Vec<String>);

impl Entries {
    fn has(&self, name: &str) -> bool {
        self.0.iter().any(|entry| entry == name)
    }

    fn after(&self, prefix: &str) -> Vec<String> {
        self.0.iter().filter_map(|entry| entry.strip_prefix(prefix)).map(str::to_owned).collect()
    }
}

fn read(reader: &Reader<'_>, paths: &Paths<'_>, name: String) -> Interface {
    let dir = join(CLASS_DIR, &name);
    let at = |attribute: &str| join(&dir, attribute);
    let entries = Entries(reader.names(&dir).get().cloned().unwrap_or_default());
    let kind = kind(reader, &dir, &entries);
    let has_hardware = matches!(kind, Kind::Device | Kind::Infiniband) && entries.has("device");
    let counted = has_hardware || matches!(kind, Kind::Bond | Kind::Team | Kind::Bridge);
    let master = entries.has("master").then(|| reader.resolve(&at("master")).text().and_then(last)).flatten();
    Interface {
        operstate: reader.text(&at("operstate")),
        carrier: when_up(&reader.flag(&at("carrier"))),
        carrier_changes: on_wire(counted, &at("carrier_changes"), |path| reader.number(path)),
        speed_mbps: on_wire(counted, &at("speed"), |path| speed(&reader.parse(path))),
        duplex: on_wire(counted, &at("duplex"), |path| duplex(&reader.text(path))),
        mtu_bytes: reader.number(&at("mtu")),
        tx_queue_len: reader.number(&at("tx_queue_len")),
        flags: reader.text(&at("flags")).parse(|text| hexadecimal(&text)),
        master,
        lower: entries.after("lower_"),
        upper: entries.after("upper_"),
        statistics: counted.then(|| statistics(reader, &at("statistics"))),
        bond: (kind == Kind::Bond).then(|| bond::observe(reader, &dir)),
        hardware: has_hardware.then(|| hardware(reader, paths, &dir, &name)),
        name,
        kind,
    }
}

fn hardware(reader: &Reader<'_>, paths: &Paths<'_>, dir: &str, name: &str) -> Hardware {
    let link = join(dir, "device");
    let device = reader.resolve(&link).map(|path| match path.rsplit_once('/') {
        Some((parent, own)) if own.starts_with("virtio") => parent.to_owned(),
        _ => path,
    });
    // When the link leads nowhere, reading through it tells why.
    let near = |attribute: &str| join(device.text().unwrap_or(&link), attribute);
    let driver = reader.resolve(&join(&link, "driver"));
    Hardware {
        driver: driver.parse(|path| last(&path).ok_or_else(|| "no name".to_owned())),
        subsystem_vendor: reader.text(&near("subsystem_vendor")),
        virtual_function: reader.resolve(&near("physfn")).get().is_some(),
        pcie: paths.path(device.text().unwrap_or(&link)),
        numa_node: node(&reader.parse(&near("numa_node"))),
        local_cpus: reader.cpu_set(&near("local_cpulist")),
        queues: queues(reader, &join(dir, "queues")),
        ethtool: ethtool::observe(reader, name),
        device,
    }
}

fn kind(reader: &Reader<'_>, dir: &str, entries: &Entries) -> Kind {
    // ARPHRD_LOOPBACK and ARPHRD_INFINIBAND (`linux/if_arp.h`).
    match reader.number::<u32>(&join(dir, "type")).value() {
        Some(772) => return Kind::Loopback,
        Some(32) => return Kind::Infiniband,
        _ => {}
    }
    let uevent = reader.text(&join(dir, "uevent"));
    let devtype = uevent.text().and_then(|text| text.lines().find_map(|line| line.strip_prefix("DEVTYPE=")));
    match devtype {
        _ if entries.has("bonding") => Kind::Bond,
        _ if entries.has("bridge") => Kind::Bridge,
        _ if entries.has("tun_flags") => Kind::Tap,
        _ if entries.has("phy80211") || entries.has("wireless") => Kind::Wireless,
        Some("wlan") => Kind::Wireless,
        Some("vlan") => Kind::Vlan,
        Some("team") => Kind::Team,
        _ if !entries.has("device") => Kind::Virtual,
        _ if is_representor(reader.text(&join(dir, "phys_port_name")).text().unwrap_or_default()) => {
            Kind::Representor
        }
        _ => Kind::Device,
    }
}

/// Representors are called `pf0vf3`, with a controller (`c1pf0vf3`) or a sub-function (`pf0sf88`) at times
/// (`Documentation/networking/representors.rst`); an uplink is `p0`.
fn is_representor(port_name: &str) -> bool {
    let tail = port_name.find("pf").and_then(|start| port_name.get(start + 2..)).unwrap_or_default();
    tail.starts_with(|letter: char| letter.is_ascii_digit()) && (tail.contains("vf") || tail.contains("sf"))
}

/// What only means something with a wire behind it; a machine may have hundreds of interfaces without.
fn on_wire<T>(has_wire: bool, path: &str, read: impl FnOnce(&str) -> Observed<T>) -> Observed<T> {
    if has_wire {
        return read(path);
    }
    let reason = Reason::NotApplicable("there is no wire behind this interface".into());
    Observed::unavailable(path, reason)
}

/// The reading with some outcomes replaced by "does not apply".
fn unless<T: Clone, U>(
    reading: &Observed<T>,
    judge: impl FnOnce(Result<&T, &Reason>) -> Result<U, Reason>,
) -> Observed<U> {
    match judge(reading.outcome()) {
        Ok(value) => Observed::known(reading.source(), value),
        Err(reason) => Observed::unavailable(reading.source(), reason),
    }
}

/// Without `IFF_UP` the kernel answers with `EINVAL`.
fn when_up<T: Clone>(reading: &Observed<T>) -> Observed<T> {
    unless(reading, |outcome| outcome.cloned().map_err(down_is_no_failure))
}

fn down_is_no_failure(reason: &Reason) -> Reason {
    match reason {
        Reason::Failed(errno) if errno == "EINVAL" => {
            Reason::NotApplicable("the interface is down, or has no link to speak of".into())
        }
        other => other.clone(),
    }
}

/// `-1` and values beyond any cable mean "unknown"; `EINVAL` means down.
fn speed(reading: &Observed<i64>) -> Observed<u32> {
    unless(reading, |outcome| match outcome {
        Ok(speed) => u32::try_from(*speed)
            .ok()
            .filter(|speed| *speed > 0 && *speed < 100_000_000)
            .ok_or_else(|| Reason::NotApplicable("the driver knows no speed".into())),
        Err(reason) => Err(down_is_no_failure(reason)),
    })
}

fn duplex(reading: &Observed<String>) -> Observed<String> {
    unless(reading, |outcome| match outcome {
        Ok(text) if text == "full" || text == "half" => Ok(text.clone()),
        Ok(_) => Err(Reason::NotApplicable("the driver knows no duplex mode".into())),
        Err(reason) => Err(down_is_no_failure(reason)),
    })
}

/// `-1` means that the machine has one node, or that nobody told the kernel.
fn node(reading: &Observed<i64>) -> Observed<u32> {
    unless(reading, |outcome| match outcome {
        Ok(node) => {
            u32::try_from(*node).map_err(|_| Reason::NotApplicable("the device belongs to no node".into()))
        }
        Err(reason) => Err(reason.clone()),
    })
}

fn hexadecimal(text: &str) -> Result<u32, String> {
    text.strip_prefix("0x")
        .and_then(|digits| u32::from_str_radix(digits, 16).ok())
        .ok_or_else(|| "no hexadecimal number".to_owned())
}

fn last(path: impl AsRef<str>) -> Option<String> {
    path.as_ref().rsplit('/').next().filter(|name| !name.is_empty()).map(str::to_owned)
}

fn queues(reader: &Reader<'_>, dir: &str) -> Queues {
    let names = reader.names(dir);
    let numbers = |prefix: &str| -> Vec<u32> {
        let names = names.get().map_or(&[][..], Vec::as_slice);
        names.iter().filter_map(|name| name.strip_prefix(prefix)?.parse().ok()).collect()
    };
    let (rx, tx) = (numbers("rx-"), numbers("tx-"));
    let count = |numbers: &[u32]| names.clone().map(|_| u32::try_from(numbers.len()).unwrap_or(u32::MAX));
    let mask = |prefix: &str, number: u32, attribute: &str| Queue {
        number,
        cpus: reader
            .text(&join(dir, format_args!("{prefix}{number}/{attribute}")))
            .parse(|text| CpuSet::from_mask(&text)),
    };
    let timeouts = tx
        .iter()
        .take(QUEUE_LIMIT)
        .map(|number| reader.number::<u64>(&join(dir, format_args!("tx-{number}/tx_timeout"))));
    Queues {
        rx_count: count(&rx),
        tx_count: count(&tx),
        tx_timeouts: sum(dir, timeouts),
        rx: rx.iter().take(QUEUE_LIMIT).map(|number| mask("rx-", *number, "rps_cpus")).collect(),
        tx: tx.iter().take(QUEUE_LIMIT).map(|number| mask("tx-", *number, "xps_cpus")).collect(),
    }
}

/// The sum of counters, unless one of them is missing.
fn sum(dir: &str, readings: impl Iterator<Item = Observed<u64>>) -> Observed<u64> {
    let mut total = None;
    for reading in readings {
        match reading.outcome() {
            Ok(count) => total = Some(total.unwrap_or(0_u64).saturating_add(*count)),
            Err(reason) => return Observed::unavailable(reading.source(), reason.clone()),
        }
    }
    let source = join(dir, "tx-*/tx_timeout");
    match total {
        Some(total) => Observed::known(source, total),
        None => Observed::unavailable(source, Reason::Absent),
    }
}

fn statistics(reader: &Reader<'_>, dir: &str) -> Statistics {
    let count = |name: &str| reader.number(&join(dir, name));
    Statistics {
        rx_packets: count("rx_packets"),
        tx_packets: count("tx_packets"),
        rx_bytes: count("rx_bytes"),
        tx_bytes: count("tx_bytes"),
        rx_errors: count("rx_errors"),
        tx_errors: count("tx_errors"),
        rx_dropped: count("rx_dropped"),
        tx_dropped: count("tx_dropped"),
        rx_missed_errors: count("rx_missed_errors"),
        rx_fifo_errors: count("rx_fifo_errors"),
        rx_crc_errors: count("rx_crc_errors"),
        collisions: count("collisions"),
    }
}

#[cfg(test)]
mod tests {
    use zenkai_host::FakeHost;

    use super::*;

    fn interfaces(host: &FakeHost) -> Vec<Interface> {
        let reader = Reader::new(host);
        observe(&reader, &Paths::new(&reader)).get().unwrap().clone()
    }

    #[test]
    fn an_unplugged_port_has_no_speed_and_that_is_no_failure() {
        let net = "/sys/devices/pci0000:00/0000:00:03.0/net/eth0";
        let host = FakeHost::new(&[
            (&format!("{net}/speed"), "-1\n"),
            (&format!("{net}/duplex"), "unknown\n"),
            (&format!("{net}/type"), "1\n"),
            (&format!("{net}/flags"), "0x1103\n"),
            ("/sys/devices/pci0000:00/0000:00:03.0/numa_node", "-1\n"),
            ("/sys/bus/pci/drivers/igb/uevent", ""),
        ])
        .link("/sys/class/net/eth0", net)
        .link("/sys/class/net/eth0/device", "/sys/devices/pci0000:00/0000:00:03.0")
        .link(&format!("{net}/device"), "/sys/devices/pci0000:00/0000:00:03.0")
        .link("/sys/devices/pci0000:00/0000:00:03.0/driver", "/sys/bus/pci/drivers/igb")
        .unreadable(&format!("{net}/carrier"), 22);
        let eth0 = &interfaces(&host)[0];
        assert_eq!(eth0.kind, Kind::Device);
        assert_eq!(eth0.hardware.as_ref().unwrap().driver.text(), Some("igb"));
        assert_eq!(eth0.flags.value(), Some(0x1103));
        let reasons = [
            eth0.speed_mbps.reason(),
            eth0.duplex.reason(),
            eth0.carrier.reason(),
            eth0.hardware.as_ref().unwrap().numa_node.reason(),
        ];
        for reason in reasons {
            assert!(matches!(reason, Some(Reason::NotApplicable(_))), "{reason:?}");
        }
        assert!(!eth0.is_up());
    }

    #[test]
    fn kinds_without_hardware() {
        let dir = "/sys/class/net";
        let host = FakeHost::new(&[
            (&format!("{dir}/lo/type"), "772\n"),
            (&format!("{dir}/bond0/bonding/mode"), "802.3ad 4\n"),
            (&format!("{dir}/br0/bridge/stp_state"), "0\n"),
            (&format!("{dir}/tap0/tun_flags"), "0x1002\n"),
            (&format!("{dir}/eth0.5/uevent"), "DEVTYPE=vlan\nINTERFACE=eth0.5\n"),
            (&format!("{dir}/veth0/mtu"), "1500\n"),
            (&format!("{dir}/bonding_masters"), "bond0\n"),
        ]);
        let kinds: Vec<_> = interfaces(&host).into_iter().map(|i| (i.name, i.kind)).collect();
        assert_eq!(kinds.len(), 6, "{kinds:?}");
        for (name, kind) in kinds {
            let expected = match name.as_str() {
                "lo" => Kind::Loopback,
                "bond0" => Kind::Bond,
                "br0" => Kind::Bridge,
                "tap0" => Kind::Tap,
                "eth0.5" => Kind::Vlan,
                _ => Kind::Virtual,
            };
            assert_eq!(kind, expected, "{name}");
        }
    }

    #[test]
    fn representors_are_told_from_uplinks() {
        assert!(is_representor("pf0vf3") && is_representor("c1pf0vf3") && is_representor("pf0sf88"));
        assert!(!is_representor("p0") && !is_representor("") && !is_representor("pf"));
    }
}
