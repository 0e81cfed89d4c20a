//! `/proc/net/softnet_stat` (`net/core/net-procfs.c`): what each CPU did with received packets, in hexadecimal.

use crate::sampler::{
    channel::{Channels, Wrap},
    source::{Cadence, Source, one_file},
    template::{Column, Digits, Lines},
};

pub(in crate::sampler) static SOURCE: Source = Source {
    name: "softnet",
    cadence: Cadence::Slow,
    digits: Digits::Hexadecimal,
    open: |_| one_file("/proc/net/softnet_stat"),
    channels,
};

/// Fields from 0 (`softnet_seq_show`).
const FIELDS: [(usize, &str, &str); 5] = [
    (0, "processed", "packets received, all CPUs"),
    (1, "dropped", "packets dropped because the backlog was full"),
    (2, "squeezed", "times the receive budget ran out with packets left"),
    (9, "steered", "packets woken up for by another CPU (RPS)"),
    (10, "limited", "packets dropped by the flow limit"),
];

fn channels(lines: &Lines, channels: &mut Channels) {
    for (field, name, words) in FIELDS {
        let columns: Vec<Column> =
            lines.lines.iter().filter_map(|line| line.words.get(field)?.column()).collect();
        if !columns.is_empty() {
            channels.rate(format!("softnet.{name}"), "1/s", words, columns, 1.0).wraps(Wrap::Bits32);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sampler::sources::testing::between;

    #[test]
    fn summed_over_the_cpus() {
        let values = between(&SOURCE, "fffffff0 0 0\n00000001 0 0\n", "00000010 0 1\n00000001 0 0\n", 2.0);
        assert_eq!(values["softnet.processed"], Some(16.0));
        assert_eq!(values["softnet.squeezed"], Some(0.5));
        assert!(!values.contains_key("softnet.steered"));
    }
}
