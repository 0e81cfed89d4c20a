//! stress-ng: the table that `--metrics` and `--metrics-brief` print (`stress-ng.c`: `stress_metrics_dump`).
//!
//! Bogo operations of one version cannot be compared with another's; two arms on one machine can.

use super::{Adapter, Kind, given, higher};

pub(super) struct StressNg;

/// Stressors that are told one by one; it has some 350.
const STRESSORS: usize = 512;

static KINDS: [Kind; 2] = [higher("bogo_ops", "1/s"), higher("bogo_ops_per_cpu_time", "1/s")];

impl Adapter for StressNg {
    fn programs(&self) -> &'static [&'static str] {
        &["stress-ng"]
    }

    fn packages(&self) -> Option<(&'static str, &'static str)> {
        Some(("stress-ng", "Red Hat, Fedora: stress-ng"))
    }

    fn primary(&self) -> &'static str {
        "bogo_ops"
    }

    fn kinds(&self) -> &'static [Kind] {
        &KINDS
    }

    fn additions(&self, argv: &[String]) -> Vec<String> {
        let chosen = given(argv, &["--metrics", "-M", "--metrics-brief"]);
        if chosen { Vec::new() } else { vec!["--metrics-brief".to_owned()] }
    }

    fn read(&self, stdout: &[u8], stderr: &[u8]) -> Result<Vec<(String, f64)>, String> {
        // --stdout and --log-file choose the place; the standard is stderr.
        let rows: Vec<_> = [stderr, stdout]
            .into_iter()
            .flat_map(|output| {
                let text = String::from_utf8_lossy(output);
                text.lines().filter_map(row).take(STRESSORS).collect::<Vec<_>>()
            })
            .collect();
        let rates: Vec<f64> = rows.iter().map(|row| row.1).filter(|rate| *rate > 0.0).collect();
        if rates.is_empty() {
            return Err("stress-ng printed no bogo operations".to_owned());
        }
        // Stressors differ by orders of magnitude: the geometric mean weighs their ratios alike.
        let logs: f64 = rates.iter().map(|rate| libm::log(*rate)).sum();
        let count = crate::to_f64(u64::try_from(rates.len()).unwrap_or(u64::MAX));
        let mut numbers = vec![("bogo_ops".to_owned(), libm::exp(logs / count))];
        for (name, rate, per_cpu_time) in rows {
            numbers.push((format!("{name}/bogo_ops"), rate));
            numbers.push((format!("{name}/bogo_ops_per_cpu_time"), per_cpu_time));
        }
        Ok(numbers)
    }
}

/// `stress-ng: metrc: [123] cpu  681  1.00  0.52  0.00  680.84  1291.39`: operations, real, user and system time, and
/// operations per second of real time and of CPU time. Until 0.14 the second word is `info:`.
fn row(line: &str) -> Option<(String, f64, f64)> {
    let (_, row) = line.strip_prefix("stress-ng: ")?.split_once("] ")?;
    let mut words = row.split_whitespace();
    let name = words.next()?.to_owned();
    let numbers: Vec<f64> = words.map_while(|word| word.parse().ok()).take(6).collect();
    match numbers[..] {
        [_, _, _, _, rate, per_cpu_time] => Some((name, rate, per_cpu_time)),
        _ => None,
    }
}
