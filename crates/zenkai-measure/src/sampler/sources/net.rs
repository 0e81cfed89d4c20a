//! `/proc/net/dev` (`net/core/net-procfs.c`): what each network interface did.

use crate::sampler::{
    channel::Channels,
    source::{Cadence, Source, one_file},
    template::{Column, Digits, Lines},
};

pub(in crate::sampler) static SOURCE: Source = Source {
    name: "net",
    cadence: Cadence::Always,
    digits: Digits::Decimal,
    open: |_| one_file("/proc/net/dev"),
    channels,
};

/// Fields behind the name.
const FIELDS: [(usize, &str, &str, &str); 8] = [
    (0, "rx_bytes", "B/s", "received"),
    (1, "rx_packets", "1/s", "packets received"),
    (2, "rx_errors", "1/s", "packets received with errors"),
    (3, "rx_dropped", "1/s", "received packets dropped"),
    (8, "tx_bytes", "B/s", "sent"),
    (9, "tx_packets", "1/s", "packets sent"),
    (10, "tx_errors", "1/s", "packets that could not be sent"),
    (11, "tx_dropped", "1/s", "packets to send dropped"),
];

fn channels(lines: &Lines, channels: &mut Channels) {
    for line in &lines.lines {
        let Some(name) = line.words.first().and_then(|word| word.text()?.strip_suffix(':')) else { continue };
        let fields: Vec<Column> = line.columns();
        if fields.len() < 16 {
            continue;
        }
        for (field, what, unit, words) in FIELDS {
            let Some(column) = fields.get(field) else { continue };
            channels.rate(format!("net.{name}.{what}"), unit, format!("{words}, {name}"), vec![*column], 1.0);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sampler::sources::testing::{between, made_of};

    const HEAD: &str = "Inter-|   Receive    |  Transmit\n face |bytes    packets errs drop|bytes packets\n";

    #[test]
    fn bytes_and_packets() {
        let text = |count: u64| format!("{HEAD}  eth0: {count} 2 0 0 0 0 0 0 {} 4 0 1 0 0 0 0\n", count * 3);
        let values = between(&SOURCE, &text(1000), &text(3000), 2.0);
        assert_eq!(values["net.eth0.rx_bytes"], Some(1000.0));
        assert_eq!(values["net.eth0.tx_bytes"], Some(3000.0));
    }

    #[test]
    fn an_interface_that_was_reset_is_not_measured_in_that_interval() {
        let text = |count: u64| format!("{HEAD}eth0: {count} 2 0 0 0 0 0 0 9 4 0 1 0 0 0 0\n");
        assert_eq!(between(&SOURCE, &text(3000), &text(10), 2.0)["net.eth0.rx_bytes"], None);
        assert!(made_of(&SOURCE, &format!("{HEAD}eth0: 1 2 3\n: 1\n")).is_empty());
    }
}
