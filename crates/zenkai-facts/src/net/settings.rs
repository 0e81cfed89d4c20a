//! Settings of the network stack (`Documentation/admin-guide/sysctl/net.rst`,
//! `Documentation/networking/ip-sysctl.rst`).

use serde::Serialize;

use crate::{Observed, Reader, reader::join};

/// Settings of the network stack. Those of a container may be absent: not every setting has a copy per namespace.
#[derive(Debug, Clone, Serialize)]
pub struct Settings {
    /// Largest receive buffer a program may ask for (`net.core.rmem_max`).
    pub rmem_max_bytes: Observed<u64>,
    /// Largest send buffer a program may ask for (`net.core.wmem_max`).
    pub wmem_max_bytes: Observed<u64>,
    /// Receive buffer without asking (`net.core.rmem_default`).
    pub rmem_default_bytes: Observed<u64>,
    /// Send buffer without asking (`net.core.wmem_default`).
    pub wmem_default_bytes: Observed<u64>,
    /// Packets that may wait for a CPU (`net.core.netdev_max_backlog`).
    pub netdev_max_backlog: Observed<u64>,
    /// Packets of one round of receive work (`net.core.netdev_budget`).
    pub netdev_budget: Observed<u64>,
    /// Time of one round of receive work (`net.core.netdev_budget_usecs`).
    pub netdev_budget_us: Observed<u64>,
    /// Packets of one device in one round (`net.core.dev_weight`).
    pub dev_weight: Observed<u64>,
    /// Most connections that may wait to be accepted (`net.core.somaxconn`).
    pub somaxconn: Observed<u64>,
    /// Queueing discipline of new devices (`net.core.default_qdisc`).
    pub default_qdisc: Observed<String>,
    /// Busy polling of sockets in poll and select (`net.core.busy_poll`).
    pub busy_poll_us: Observed<u64>,
    /// Busy polling of reads (`net.core.busy_read`).
    pub busy_read_us: Observed<u64>,
    /// Flows that receive flow steering remembers; 0 is off (`net.core.rps_sock_flow_entries`).
    pub rps_sock_flow_entries: Observed<u64>,
    /// Receive buffer of a TCP socket: least, first, most (`net.ipv4.tcp_rmem`).
    pub tcp_rmem_bytes: Observed<[u64; 3]>,
    /// Send buffer of a TCP socket: least, first, most (`net.ipv4.tcp_wmem`).
    pub tcp_wmem_bytes: Observed<[u64; 3]>,
    /// Memory of all TCP sockets in pages: no worry, pressure, most (`net.ipv4.tcp_mem`).
    pub tcp_mem_pages: Observed<[u64; 3]>,
    /// Congestion control of new connections (`net.ipv4.tcp_congestion_control`).
    pub tcp_congestion_control: Observed<String>,
    /// Half-open connections that are remembered (`net.ipv4.tcp_max_syn_backlog`).
    pub tcp_max_syn_backlog: Observed<u64>,
    /// Windows beyond 64 KiB (`net.ipv4.tcp_window_scaling`).
    pub tcp_window_scaling: Observed<bool>,
    /// Selective acknowledgement (`net.ipv4.tcp_sack`).
    pub tcp_sack: Observed<bool>,
    /// Whether receive buffers grow by themselves (`net.ipv4.tcp_moderate_rcvbuf`).
    pub tcp_moderate_rcvbuf: Observed<bool>,
    /// Whether a connection starts slowly again after a pause (`net.ipv4.tcp_slow_start_after_idle`).
    pub tcp_slow_start_after_idle: Observed<bool>,
    /// Time stamps: 0 off, 1 on with a random offset, 2 on (`net.ipv4.tcp_timestamps`).
    pub tcp_timestamps: Observed<u64>,
    /// Reuse of connections that wait for their end: 0 off, 1 on, 2 loopback only (`net.ipv4.tcp_tw_reuse`).
    pub tcp_tw_reuse: Observed<u64>,
    /// Finding the path MTU without ICMP: 0 off, 1 after a black hole, 2 always (`net.ipv4.tcp_mtu_probing`).
    pub tcp_mtu_probing: Observed<u64>,
    /// First and last port of outgoing connections (`net.ipv4.ip_local_port_range`).
    pub local_port_range: Observed<[u64; 2]>,
    /// Whether IPv4 packets are forwarded (`net.ipv4.ip_forward`).
    pub ipv4_forwarding: Observed<bool>,
    /// Whether IPv6 packets are forwarded (`net.ipv6.conf.all.forwarding`).
    pub ipv6_forwarding: Observed<bool>,
}

