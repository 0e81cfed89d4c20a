//! wrk: its report for people (`wrk.c`: `print_stats`, `units.c`).

use super::{Adapter, Kind, given, higher, lower, text};

pub(super) struct Wrk;

/// More bad answers than one in so many: the run has failed, since an error is quickly sent.
const BAD_ONE_IN: f64 = 100.0;

static KINDS: [Kind; 5] = [
    higher("requests", "1/s"),
    higher("transfer", "B/s"),
    lower("latency_", "s"),
    lower("socket_errors", ""),
    lower("bad_answers", ""),
];

impl Adapter for Wrk {
    fn programs(&self) -> &'static [&'static str] {
        &["wrk"]
    }

    fn packages(&self) -> Option<(&'static str, &'static str)> {
        Some(("wrk", "Fedora: wrk"))
    }

    fn primary(&self) -> &'static str {
        "requests"
    }

    fn kinds(&self) -> &'static [Kind] {
        &KINDS
    }

    fn additions(&self, argv: &[String]) -> Vec<String> {
        if given(argv, &["--latency", "-L"]) { Vec::new() } else { vec!["--latency".to_owned()] }
    }

    fn read(&self, stdout: &[u8], _: &[u8]) -> Result<Vec<(String, f64)>, String> {
        let text = String::from_utf8_lossy(stdout);
        let rate = text::after(&text, "Requests/sec:").and_then(text::leading);
        let rate = rate.filter(|rate| *rate > 0.0).ok_or("wrk's report has no requests per second")?;
        let mut numbers = vec![("requests".to_owned(), rate)];
        let total = text.lines().find(|line| line.contains(" requests in ")).and_then(text::leading);
        let bad = text::after(&text, "Non-2xx or 3xx responses:").and_then(text::leading).unwrap_or(0.0);
        if total.is_some_and(|total| bad * BAD_ONE_IN > total) {
            return Err(format!("wrk: {bad} responses were errors (neither 2xx nor 3xx)"));
        }
        numbers.push(("bad_answers".to_owned(), bad));
        // "Socket errors: connect 0, read 12, write 0, timeout 3"
        let errors = text::after(&text, "Socket errors:").unwrap_or_default();
        let errors = errors.split(',').filter_map(|part| text::leading(part.trim().split_once(' ')?.1));
        numbers.push(("socket_errors".to_owned(), errors.sum()));
        numbers.extend(
            text::after(&text, "Transfer/sec:").and_then(bytes).map(|value| ("transfer".to_owned(), value)),
        );
        // "Latency    11.20ms   25.78ms 140.68ms   89.55%": mean, deviation, largest.
        let columns = text.lines().find_map(|line| line.trim().strip_prefix("Latency  "));
        let mut columns = columns.unwrap_or_default().split_whitespace();
        for name in ["latency_avg", "latency_stdev", "latency_max"] {
            numbers.extend(columns.next().and_then(seconds).map(|value| (name.to_owned(), value)));
        }
        let ranks = text.lines().skip_while(|line| line.trim() != "Latency Distribution").skip(1);
        let ranks = ranks.map_while(|line| line.trim().split_once('%'));
        numbers.extend(
            ranks.filter_map(|(rank, value)| Some((format!("latency_p{rank}"), seconds(value)?))).take(16),
        );
        Ok(numbers)
    }
}

/// wrk counts in steps of 1024.
fn bytes(text: &str) -> Option<f64> {
    let (value, unit) = text::with_suffix(text)?;
    let power = match unit {
        "B" => 0,
        "KB" => 1,
        "MB" => 2,
        "GB" => 3,
        "TB" => 4,
        _ => return None,
    };
    Some(value * f64::from(1024_u32).powi(power))
}

fn seconds(text: &str) -> Option<f64> {
    let (value, unit) = text::with_suffix(text)?;
    let scale = match unit {
        "us" => 1e-6,
        "ms" => 1e-3,
        "s" => 1.0,
        "m" => 60.0,
        "h" => 3600.0,
        _ => return None,
    };
    Some(value * scale)
}
