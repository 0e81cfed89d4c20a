//! sysbench 1.0: its report for people, the only one it has.

use super::{Adapter, Kind, higher, lower, text};

pub(super) struct Sysbench;

static KINDS: [Kind; 11] = [
    higher("events", "1/s"),
    lower("latency_", "s"),
    higher("transfer", "B/s"),
    higher("reads", "1/s"),
    higher("writes", "1/s"),
    higher("fsyncs", "1/s"),
    higher("read_bandwidth", "B/s"),
    higher("write_bandwidth", "B/s"),
    higher("transactions", "1/s"),
    higher("queries", "1/s"),
    lower("ignored_errors", "1/s"),
];

/// sysbench divides by 1024 twice.
const MIB: f64 = 1_048_576.0;

/// Label, name, and what one of the label's unit is in ours.
const PER_SECOND: [(&str, &str, f64); 5] = [
    ("reads/s:", "reads", 1.0),
    ("writes/s:", "writes", 1.0),
    ("fsyncs/s:", "fsyncs", 1.0),
    ("read, MiB/s:", "read_bandwidth", MIB),
    ("written, MiB/s:", "write_bandwidth", MIB),
];

/// Lines such as `transactions: 1234 (123.40 per sec.)`.
const IN_PARENTHESES: [(&str, &str, f64); 5] = [
    ("transactions:", "transactions", 1.0),
    ("queries:", "queries", 1.0),
    ("ignored errors:", "ignored_errors", 1.0),
    ("Total operations:", "events", 1.0),
    ("MiB transferred", "transfer", MIB),
];

impl Adapter for Sysbench {
    fn programs(&self) -> &'static [&'static str] {
        &["sysbench"]
    }

    fn packages(&self) -> Option<(&'static str, &'static str)> {
        Some(("sysbench", "Fedora, EPEL: sysbench"))
    }

    fn primary(&self) -> &'static str {
        "events"
    }

    fn kinds(&self) -> &'static [Kind] {
        &KINDS
    }

    fn additions(&self, _: &[String]) -> Vec<String> {
        Vec::new()
    }

    fn read(&self, stdout: &[u8], _: &[u8]) -> Result<Vec<(String, f64)>, String> {
        let text = String::from_utf8_lossy(stdout);
        let missing = |what: &str| format!("sysbench's report has no {what:?}; was it run with `run`?");
        let get =
            |label: &str| text::after(&text, label).and_then(text::leading).ok_or_else(|| missing(label));
        let events = get("total number of events:")?;
        let time = get("total time:")?;
        if events <= 0.0 || time <= 0.0 {
            return Err("sysbench finished no event".to_owned());
        }
        let mut numbers = vec![("events".to_owned(), events / time)];
        // The average is printed with two decimals of a millisecond; the sum has more.
        if let Ok(sum) = get("sum:") {
            numbers.push(("latency_avg".to_owned(), sum / 1e3 / events));
        }
        // 0.00 only says that it was too short for the report.
        let latencies = text.lines().filter_map(latency).filter(|(_, value)| *value > 0.0);
        numbers.extend(latencies.take(8));
        for (label, name, scale) in PER_SECOND {
            numbers.extend(get(label).ok().map(|value| (name.to_owned(), value * scale)));
        }
        for (label, name, scale) in IN_PARENTHESES {
            let line = text.lines().find(|line| line.contains(label));
            let value = line.and_then(|line| text::leading(line.split_once('(')?.1));
            numbers.extend(value.map(|value| (name.to_owned(), value * scale)));
        }
        Ok(numbers)
    }
}

/// `max: 380.22`, `95th percentile: 15.55`, in milliseconds.
fn latency(line: &str) -> Option<(String, f64)> {
    let (label, value) = line.trim().split_once(':')?;
    let name = match label {
        "min" | "max" => label.to_owned(),
        _ => format!("p{}", label.strip_suffix("th percentile").filter(|rank| rank.parse::<u32>().is_ok())?),
    };
    Some((format!("latency_{name}"), text::leading(value)? / 1e3))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What sysbench 1.0.20 reports of `oltp_read_write` on PostgreSQL, shortened.
    #[test]
    fn a_database_is_read() {
        let report = "SQL statistics:
    queries performed:
        read:                            1540
        total:                           2200
    transactions:                        110    (95.52 per sec.)
    queries:                             2200   (1910.31 per sec.)
    ignored errors:                      0      (0.00 per sec.)

General statistics:
    total time:                          1.1499s
    total number of events:              110

Latency (ms):
         min:                                    0.00
         avg:                                   10.44
         99th percentile:                       16.71
         sum:                                 1148.77
";
        let numbers = Sysbench.read(report.as_bytes(), b"").unwrap();
        let get = |name: &str| numbers.iter().find(|(known, _)| known == name).map(|(_, value)| *value);
        assert_eq!((get("transactions"), get("queries")), (Some(95.52), Some(1910.31)));
        assert_eq!((get("ignored_errors"), get("latency_p99")), (Some(0.0), Some(0.01671)));
        assert!((get("events").unwrap() - 110.0 / 1.1499).abs() < 1e-9);
        assert!((get("latency_avg").unwrap() - 1.14877 / 110.0).abs() < 1e-9);
        // Too short for two decimals of a millisecond: not known, and not zero.
        assert_eq!(get("latency_min"), None);
    }
}
