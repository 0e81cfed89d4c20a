//! A line a second, as vmstat(8) has them.

use std::{
    collections::BTreeMap,
    io::{self, Write},
};

/// Heading, channels that are added up, width. Together they fit into 80 columns.
const COLUMNS: [(&str, &[&str], usize); 14] = [
    ("run", &["sched.running"], 3),
    ("blk", &["sched.blocked"], 4),
    ("usr", &["cpu.usr"], 4),
    ("sys", &["cpu.sys", "cpu.irq", "cpu.softirq"], 4),
    ("idle", &["cpu.idle"], 5),
    ("wait", &["cpu.iowait"], 5),
    ("steal", &["cpu.steal"], 6),
    ("free", &["memory.free"], 6),
    ("cache", &["memory.cached"], 6),
    ("swap", &["vmstat.swapped_in", "vmstat.swapped_out"], 6),
    ("read/s", &["vmstat.paged_in"], 7),
    ("write/s", &["vmstat.paged_out"], 8),
    ("int/s", &["sched.interrupts"], 6),
    ("ctxt/s", &["sched.context_switches"], 7),
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
    let is_bytes = first.starts_with("memory.") || first.starts_with("vmstat.paged");
    Some(match first.split('.').next()? {
        "cpu" => format!("{:.0}", sum * 100.0),
        _ => short(sum, if is_bytes { 1024.0 } else { 1000.0 }),
    })
}

/// At most five letters: `904`, `1.8k`, `12G`.
fn short(value: f64, step: f64) -> String {
    let mut value = value;
    let mut prefixes = ["", "k", "M", "G", "T", "P"].iter();
    let mut prefix = prefixes.next().copied().unwrap_or_default();
    while value >= step - 0.5 {
        let Some(next) = prefixes.next() else { break };
        (value, prefix) = (value / step, next);
    }
    let digits = usize::from(value < 9.95 && !prefix.is_empty());
    format!("{value:.digits$}{prefix}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_fits_a_narrow_terminal() {
        assert!(COLUMNS.iter().map(|(_, _, width)| width).sum::<usize>() < 80);
        assert!(COLUMNS.iter().skip(1).all(|(heading, _, width)| heading.len() < *width));
    }

    #[test]
    fn numbers_are_short() {
        let bytes = [0.0, 904.0, 1023.4, 1023.6, 12.4e9, 8.2e9].map(|value| short(value, 1024.0));
        assert_eq!(bytes, ["0", "904", "1023", "1.0k", "12G", "7.6G"].map(str::to_owned));
        assert_eq!([999.4, 999.6, 1_850.0].map(|value| short(value, 1000.0)), ["999", "1.0k", "1.9k"]);
        assert_eq!(short(1e30, 1000.0), "1000000000000000P");
    }
}
