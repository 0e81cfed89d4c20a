//! `/proc/net/snmp` and `/proc/net/netstat` (`net/ipv4/proc.c`): what the network protocols did, of IPv4 and IPv6 alike
//! where TCP is concerned.

use crate::sampler::{
    channel::Channels,
    source::{Cadence, Source, one_file},
    template::{Digits, Lines},
};

pub(in crate::sampler) static SNMP: Source = Source {
    name: "snmp",
    cadence: Cadence::Slow,
    digits: Digits::Decimal,
    open: |_| one_file("/proc/net/snmp"),
    channels,
};

pub(in crate::sampler) static NETSTAT: Source = Source {
    name: "netstat",
    cadence: Cadence::Slow,
    digits: Digits::Decimal,
    open: |_| one_file("/proc/net/netstat"),
    channels,
};

/// Protocol, counter, channel, meaning.
const COUNTS: [(&str, &str, &str, &str); 25] = [
    ("Ip", "InReceives", "ip.received", "IPv4 packets received"),
    ("Ip", "InDiscards", "ip.discarded", "IPv4 packets dropped for want of memory"),
    ("Ip", "ReasmFails", "ip.reassembly_fails", "IPv4 packets that could not be put together"),
    ("Tcp", "ActiveOpens", "tcp.connects", "TCP connections opened from here"),
    ("Tcp", "PassiveOpens", "tcp.accepts", "TCP connections opened to here"),
    ("Tcp", "AttemptFails", "tcp.failed_connects", "TCP connections that did not come about"),
    ("Tcp", "EstabResets", "tcp.resets", "TCP connections reset"),
    ("Tcp", "InSegs", "tcp.segments_in", "TCP segments received"),
    ("Tcp", "OutSegs", "tcp.segments_out", "TCP segments sent"),
    ("Tcp", "RetransSegs", "tcp.retransmits", "TCP segments sent again"),
    ("Tcp", "InErrs", "tcp.errors_in", "TCP segments received with errors"),
    ("Udp", "InDatagrams", "udp.datagrams_in", "UDP datagrams received"),
    ("Udp", "OutDatagrams", "udp.datagrams_out", "UDP datagrams sent"),
    ("Udp", "InErrors", "udp.errors_in", "UDP datagrams that could not be delivered"),
    (
        "Udp",
        "RcvbufErrors",
        "udp.receive_buffer_full",
        "UDP datagrams dropped because a receive buffer was full",
    ),
    ("Udp", "SndbufErrors", "udp.send_buffer_full", "UDP datagrams not sent because a send buffer was full"),
    (
        "TcpExt",
        "ListenOverflows",
        "tcp.listen_overflows",
        "connections that found the queue of a listener full",
    ),
    ("TcpExt", "ListenDrops", "tcp.listen_drops", "connections that a listener dropped"),
    ("TcpExt", "TCPTimeouts", "tcp.timeouts", "retransmission timers that ran out"),
    ("TcpExt", "TCPFastRetrans", "tcp.fast_retransmits", "TCP segments sent again without a timer"),
    ("TcpExt", "TCPLostRetransmit", "tcp.lost_retransmits", "segments sent again and lost again"),
    ("TcpExt", "TCPBacklogDrop", "tcp.backlog_drops", "segments dropped because a socket was busy"),
    ("TcpExt", "TCPRcvQDrop", "tcp.receive_queue_drops", "segments dropped because a receive queue was full"),
    ("TcpExt", "TCPOFOQueue", "tcp.out_of_order", "segments that came too early"),
    ("TcpExt", "PruneCalled", "tcp.pruned", "receive queues cut for want of memory"),
];

/// Names in one line, numbers in the next; both begin with the protocol.
fn channels(lines: &Lines, channels: &mut Channels) {
    for pair in lines.lines.windows(2) {
        let [names, values] = pair else { continue };
        let Some(protocol) = names.label().filter(|label| values.label() == Some(label)) else { continue };
        for (at, name) in names.words.iter().enumerate().skip(1) {
            let Some(column) = values.words.get(at).and_then(|word| word.column()) else { continue };
            let known = COUNTS.iter().find(|(of, count, ..)| *of == protocol && name.text() == Some(count));
            if let Some((.., channel, words)) = known {
                channels.rate(channel, "1/s", words, vec![column], 1.0);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sampler::sources::testing::{between, made_of};

    #[test]
    fn names_above_numbers() {
        let text = |count: u32| {
            format!(
                "Tcp: RtoAlgorithm MaxConn RetransSegs\nTcp: 1 -1 {count}\nUdp: InDatagrams InErrors\nUdp: {count} 7\n"
            )
        };
        let values = between(&SNMP, &text(5), &text(9), 2.0);
        assert_eq!((values["tcp.retransmits"], values["udp.datagrams_in"]), (Some(2.0), Some(2.0)));
        assert_eq!(values["udp.errors_in"], Some(0.0));
    }

    #[test]
    fn lines_that_do_not_match_give_nothing() {
        assert!(made_of(&SNMP, "Tcp: RetransSegs\nUdp: 5\nTcp: RetransSegs InSegs\nTcp:\n").is_empty());
    }
}
