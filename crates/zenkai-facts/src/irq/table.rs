//! `/proc/interrupts` and `/proc/softirqs`: a header of CPUs, then one line per interrupt (`fs/proc/interrupts.c`,
//! `kernel/irq/proc.c`).

use serde::Serialize;

use crate::CpuSet;

/// A table of interrupts.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Interrupts {
    /// The CPUs that have a column: those online.
    pub cpus: CpuSet,
    /// The lines, in the kernel's order.
    pub lines: Vec<Line>,
}

/// One interrupt, summed up: 1 024 columns would tell no more than where the most of them went.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Line {
    /// Its number, or a word such as `LOC` or `NET_RX`.
    pub name: String,
    /// What the kernel says of it: controller, trigger, devices.
    pub description: String,
    /// How often it came since boot, on all CPUs.
    pub total: u64,
    /// The CPU that got the most of them.
    pub top_cpu: Option<u32>,
    /// How many that CPU got.
    pub top_count: u64,
    /// How many CPUs got any.
    pub cpus: u32,
}

/// Reads a table. Linear in its size.
pub(super) fn parse(content: &[u8]) -> Result<Interrupts, String> {
    let text = String::from_utf8_lossy(content);
    let mut lines = text.lines();
    let header = lines.next().unwrap_or_default();
    let cpus: Option<Vec<u32>> =
        header.split_whitespace().map(|word| word.strip_prefix("CPU")?.parse().ok()).collect();
    let cpus = cpus.filter(|cpus| !cpus.is_empty()).ok_or("the first line names no CPUs")?;
    let lines = lines.filter_map(|line| parse_line(line, &cpus)).collect();
    Ok(Interrupts { cpus: cpus.into_iter().collect(), lines })
}

fn parse_line(line: &str, cpus: &[u32]) -> Option<Line> {
    let (name, mut rest) = line.split_once(':')?;
    let mut parsed = Line {
        name: name.trim().to_owned(),
        description: String::new(),
        total: 0,
        top_cpu: None,
        top_count: 0,
        cpus: 0,
    };
    for cpu in cpus {
        let trimmed = rest.trim_start();
        let end = trimmed.find(char::is_whitespace).unwrap_or(trimmed.len());
        let (word, tail) = trimmed.split_at(end);
        // `ERR` and `MIS` have one number for the whole machine; `bl_irq`-like names may follow directly.
        let Ok(count) = word.parse::<u64>() else { break };
        rest = tail;
        parsed.total = parsed.total.saturating_add(count);
        if count > 0 {
            parsed.cpus += 1;
        }
        if count > parsed.top_count {
            parsed.top_count = count;
            parsed.top_cpu = Some(*cpu);
        }
    }
    parsed.description = rest.split_whitespace().collect::<Vec<_>>().join(" ");
    Some(parsed)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn lines_are_summed_up() {
        let table = parse(
            b"           CPU0       CPU2\n 38:          1      12651 PCI-MSIX-0000:00:03.0   1-edge      virtio2-input.0\nLOC:     182859     287315   Local timer interrupts\nERR:          5\n",
        )
        .unwrap();
        assert_eq!(table.cpus.to_string(), "0,2");
        let nic = &table.lines[0];
        assert_eq!(
            (nic.name.as_str(), nic.total, nic.top_cpu, nic.top_count, nic.cpus),
            ("38", 12652, Some(2), 12651, 2)
        );
        assert_eq!(nic.description, "PCI-MSIX-0000:00:03.0 1-edge virtio2-input.0");
        assert_eq!(table.lines[2].total, 5);
        assert!(parse(b"").is_err());
        assert!(parse(b"what is this\n").is_err());
    }

    #[test]
    fn thousands_of_cpus() {
        let mut text = String::new();
        text.extend((0..10_000).map(|cpu| format!(" CPU{cpu}")));
        text.push_str("\n 9:");
        text.extend((0..10_000).map(|cpu| format!(" {cpu}")));
        text.push_str(" IO-APIC acpi\n");
        let table = parse(text.as_bytes()).unwrap();
        assert_eq!(table.cpus.len(), 10_000);
        assert_eq!(table.lines[0].top_cpu, Some(9_999));
        assert_eq!(table.lines[0].cpus, 9_999);
    }

    proptest! {
        #[test]
        fn never_panics(content in proptest::collection::vec(any::<u8>(), 0..400)) {
            let _ = parse(&content);
            let mut with_header = b"CPU0 CPU1\n".to_vec();
            with_header.extend(content);
            let _ = parse(&with_header);
        }
    }
}
