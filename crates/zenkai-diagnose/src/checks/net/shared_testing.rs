//! A healthy machine for the tests of network and interrupt checks: eight CPUs, one 10 Gbit/s card.

use zenkai_host::{EthtoolRequest, FakeHost, Query, Reply};

use crate::{Check, Context, Finding, Workload, checks::testing::judge_host};

pub(in crate::checks) const ETH0: &str = "/sys/class/net/eth0";
pub(in crate::checks) const PCI: &str = "/sys/devices/pci0000:00/0000:00:03.0";

/// A request about eth0.
pub(in crate::checks) fn ask(request: EthtoolRequest) -> Query {
    Query::Ethtool { device: "eth0".into(), request }
}

/// Named numbers.
pub(in crate::checks) fn named(pairs: &[(&str, u64)]) -> Reply {
    Reply::Named(pairs.iter().map(|(name, value)| ((*name).to_owned(), *value)).collect())
}

/// What the check finds without being told of any work.
pub(in crate::checks) fn found(check: &Check, host: FakeHost) -> Vec<Finding> {
    judge_host(check, host, Context::default()).findings
}

/// What the check finds on a machine that does this work.
pub(in crate::checks) fn found_as(check: &Check, host: FakeHost, workload: Workload) -> Vec<Finding> {
    judge_host(check, host, Context { workload: Some(workload) }).findings
}

/// A link reply.
pub(in crate::checks) fn link(speed: u64, supported: u64, advertised: u64, partner: u64) -> Reply {
    let mut pairs = vec![
        ("speed_mbps", speed),
        ("duplex", 1),
        ("autoneg", 1),
        ("port", 0),
        ("max_supported_speed_mbps", supported),
        ("max_advertised_speed_mbps", advertised),
    ];
    if partner > 0 {
        pairs.push(("max_partner_speed_mbps", partner));
    }
    named(&pairs)
}

/// Interrupts 40 to 47 of eth0, each with a million on the CPU that `cpu` says.
pub(in crate::checks) fn interrupts(cpu: impl Fn(usize) -> usize) -> String {
    let mut text = String::from("    CPU0 CPU1 CPU2 CPU3 CPU4 CPU5 CPU6 CPU7\n");
    for queue in 0..8 {
        text.extend([format!("{}:", 40 + queue)]);
        for column in 0..8 {
            text.push_str(if column == cpu(queue) { " 1000000" } else { " 0" });
        }
        text.extend([format!(" PCI-MSI {queue}-edge eth0-TxRx-{queue}\n")]);
    }
    text
}

/// The driver of eth0.
pub(in crate::checks) fn driver(host: FakeHost, name: &str) -> FakeHost {
    let driver = format!("/sys/bus/pci/drivers/{name}");
    host.file(&format!("{driver}/uevent"), "").link(&format!("{PCI}/driver"), &driver)
}

/// The counters of the protocols.
pub(in crate::checks) fn snmp(sent: u64, again: u64) -> String {
    format!(
        "Ip: FragFails\nIp: 0\n\
         Tcp: PassiveOpens InSegs OutSegs RetransSegs InErrs\nTcp: 1000000 100000000 {sent} {again} 0\n\
         Udp: InDatagrams InErrors RcvbufErrors\nUdp: 1000000 0 0\n"
    )
}