impl Settings {
    /// Whether this machine is a router as far as the kernel is told.
    pub fn forwards(&self) -> bool {
        self.ipv4_forwarding.value() == Some(true) || self.ipv6_forwarding.value() == Some(true)
    }
}

pub(super) fn observe(reader: &Reader<'_>) -> Settings {
    let core = |name: &str| join("/proc/sys/net/core", name);
    let ipv4 = |name: &str| join("/proc/sys/net/ipv4", name);
    Settings {
        rmem_max_bytes: reader.number(&core("rmem_max")),
        wmem_max_bytes: reader.number(&core("wmem_max")),
        rmem_default_bytes: reader.number(&core("rmem_default")),
        wmem_default_bytes: reader.number(&core("wmem_default")),
        netdev_max_backlog: reader.number(&core("netdev_max_backlog")),
        netdev_budget: reader.number(&core("netdev_budget")),
        netdev_budget_us: reader.number(&core("netdev_budget_usecs")),
        dev_weight: reader.number(&core("dev_weight")),
        somaxconn: reader.number(&core("somaxconn")),
        default_qdisc: reader.text(&core("default_qdisc")),
        busy_poll_us: reader.number(&core("busy_poll")),
        busy_read_us: reader.number(&core("busy_read")),
        rps_sock_flow_entries: reader.number(&core("rps_sock_flow_entries")),
        tcp_rmem_bytes: numbers(reader, &ipv4("tcp_rmem")),
        tcp_wmem_bytes: numbers(reader, &ipv4("tcp_wmem")),
        tcp_mem_pages: numbers(reader, &ipv4("tcp_mem")),
        tcp_congestion_control: reader.text(&ipv4("tcp_congestion_control")),
        tcp_max_syn_backlog: reader.number(&ipv4("tcp_max_syn_backlog")),
        tcp_window_scaling: reader.flag(&ipv4("tcp_window_scaling")),
        tcp_sack: reader.flag(&ipv4("tcp_sack")),
        tcp_moderate_rcvbuf: reader.flag(&ipv4("tcp_moderate_rcvbuf")),
        tcp_slow_start_after_idle: reader.flag(&ipv4("tcp_slow_start_after_idle")),
        tcp_timestamps: reader.number(&ipv4("tcp_timestamps")),
        tcp_tw_reuse: reader.number(&ipv4("tcp_tw_reuse")),
        tcp_mtu_probing: reader.number(&ipv4("tcp_mtu_probing")),
        local_port_range: numbers(reader, &ipv4("ip_local_port_range")),
        // Accepts 1 and larger (`devinet_sysctl_forward()`), but shows what was written.
        ipv4_forwarding: reader.number::<u64>(&ipv4("ip_forward")).map(|value| value != 0),
        ipv6_forwarding: reader
            .number::<u64>("/proc/sys/net/ipv6/conf/all/forwarding")
            .map(|value| value != 0),
    }
}

fn numbers<const COUNT: usize>(reader: &Reader<'_>, path: &str) -> Observed<[u64; COUNT]> {
    reader.words(path).parse(|words| {
        let numbers: Result<Vec<u64>, _> = words.iter().map(|word| word.parse()).collect();
        numbers.ok().and_then(|numbers| numbers.try_into().ok()).ok_or_else(|| format!("not {COUNT} numbers"))
    })
}
