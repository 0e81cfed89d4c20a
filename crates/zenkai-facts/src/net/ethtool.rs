//! What a driver answers to ethtool (`linux/ethtool.h`).

use std::collections::BTreeMap;

use serde::Serialize;
use zenkai_host::{EthtoolRequest, Query, Reply};

use crate::{Observed, Reader, Reason};

/// The features that matter for speed, by their kernel names (`net/ethtool/common.c`).
pub const FEATURES: [&str; 18] = [
    "rx-checksum",
    "tx-checksum-ip-generic",
    "tx-checksum-ipv4",
    "tx-checksum-ipv6",
    "tx-scatter-gather",
    "tx-tcp-segmentation",
    "tx-tcp6-segmentation",
    "tx-udp-segmentation",
    "tx-generic-segmentation",
    "rx-gro",
    "rx-gro-hw",
    "rx-lro",
    "rx-gro-list",
    "rx-udp-gro-forwarding",
    "rx-hashing",
    "rx-ntuple-filter",
    "hw-tc-offload",
    "tx-nocache-copy",
];

/// The drivers' own counters that are kept: packets lost for want of buffers, pauses, link errors, cloud limits.
/// Every driver has its own names; those of the common ones are here.
pub const STATISTICS: [&str; 42] = [
    // No buffer ready in the host.
    "rx_no_buffer_count",
    "rx_missed_errors",
    "rx_no_dma_resources",
    "rx_out_of_buffer",
    "rx_discards_phy",
    "rx_discards",
    "rx_total_discard_pkts",
    "rx_total_ring_discards",
    "rx_drops",
    "rx_dropped",
    "rx_dropped.nic",
    "port.rx_dropped",
    "rx_fifo_errors",
    "rx_overruns",
    "rx_buf_alloc_fail",
    "rx_queue_drops",
    "tx_queue_stopped",
    "tx_queue_dropped",
    // Flow control.
    "rx_pause_ctrl_phy",
    "tx_pause_ctrl_phy",
    "rx_pause_frames",
    "tx_pause_frames",
    "rx_pause",
    "tx_pause",
    "rx_flow_control_xon",
    "rx_flow_control_xoff",
    "tx_flow_control_xon",
    "tx_flow_control_xoff",
    "link_xoff_rx",
    "link_xoff_rx.nic",
    "link_xoff_tx.nic",
    "port.link_xoff_rx",
    // Wire and link.
    "rx_crc_errors_phy",
    "rx_crc_errors",
    "rx_symbol_err_phy",
    "link_down_events_phy",
    "tx_timeout",
    "tx_tx_timeouts",
    // The card waits for PCIe.
    "outbound_pci_stalled_wr",
    "outbound_pci_stalled_rd",
    "outbound_pci_buffer_overflow",
    "dev_out_of_buffer",
];

/// Counters of a cloud that end so count packets held back at a limit of the instance.
const ALLOWANCE: &str = "_allowance_exceeded";

/// What a driver answers to ethtool.
#[derive(Debug, Clone, Serialize)]
pub struct Ethtool {
    /// Who the driver is.
    pub driver: Observed<DriverInfo>,
    /// The link.
    pub link: Observed<Link>,
    /// Ring sizes.
    pub rings: Observed<Rings>,
    /// Queue counts.
    pub channels: Observed<Channels>,
    /// Interrupt coalescing.
    pub coalesce: Observed<Coalesce>,
    /// Those of [`FEATURES`] that the kernel knows.
    pub features: Observed<Vec<Feature>>,
    /// Flow control.
    pub pause: Observed<Pause>,
    /// Energy-efficient Ethernet.
    pub eee: Observed<Eee>,
    /// Those of [`STATISTICS`], and the limits of a cloud, that the driver counts.
    pub statistics: Observed<BTreeMap<String, u64>>,
}

impl Ethtool {
    /// A feature by its kernel name.
    pub fn feature(&self, name: &str) -> Option<&Feature> {
        self.features.get()?.iter().find(|feature| feature.name == name)
    }
}

/// Who the driver is; fields that the driver leaves empty are missing.
#[derive(Debug, Clone, Serialize)]
pub struct DriverInfo {
    /// Its name.
    pub name: Option<String>,
    /// Its version; in-tree drivers show the kernel's.
    pub version: Option<String>,
    /// The device's firmware.
    pub firmware: Option<String>,
    /// Bus address.
    pub bus: Option<String>,
}