/// The machine.
#[expect(clippy::too_many_lines, reason = "a list of files, one a line")]
pub(in crate::checks) fn healthy() -> FakeHost {
    let mut host = FakeHost::new(&[
        ("/sys/devices/system/cpu/online", "0-7\n"),
        ("/sys/devices/system/cpu/present", "0-7\n"),
        ("/sys/devices/system/cpu/isolated", "\n"),
        ("/proc/uptime", "864000.00 100.00\n"),
        ("/proc/interrupts", &interrupts(|queue| queue)),
        ("/proc/softirqs", " CPU0 CPU1\nNET_RX: 50000000 50000000\n"),
        ("/proc/irq/default_smp_affinity", "ff\n"),
        ("/proc/net/snmp", &snmp(100_000_000, 10_000)),
        (
            "/proc/net/netstat",
            "TcpExt: PruneCalled ListenOverflows ListenDrops TCPMemoryPressures TCPMemoryPressuresChrono \
             TCPBacklogDrop\nTcpExt: 0 3 3 0 0 0\n",
        ),
        ("/proc/net/sockstat", "TCP: inuse 10 orphan 0 tw 0 alloc 10 mem 100\nUDP: inuse 1 mem 1\n"),
        ("/proc/sys/net/netfilter/nf_conntrack_count", "1000\n"),
        ("/proc/sys/net/netfilter/nf_conntrack_max", "262144\n"),
        ("/proc/sys/net/core/somaxconn", "4096\n"),
        ("/proc/sys/net/core/netdev_max_backlog", "1000\n"),
        ("/proc/sys/net/core/netdev_budget", "300\n"),
        ("/proc/sys/net/core/rmem_max", "212992\n"),
        ("/proc/sys/net/core/wmem_max", "212992\n"),
        ("/proc/sys/net/ipv4/tcp_rmem", "4096\t131072\t67108864\n"),
        ("/proc/sys/net/ipv4/tcp_wmem", "4096\t16384\t67108864\n"),
        ("/proc/sys/net/ipv4/tcp_mem", "188319\t251094\t376638\n"),
        ("/proc/sys/net/ipv4/tcp_window_scaling", "1\n"),
        ("/proc/sys/net/ipv4/tcp_sack", "1\n"),
        ("/proc/sys/net/ipv4/tcp_moderate_rcvbuf", "1\n"),
        ("/proc/sys/net/ipv4/tcp_slow_start_after_idle", "0\n"),
        ("/proc/sys/net/ipv4/ip_forward", "0\n"),
        (&format!("{PCI}/numa_node"), "0\n"),
        (&format!("{PCI}/local_cpulist"), "0-3\n"),
        (&format!("{PCI}/subsystem_vendor"), "0x8086\n"),
    ]);
    let rows: String = ["00"; 8].iter().enumerate().fold(String::new(), |rows, (cpu, _)| {
        rows + &format!("02000000 00000000 00000005 0 0 0 0 0 0 0 0 0 {cpu:08x} 0 0\n")
    });
    host = driver(host.file("/proc/net/softnet_stat", &rows), "ixgbe").link(&format!("{ETH0}/device"), PCI);
    let attributes = [
        ("type", "1"),
        ("operstate", "up"),
        ("carrier", "1"),
        ("carrier_changes", "2"),
        ("speed", "10000"),
        ("duplex", "full"),
        ("mtu", "1500"),
        ("tx_queue_len", "1000"),
        ("flags", "0x1003"),
        ("statistics/rx_packets", "100000000"),
        ("statistics/tx_packets", "100000000"),
        ("statistics/rx_bytes", "100000000000"),
        ("statistics/tx_bytes", "100000000000"),
        ("statistics/rx_errors", "0"),
        ("statistics/tx_errors", "0"),
        ("statistics/rx_dropped", "1200"),
        ("statistics/tx_dropped", "0"),
        ("statistics/rx_missed_errors", "12"),
        ("statistics/rx_fifo_errors", "0"),
        ("statistics/rx_crc_errors", "1"),
        ("statistics/collisions", "0"),
    ];
    for (name, value) in attributes {
        host = host.file(&format!("{ETH0}/{name}"), &format!("{value}\n"));
    }
    for queue in 0..8 {
        let irq = 40 + queue;
        host = host
            .file(&format!("{ETH0}/queues/rx-{queue}/rps_cpus"), "00\n")
            .file(&format!("{ETH0}/queues/tx-{queue}/xps_cpus"), "00\n")
            .file(&format!("{ETH0}/queues/tx-{queue}/tx_timeout"), "0\n")
            .file(&format!("{PCI}/msi_irqs/{irq}"), "msix\n")
            .file(&format!("/proc/irq/{irq}/smp_affinity_list"), "0-7\n")
            .file(&format!("/proc/irq/{irq}/effective_affinity_list"), &format!("{queue}\n"));
    }
    replies(host)
}

