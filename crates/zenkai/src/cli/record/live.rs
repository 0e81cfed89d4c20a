//! A line a second, as vmstat(8) has them.

use std::{
    collections::BTreeMap,
    io::{self, Write},
};

use super::show::amount;

/// Heading, channels that are added up, width.
const COLUMNS: [(&str, &[&str], usize); 15] = [
    ("run", &["sched.running"], 4),
    ("blk", &["sched.blocked"], 4),
    ("usr", &["cpu.usr"], 5),
    ("sys", &["cpu.sys", "cpu.irq", "cpu.softirq"], 5),
    ("idle", &["cpu.idle"], 5),
    ("wait", &["cpu.iowait"], 5),
    ("steal", &["cpu.steal"], 6),
    ("free", &["memory.free"], 12),
    ("cache", &["memory.cached"], 12),
    ("swap/s", &["vmstat.swapped_in", "vmstat.swapped_out"], 8),
    ("read/s", &["vmstat.paged_in"], 12),
    ("write/s", &["vmstat.paged_out"], 12),
    ("int/s", &["sched.interrupts"], 8),
    ("ctxt/s", &["sched.context_switches"], 8),
    ("fork/s", &["sched.forks"], 8),
];

/// Lines between two headings.
const PAGE: u32 = 20;

pub(super) fn line(values: &BTreeMap<&str, f64>, number: u32, out: &mut dyn Write) -> io::Result<()> {
    if number.is_multiple_of(PAGE) {
        for (heading, _, width) in COLUMNS {
            write!(out, "{heading:>width$}")?;
        }
        writeln!(out)?;
    }
    for (_, channels, width) in COLUMNS {
        let text = column(channels, values).unwrap_or_else(|| "-".to_owned());
        write!(out, "{text:>width$}")?;
    }
    writeln!(out)?;
    out.flush()
}

/// `None` where one of the channels is not measured here.
fn column(channels: &[&str], values: &BTreeMap<&str, f64>) -> Option<String> {
    let mut sum = 0.0;
    for channel in channels {
        sum += values.get(channel)?;
    }
    let first = channels.first()?;
    Some(match first.split('.').next()? {
        "cpu" => format!("{:.0}%", sum * 100.0),
        "memory" => amount(sum, "B"),
        _ if first.starts_with("vmstat.paged") => amount(sum, "B"),
        _ => format!("{sum:.0}"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_measured_is_a_dash() {
        let values =
            BTreeMap::from([("cpu.usr", 0.25), ("sched.running", 3.0), ("memory.free", 1_048_576.0)]);
        let mut out = Vec::new();
        line(&values, 0, &mut out).unwrap();
        let text = String::from_utf8(out).unwrap();
        let (head, row) = text.split_once('\n').unwrap();
        assert_eq!(head.len() + 1, row.len(), "{text}");
        assert_eq!(row.split_whitespace().take(4).collect::<Vec<_>>(), ["3", "-", "25%", "-"]);
        assert!(row.contains("1.00 MiB"), "{row}");
    }
}
