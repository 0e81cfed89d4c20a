//! iperf3 as a client: its JSON (`iperf_api.c`: `iperf_json_finish`, `iperf_print_results`).

use serde_json::Value;

use super::{Adapter, Kind, given, higher, lower, neither};

pub(super) struct Iperf3;

/// Largest output that is read: an hour of intervals of 128 streams fits in.
const LARGEST: usize = 16 * 1024 * 1024;

static KINDS: [Kind; 8] = [
    higher("received", "B/s"),
    higher("sent", "B/s"),
    lower("retransmits", ""),
    lower("rtt_mean", "s"),
    lower("jitter", "s"),
    lower("lost", ""),
    neither("cpu_local", ""),
    neither("cpu_remote", ""),
];

impl Adapter for Iperf3 {
    fn programs(&self) -> &'static [&'static str] {
        &["iperf3"]
    }

    fn packages(&self) -> Option<(&'static str, &'static str)> {
        Some(("iperf3", "Red Hat, Fedora: iperf3"))
    }

    fn primary(&self) -> &'static str {
        "received"
    }

    fn kinds(&self) -> &'static [Kind] {
        &KINDS
    }

    fn additions(&self, argv: &[String]) -> Vec<String> {
        if given(argv, &["-J", "--json", "--json-stream"]) { Vec::new() } else { vec!["-J".to_owned()] }
    }

    fn read(&self, stdout: &[u8], _: &[u8]) -> Result<Vec<(String, f64)>, String> {
        if stdout.len() > LARGEST {
            return Err(format!("iperf3 wrote more than {LARGEST} bytes"));
        }
        let value: Value = serde_json::from_slice(stdout)
            .map_err(|error| format!("iperf3's JSON cannot be read (is it written to a file?): {error}"))?;
        // With -J some versions report failure here only and exit with 0.
        if let Some(error) = value.get("error").and_then(Value::as_str) {
            return Err(format!("iperf3: {error}"));
        }
        let end = value.get("end").ok_or("iperf3's JSON has no end")?;
        let mut numbers = Vec::new();
        let mut add = |name: &str, path: &str, scale: f64| {
            let found = end.pointer(path).and_then(Value::as_f64);
            numbers.extend(found.map(|found| (name.to_owned(), found * scale)));
        };
        add("received", "/sum_received/bits_per_second", 0.125);
        add("sent", "/sum_sent/bits_per_second", 0.125);
        add("reverse/received", "/sum_received_bidir_reverse/bits_per_second", 0.125);
        add("reverse/sent", "/sum_sent_bidir_reverse/bits_per_second", 0.125);
        add("retransmits", "/sum_sent/retransmits", 1.0);
        add("rtt_mean", "/streams/0/sender/mean_rtt", 1e-6);
        // UDP; older versions have no sum_received for it, and their sum is the receiver's.
        add("jitter", "/sum/jitter_ms", 1e-3);
        add("lost", "/sum/lost_percent", 1e-2);
        add("cpu_local", "/cpu_utilization_percent/host_total", 1e-2);
        add("cpu_remote", "/cpu_utilization_percent/remote_total", 1e-2);
        if end.get("sum_received").is_none() {
            add("received", "/sum/bits_per_second", 0.125);
        }
        let measured = numbers.iter().any(|(name, rate)| name == "received" && *rate > 0.0);
        if measured { Ok(numbers) } else { Err("iperf3 received nothing".to_owned()) }
    }
}
