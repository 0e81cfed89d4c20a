//! Counters of the stack: `/proc/net/softnet_stat`, `snmp`, `netstat`, `sockstat`, connection tracking.

use std::collections::HashMap;

use serde::Serialize;

use crate::{Observed, Reader, Reason};

/// What one CPU did with received packets since boot (`softnet_seq_show()` in `net/core/net-procfs.c`).
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Softnet {
    /// The CPU; kernels before 5.10 do not say, they only list online CPUs in order.
    pub cpu: Option<u32>,
    /// Packets processed.
    pub processed: u64,
    /// Packets thrown away because the backlog was full.
    pub dropped: u64,
    /// Times the budget ran out with work left.
    pub squeezed: u64,
}

/// Counters of the protocols since boot (`/proc/net/snmp`, `/proc/net/netstat`).
#[derive(Debug, Clone, Serialize)]
pub struct Protocols {
    /// TCP segments sent, without retransmissions.
    pub tcp_segments_sent: Observed<u64>,
    /// TCP segments received.
    pub tcp_segments_received: Observed<u64>,
    /// TCP segments sent again.
    pub tcp_segments_retransmitted: Observed<u64>,
    /// TCP segments received with an error.
    pub tcp_receive_errors: Observed<u64>,
    /// Connections accepted.
    pub tcp_connections_accepted: Observed<u64>,
    /// UDP datagrams received.
    pub udp_received: Observed<u64>,
    /// UDP datagrams lost on the way to the program, of all causes.
    pub udp_receive_errors: Observed<u64>,
    /// UDP datagrams lost because the socket's buffer was full.
    pub udp_receive_buffer_errors: Observed<u64>,
    /// Packets that would have had to be cut but must not be.
    pub ip_fragmentation_failures: Observed<u64>,
    /// Packets for which a listening socket's queue was full.
    pub listen_overflows: Observed<u64>,
    /// Connection requests dropped at a listening socket, overflows included.
    pub listen_drops: Observed<u64>,
    /// Connection requests dropped because the queue of half-open connections was full.
    pub request_queue_full_drops: Observed<u64>,
    /// Times TCP came under memory pressure.
    pub tcp_memory_pressures: Observed<u64>,
    /// Time TCP spent under memory pressure.
    pub tcp_memory_pressure_ms: Observed<u64>,
    /// Times a socket's receive queue had to be trimmed.
    pub tcp_prunes: Observed<u64>,
    /// Packets dropped because the queue of a socket in use was full.
    pub tcp_backlog_drops: Observed<u64>,
    /// Retransmission time-outs.
    pub tcp_timeouts: Observed<u64>,
    /// Times a program was told that it has to wait because its window was full.
    pub tcp_to_zero_window: Observed<u64>,
}

/// Memory the sockets hold (`/proc/net/sockstat`).
#[derive(Debug, Clone, Serialize)]
pub struct SocketMemory {
    /// TCP sockets in use.
    pub tcp_in_use: Observed<u64>,
    /// Memory of all TCP sockets in pages.
    pub tcp_pages: Observed<u64>,
    /// Memory of all UDP sockets in pages.
    pub udp_pages: Observed<u64>,
}

/// Connection tracking (`Documentation/networking/nf_conntrack-sysctl.rst`); absent when it is not loaded.
#[derive(Debug, Clone, Serialize)]
pub struct Conntrack {
    /// Connections tracked now.
    pub count: Observed<u64>,
    /// Most connections that can be tracked.
    pub max: Observed<u64>,
    /// Size of the hash table.
    pub buckets: Observed<u64>,
}

pub(super) fn softnet(reader: &Reader<'_>) -> Observed<Vec<Softnet>> {
    reader.text("/proc/net/softnet_stat").parse(|text| {
        text.lines()
            .map(|line| softnet_line(line).ok_or_else(|| "not the known columns".to_owned()))
            .collect()
    })
}

fn softnet_line(line: &str) -> Option<Softnet> {
    let columns: Option<Vec<u64>> =
        line.split_whitespace().take(32).map(|word| u64::from_str_radix(word, 16).ok()).collect();
    let columns = columns?;
    let [processed, dropped, squeezed, ..] = *columns.as_slice() else { return None };
    let cpu = columns.get(12).and_then(|cpu| u32::try_from(*cpu).ok());
    Some(Softnet { cpu, processed, dropped, squeezed })
}

/// Counters by `Protocol.Name`.
type Table = HashMap<String, i64>;

/// The two files hold pairs of lines: names, then values, both after the protocol's name.
fn table(text: &str) -> Table {
    let mut table = Table::new();
    let mut lines = text.lines();
    while let (Some(names), Some(values)) = (lines.next(), lines.next()) {
        let (Some((protocol, names)), Some((again, values))) =
            (names.split_once(':'), values.split_once(':'))
        else {
            continue;
        };
        if protocol != again {
            continue;
        }
        for (name, value) in names.split_whitespace().zip(values.split_whitespace()) {
            // Tcp.MaxConn is -1; everything else is unsigned, and a counter above 2^63 is not from this world.
            if let Ok(value) = value.parse() {
                table.insert(format!("{protocol}.{name}"), value);
            }
        }
    }
    table
}

