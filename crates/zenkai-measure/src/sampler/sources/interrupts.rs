//! `/proc/interrupts` (`kernel/irq/proc.c`): interrupts by line, and how they spread over the CPUs. The kernel walks all
//! lines and CPUs for it, so it is read seldom.

use crate::sampler::{
    channel::{Channels, Wrap},
    source::{Cadence, Source, one_file},
    template::{Column, Digits, Line, Lines, Word},
};

pub(in crate::sampler) static SOURCE: Source = Source {
    name: "interrupts",
    cadence: Cadence::Slow,
    digits: Digits::Decimal,
    open: |_| one_file("/proc/interrupts"),
    channels: |lines, channels| by_line(lines, "interrupts", "interrupts", channels),
};

/// A table with the CPUs above and a counter each in the lines.
pub(super) fn by_line(lines: &Lines, group: &str, what: &str, channels: &mut Channels) {
    let Some((head, body)) = lines.lines.split_first() else { return };
    let cpus: Vec<&str> = head.words.iter().filter_map(|word| word.text()?.strip_prefix("CPU")).collect();
    let mut by_cpu: Vec<Vec<Column>> = vec![Vec::new(); cpus.len()];
    for line in body {
        let Some(label) = line.label() else { continue };
        let counts: Vec<Column> =
            line.words.iter().skip(1).map_while(|word| word.column()).take(cpus.len()).collect();
        // Lines such as ERR and MIS have one number for the whole machine.
        if counts.is_empty() {
            continue;
        }
        if counts.len() == cpus.len() {
            for (columns, count) in by_cpu.iter_mut().zip(&counts) {
                columns.push(*count);
            }
        }
        let (name, words) = named(label, line, counts.len());
        channels
            .rate(format!("{group}.{name}"), "1/s", format!("{what}: {words}"), counts, 1.0)
            .wraps(Wrap::Bits32)
            .quiet();
    }
    for (cpu, columns) in cpus.iter().zip(by_cpu).filter(|(_, columns)| !columns.is_empty()) {
        let words = format!("{what} on CPU {cpu}");
        channels.rate(format!("{group}.cpu{cpu}"), "1/s", words, columns, 1.0).wraps(Wrap::Bits32);
    }
}

/// A name that is the same in the next boot: a line's number alone may not be, its device is.
fn named(label: &str, line: &Line, counts: usize) -> (String, String) {
    let rest: Vec<&str> = line.words.iter().skip(1 + counts).filter_map(|word: &Word| word.text()).collect();
    let device = rest.last().filter(|_| label.bytes().all(|byte| byte.is_ascii_digit()));
    match device {
        Some(device) => (format!("{label}.{device}"), format!("{label}, {}", rest.join(" "))),
        None if rest.is_empty() => (label.to_lowercase(), label.to_owned()),
        None => (label.to_lowercase(), rest.join(" ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sampler::sources::testing::{between, made_of};

    #[test]
    fn lines_and_cpus() {
        let text = |a: u64, b: u64| {
            format!(
                "            CPU0       CPU1       \n  24:  {a}   {b}  PCI-MSIX-0000:00:01.0   1-edge      virtio0-input.0\n\
                 NMI:   0   0   Non-maskable interrupts\nLOC:  {b}  {b}   Local timer interrupts\nERR:   0\n"
            )
        };
        let values = between(&SOURCE, &text(4_294_967_290, 10), &text(4, 20), 2.0);
        assert_eq!(values["interrupts.24.virtio0-input.0"], Some(10.0), "one counter came round");
        assert_eq!(values["interrupts.loc"], Some(10.0));
        assert_eq!(values["interrupts.cpu1"], Some(10.0));
        assert_eq!(values["interrupts.err"], Some(0.0));
    }

    #[test]
    fn no_table_no_channels() {
        assert!(made_of(&SOURCE, "").is_empty());
        assert!(made_of(&SOURCE, "24: 1 2 x\n").is_empty());
    }
}