fn replies(host: FakeHost) -> FakeHost {
    let channels =
        [("rx", 0), ("rx_max", 0), ("tx", 0), ("tx_max", 0), ("combined", 8), ("combined_max", 63)];
    let coalesce = [
        ("rx_usecs", 1),
        ("rx_frames", 0),
        ("tx_usecs", 0),
        ("tx_frames", 0),
        ("adaptive_rx", 0),
        ("adaptive_tx", 0),
    ];
    let features = [
        ("rx-checksum", 11),
        ("tx-checksum-ip-generic", 11),
        ("tx-checksum-ipv4", 0),
        ("tx-scatter-gather", 11),
        ("tx-tcp-segmentation", 11),
        ("tx-generic-segmentation", 11),
        ("rx-gro", 11),
        ("rx-lro", 1),
        ("rx-hashing", 11),
        ("tx-nocache-copy", 1),
    ];
    let eee = [("active", 0), ("enabled", 0), ("tx_lpi_enabled", 0), ("tx_lpi_timer_us", 0)];
    host.reply(&ask(EthtoolRequest::Driver), Reply::Text("driver ixgbe\n".into()))
        .reply(&ask(EthtoolRequest::Link), link(10_000, 10_000, 10_000, 10_000))
        .reply(
            &ask(EthtoolRequest::Rings),
            named(&[("rx", 512), ("rx_max", 4096), ("tx", 512), ("tx_max", 4096)]),
        )
        .reply(&ask(EthtoolRequest::Channels), named(&channels))
        .reply(&ask(EthtoolRequest::Coalesce), named(&coalesce))
        .reply(&ask(EthtoolRequest::Features), named(&features))
        .reply(&ask(EthtoolRequest::Pause), named(&[("autoneg", 1), ("rx", 1), ("tx", 1)]))
        .reply(&ask(EthtoolRequest::Eee), named(&eee))
        .reply(
            &ask(EthtoolRequest::Statistics),
            named(&[("rx_no_dma_resources", 12), ("tx_flow_control_xoff", 3), ("rx_flow_control_xoff", 0)]),
        )
}

/// No check may find anything here, whatever the work.
#[test]
fn the_healthy_machine_is_healthy() {
    for check in super::CHECKS.iter().chain(crate::checks::irq::CHECKS) {
        assert_eq!(found(check, healthy()), [], "{}", check.id);
        for (name, workload) in Workload::ALL {
            assert_eq!(found_as(check, healthy(), workload), [], "{} as {name}", check.id);
        }
    }
}

/// A machine of which nothing can be read is not ill, and no check may stumble over it.
#[test]
fn nothing_readable_is_nothing_found() {
    for check in super::CHECKS.iter().chain(crate::checks::irq::CHECKS) {
        let nobody = FakeHost::from_capture(zenkai_host::Capture::default());
        assert_eq!(found(check, nobody), [], "{}", check.id);
        assert_eq!(found(check, FakeHost::new(&[])), [], "{}", check.id);
    }
}

/// The healthy machine with its cable pulled out, and devices without one that show odd values.
fn unplugged() -> FakeHost {
    healthy()
        .file(&format!("{ETH0}/carrier"), "0\n")
        .file(&format!("{ETH0}/operstate"), "down\n")
        .file(&format!("{ETH0}/speed"), "-1\n")
        .file(&format!("{ETH0}/duplex"), "half\n")
        .reply(&ask(EthtoolRequest::Link), named(&[("duplex", 0), ("autoneg", 1)]))
        .file("/sys/class/net/lo/type", "772\n")
        .file("/sys/class/net/lo/carrier", "1\n")
        .file("/sys/class/net/veth1/flags", "0x1103\n")
        .file("/sys/class/net/veth1/carrier", "1\n")
        .file("/sys/class/net/veth1/speed", "10\n")
        .file("/sys/class/net/veth1/duplex", "half\n")
}

#[test]
fn ports_without_a_wire_are_not_judged() {
    for check in super::CHECKS.iter().chain(crate::checks::irq::CHECKS) {
        for (name, workload) in Workload::ALL {
            assert_eq!(found_as(check, unplugged(), workload), [], "{} as {name}", check.id);
        }
    }
}