pub(super) fn protocols(reader: &Reader<'_>) -> Protocols {
    let [snmp, netstat] =
        ["/proc/net/snmp", "/proc/net/netstat"].map(|path| reader.text(path).map(|text| table(&text)));
    let tcp = |name: &str| counter(&snmp, "Tcp", name);
    let udp = |name: &str| counter(&snmp, "Udp", name);
    let extended = |name: &str| counter(&netstat, "TcpExt", name);
    Protocols {
        tcp_segments_sent: tcp("OutSegs"),
        tcp_segments_received: tcp("InSegs"),
        tcp_segments_retransmitted: tcp("RetransSegs"),
        tcp_receive_errors: tcp("InErrs"),
        tcp_connections_accepted: tcp("PassiveOpens"),
        udp_received: udp("InDatagrams"),
        udp_receive_errors: udp("InErrors"),
        udp_receive_buffer_errors: udp("RcvbufErrors"),
        ip_fragmentation_failures: counter(&snmp, "Ip", "FragFails"),
        listen_overflows: extended("ListenOverflows"),
        listen_drops: extended("ListenDrops"),
        request_queue_full_drops: extended("TCPReqQFullDrop"),
        tcp_memory_pressures: extended("TCPMemoryPressures"),
        tcp_memory_pressure_ms: extended("TCPMemoryPressuresChrono"),
        tcp_prunes: extended("PruneCalled"),
        tcp_backlog_drops: extended("TCPBacklogDrop"),
        tcp_timeouts: extended("TCPTimeouts"),
        tcp_to_zero_window: extended("TCPToZeroWindowAdv"),
    }
}

fn counter(table: &Observed<Table>, protocol: &str, name: &str) -> Observed<u64> {
    let key = format!("{protocol}.{name}");
    let source = format!("{}:{key}", table.source());
    match table.outcome() {
        Err(reason) => Observed::unavailable(table.source(), reason.clone()),
        Ok(table) => match table.get(&key).map(|value| u64::try_from(*value)) {
            Some(Ok(value)) => Observed::known(source, value),
            Some(Err(_)) => Observed::unavailable(source, Reason::Malformed("a negative count".into())),
            None => Observed::unavailable(source, Reason::Absent),
        },
    }
}

pub(super) fn socket_memory(reader: &Reader<'_>) -> SocketMemory {
    let sockstat = reader.text("/proc/net/sockstat");
    let pick = |protocol: &str, name: &str| {
        let source = format!("{}:{protocol}.{name}", sockstat.source());
        match sockstat.outcome() {
            Err(reason) => Observed::unavailable(sockstat.source(), reason.clone()),
            Ok(text) => match sockstat_value(text, protocol, name) {
                Some(value) => Observed::known(source, value),
                None => Observed::unavailable(source, Reason::Absent),
            },
        }
    };
    SocketMemory {
        tcp_in_use: pick("TCP", "inuse"),
        tcp_pages: pick("TCP", "mem"),
        udp_pages: pick("UDP", "mem"),
    }
}

/// `TCP: inuse 1 orphan 0 tw 0 alloc 1 mem 175`.
fn sockstat_value(text: &str, protocol: &str, name: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix(protocol)?.strip_prefix(':'))?;
    let mut words = line.split_whitespace();
    words.find(|word| *word == name)?;
    words.next()?.parse().ok()
}

pub(super) fn conntrack(reader: &Reader<'_>) -> Conntrack {
    let at = |name: &str| reader.number(&format!("/proc/sys/net/netfilter/nf_conntrack_{name}"));
    Conntrack { count: at("count"), max: at("max"), buckets: at("buckets") }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use zenkai_host::FakeHost;

    use super::*;

    #[test]
    fn rows_with_and_without_a_cpu() {
        let new = "0000000a 00000001 00000002 0 0 0 0 0 0 0 0 0 00000005 0 0";
        assert_eq!(softnet_line(new), Some(Softnet { cpu: Some(5), processed: 10, dropped: 1, squeezed: 2 }));
        assert_eq!(softnet_line("1 0 0 0 0 0 0 0 0 0 0").unwrap().cpu, None);
        assert_eq!(softnet_line("1 zz 0"), None);
        assert_eq!(softnet_line("1 2"), None);
    }

    #[test]
    fn counters_by_name() {
        let host = FakeHost::new(&[
            ("/proc/net/snmp", "Tcp: MaxConn OutSegs RetransSegs\nTcp: -1 100 7\nUdp: InErrors\nUdp: 3\n"),
            ("/proc/net/sockstat", "sockets: used 3\nTCP: inuse 1 orphan 0 tw 0 alloc 1 mem 175\n"),
        ]);
        let reader = Reader::new(&host);
        let protocols = protocols(&reader);
        assert_eq!(protocols.tcp_segments_retransmitted.value(), Some(7));
        assert_eq!(protocols.tcp_segments_retransmitted.source(), "/proc/net/snmp:Tcp.RetransSegs");
        assert_eq!(protocols.udp_receive_errors.value(), Some(3));
        assert!(protocols.udp_received.is_absent());
        assert!(protocols.listen_overflows.is_absent());
        let memory = socket_memory(&reader);
        assert_eq!(memory.tcp_pages.value(), Some(175));
        assert!(memory.udp_pages.is_absent());
    }

    proptest! {
        #[test]
        fn never_panics(text in "[A-Za-z:0-9 \n-]*") {
            let _ = table(&text);
            let _ = sockstat_value(&text, "TCP", "mem");
            let _ = softnet_line(&text);
        }
    }
}