/// The link.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Link {
    /// Speed in Mbit/s, when there is a link and the driver knows.
    pub speed_mbps: Option<u32>,
    /// Whether both ends talk at once, when known.
    pub full_duplex: Option<bool>,
    /// Whether speed and duplex are negotiated.
    pub autonegotiation: Option<bool>,
    /// Fastest mode of this port.
    pub max_supported_speed_mbps: Option<u32>,
    /// Fastest mode it offers to the other side.
    pub max_advertised_speed_mbps: Option<u32>,
    /// Fastest mode the other side offers.
    pub max_partner_speed_mbps: Option<u32>,
}

/// Ring sizes in descriptors.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Rings {
    /// Receive ring.
    pub rx: u64,
    /// Largest receive ring.
    pub rx_max: u64,
    /// Transmit ring.
    pub tx: u64,
    /// Largest transmit ring.
    pub tx_max: u64,
}

/// Queue counts. Most drivers pair queues and only use `combined`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Channels {
    /// Receive only.
    pub rx: u64,
    /// Most of them.
    pub rx_max: u64,
    /// Transmit only.
    pub tx: u64,
    /// Most of them.
    pub tx_max: u64,
    /// Both.
    pub combined: u64,
    /// Most of them.
    pub combined_max: u64,
}

/// Interrupt coalescing.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Coalesce {
    /// Time a receive interrupt may be held back.
    pub rx_us: u64,
    /// Packets after which it is sent anyway.
    pub rx_frames: u64,
    /// Time a transmit interrupt may be held back.
    pub tx_us: u64,
    /// Packets after which it is sent anyway.
    pub tx_frames: u64,
    /// Whether the driver fits the receive values to the traffic.
    pub adaptive_rx: bool,
    /// Whether the driver fits the transmit values to the traffic.
    pub adaptive_tx: bool,
}

/// A feature (offload) of the device.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Feature {
    /// The kernel's name for it.
    pub name: String,
    /// Whether it is on.
    pub active: bool,
    /// Whether it can be switched.
    pub changeable: bool,
    /// Whether someone asked for it; requested and not active means that another feature is missing.
    pub requested: bool,
}

/// Flow control.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Pause {
    /// Whether it is negotiated.
    pub autonegotiation: bool,
    /// Whether we stop when told to.
    pub rx: bool,
    /// Whether we tell the other side to stop.
    pub tx: bool,
}

/// Energy-efficient Ethernet.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Eee {
    /// Whether both sides agreed on it.
    pub active: bool,
    /// Whether it is switched on here.
    pub enabled: bool,
    /// Whether our transmitter goes to sleep.
    pub tx_lpi_enabled: bool,
    /// Silence after which it goes to sleep.
    pub tx_lpi_timer_us: u64,
}

pub(super) fn observe(reader: &Reader<'_>, name: &str) -> Ethtool {
    Ethtool {
        driver: ask(reader, name, EthtoolRequest::Driver, |reply| reply.text().map(driver)),
        link: ask(reader, name, EthtoolRequest::Link, link),
        rings: ask(reader, name, EthtoolRequest::Rings, |reply| {
            Some(Rings {
                rx: reply.named("rx")?,
                rx_max: reply.named("rx_max")?,
                tx: reply.named("tx")?,
                tx_max: reply.named("tx_max")?,
            })
        }),
        channels: ask(reader, name, EthtoolRequest::Channels, |reply| {
            Some(Channels {
                rx: reply.named("rx")?,
                rx_max: reply.named("rx_max")?,
                tx: reply.named("tx")?,
                tx_max: reply.named("tx_max")?,
                combined: reply.named("combined")?,
                combined_max: reply.named("combined_max")?,
            })
        }),
        coalesce: ask(reader, name, EthtoolRequest::Coalesce, |reply| {
            Some(Coalesce {
                rx_us: reply.named("rx_usecs")?,
                rx_frames: reply.named("rx_frames")?,
                tx_us: reply.named("tx_usecs")?,
                tx_frames: reply.named("tx_frames")?,
                adaptive_rx: reply.named("adaptive_rx")? != 0,
                adaptive_tx: reply.named("adaptive_tx")? != 0,
            })
        }),
        features: ask(reader, name, EthtoolRequest::Features, features),
        pause: ask(reader, name, EthtoolRequest::Pause, |reply| {
            Some(Pause {
                autonegotiation: reply.named("autoneg")? != 0,
                rx: reply.named("rx")? != 0,
                tx: reply.named("tx")? != 0,
            })
        }),
        eee: ask(reader, name, EthtoolRequest::Eee, |reply| {
            Some(Eee {
                active: reply.named("active")? != 0,
                enabled: reply.named("enabled")? != 0,
                tx_lpi_enabled: reply.named("tx_lpi_enabled")? != 0,
                tx_lpi_timer_us: reply.named("tx_lpi_timer_us")?,
            })
        }),
        statistics: ask(reader, name, EthtoolRequest::Statistics, statistics),
    }
}

