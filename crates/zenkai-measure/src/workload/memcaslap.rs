//! memcaslap (memaslap in older packages), the load generator that comes with libmemcached, against a memcached that
//! the user names.

use super::{Adapter, Kind, higher, lower, text};

pub(super) struct Memcaslap;

static KINDS: [Kind; 3] = [higher("operations", "1/s"), higher("transfer", "B/s"), lower("get_misses", "")];

impl Adapter for Memcaslap {
    fn programs(&self) -> &'static [&'static str] {
        &["memcaslap", "memaslap"]
    }

    fn packages(&self) -> Option<(&'static str, &'static str)> {
        Some(("libmemcached-tools", "Fedora: libmemcached-awesome-tools"))
    }

    fn primary(&self) -> &'static str {
        "operations"
    }

    fn kinds(&self) -> &'static [Kind] {
        &KINDS
    }

    fn additions(&self, _: &[String]) -> Vec<String> {
        Vec::new()
    }

    fn read(&self, stdout: &[u8], _: &[u8]) -> Result<Vec<(String, f64)>, String> {
        let text = String::from_utf8_lossy(stdout);
        let none = "memcaslap's report has no operations per second; is the server up?";
        // "Run time: 1.0s Ops: 25411 TPS: 25392 Net_rate: 28.4M/s"
        let line = text::after(&text, "Run time:").ok_or(none)?;
        let get = |label: &str| line.split_once(label).and_then(|(_, rest)| text::with_suffix(rest));
        let rate = get("TPS:").map(|(rate, _)| rate).filter(|rate| *rate > 0.0).ok_or(none)?;
        let mut numbers = vec![("operations".to_owned(), rate)];
        // Divided by 1024 twice, with one decimal.
        let transfer = get("Net_rate:").filter(|(_, unit)| *unit == "M").map(|(rate, _)| rate * 1_048_576.0);
        numbers.extend(transfer.map(|rate| ("transfer".to_owned(), rate)));
        let misses = text::after(&text, "get_misses:").and_then(text::leading);
        numbers.extend(misses.map(|count| ("get_misses".to_owned(), count)));
        Ok(numbers)
    }
}