/// A driver that does not have what is asked for says `EOPNOTSUPP`: that is an answer, not a failure.
fn ask<T>(
    reader: &Reader<'_>,
    name: &str,
    request: EthtoolRequest,
    read: impl FnOnce(&Reply) -> Option<T>,
) -> Observed<T> {
    let query = Query::Ethtool { device: name.to_owned(), request };
    let unsupported = |reason: &Reason| *reason == Reason::Failed("EOPNOTSUPP".to_owned());
    reader.query(&query, read).not_applicable_when(unsupported, "this driver does not offer it")
}

fn driver(text: &str) -> DriverInfo {
    let field = |name: &str| {
        text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' ')).map(str::to_owned)
    };
    DriverInfo {
        name: field("driver"),
        version: field("version"),
        firmware: field("firmware"),
        bus: field("bus"),
    }
}

fn link(reply: &Reply) -> Option<Link> {
    let speed = |name: &str| reply.named(name).and_then(|value| u32::try_from(value).ok());
    let switch = |value: Option<u64>| match value {
        Some(0) => Some(false),
        Some(1) => Some(true),
        _ => None,
    };
    // Every link has these two; without them the answer is none.
    reply.named("duplex").or_else(|| reply.named("autoneg"))?;
    Some(Link {
        speed_mbps: speed("speed_mbps"),
        full_duplex: switch(reply.named("duplex")),
        autonegotiation: switch(reply.named("autoneg")),
        max_supported_speed_mbps: speed("max_supported_speed_mbps"),
        max_advertised_speed_mbps: speed("max_advertised_speed_mbps"),
        max_partner_speed_mbps: speed("max_partner_speed_mbps"),
    })
}

fn features(reply: &Reply) -> Option<Vec<Feature>> {
    let Reply::Named(all) = reply else { return None };
    let known = all.iter().filter(|(name, _)| FEATURES.contains(&name.as_str()));
    Some(
        known
            .map(|(name, bits)| Feature {
                name: name.clone(),
                active: bits & 2 != 0,
                changeable: bits & 1 != 0 && bits & 4 == 0,
                requested: bits & 8 != 0,
            })
            .collect(),
    )
}

fn statistics(reply: &Reply) -> Option<BTreeMap<String, u64>> {
    let Reply::Named(all) = reply else { return None };
    let mut kept: BTreeMap<String, u64> = BTreeMap::new();
    for (name, value) in all {
        if STATISTICS.contains(&name.as_str()) || name.ends_with(ALLOWANCE) {
            let total = kept.entry(name.clone()).or_default();
            *total = total.saturating_add(*value);
        }
    }
    Some(kept)
}

#[cfg(test)]
mod tests {
    use zenkai_host::FakeHost;

    use super::*;

    #[test]
    fn bits_become_words() {
        let named = |pairs: &[(&str, u64)]| {
            Reply::Named(pairs.iter().map(|(name, value)| ((*name).to_owned(), *value)).collect())
        };
        let all =
            features(&named(&[("rx-gro", 11), ("rx-lro", 4), ("unknown", 3), ("rx-hashing", 1)])).unwrap();
        assert_eq!(all.len(), 3);
        assert!(all[0].active && all[0].changeable && all[0].requested);
        assert!(!all[1].changeable && !all[1].active);
        assert!(all[2].changeable && !all[2].active);
        let kept =
            statistics(&named(&[("rx_drops", 1), ("rx_drops", 2), ("pps_allowance_exceeded", 5), ("x", 1)]));
        assert_eq!(
            kept.unwrap().into_iter().collect::<Vec<_>>(),
            [("pps_allowance_exceeded".to_owned(), 5), ("rx_drops".to_owned(), 3)]
        );
        let unknown = link(&named(&[("duplex", 255), ("autoneg", 0)])).unwrap();
        assert_eq!(
            (unknown.speed_mbps, unknown.full_duplex, unknown.autonegotiation),
            (None, None, Some(false))
        );
        assert_eq!(link(&Reply::Numbers(vec![1])), None);
    }

    #[test]
    fn a_driver_without_the_feature_has_answered() {
        let host = FakeHost::new(&[]);
        let observed = observe(&Reader::new(&host), "eth0");
        assert!(observed.rings.is_absent());
    }
}
