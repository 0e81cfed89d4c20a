//! fio: its JSON (`stat.c`: `show_thread_status_json`), one entry a job, or a group with `group_reporting`.

use std::collections::BTreeMap;

use serde_json::Value;

use super::{Adapter, Kind, given, higher, lower, neither};

pub(super) struct Fio;

/// Largest output that is read. fio with a hundred jobs writes one megabyte.
const LARGEST: usize = 8 * 1024 * 1024;
/// Jobs that are told one by one.
const JOBS: usize = 256;
/// Of the percentiles that fio gives by default, those that people compare.
const PERCENTILES: [(&str, &str); 5] = [
    ("50.000000", "50"),
    ("90.000000", "90"),
    ("95.000000", "95"),
    ("99.000000", "99"),
    ("99.900000", "99.9"),
];

static KINDS: [Kind; 5] = [
    higher("iops", "1/s"),
    higher("bandwidth", "B/s"),
    lower("clat_", "s"),
    lower("lat_", "s"),
    neither("runtime", "s"),
];

impl Adapter for Fio {
    fn programs(&self) -> &'static [&'static str] {
        &["fio"]
    }

    fn packages(&self) -> Option<(&'static str, &'static str)> {
        Some(("fio", "Red Hat, Fedora: fio"))
    }

    fn primary(&self) -> &'static str {
        "iops"
    }

    fn kinds(&self) -> &'static [Kind] {
        &KINDS
    }

    fn additions(&self, argv: &[String]) -> Vec<String> {
        // "--output-format json" and "-output-format" are understood too (getopt_long_only).
        let chosen = given(argv, &["--output-format", "-output-format", "--minimal", "--append-terse"]);
        if chosen { Vec::new() } else { vec!["--output-format=json".to_owned()] }
    }

    fn read(&self, stdout: &[u8], _: &[u8]) -> Result<Vec<(String, f64)>, String> {
        let value = parse(stdout)?;
        let jobs = value.get("jobs").and_then(Value::as_array).ok_or("fio's JSON has no jobs")?;
        let mut numbers = Vec::new();
        let (mut iops, mut bandwidth) = (0.0, 0.0);
        let mut seen: BTreeMap<&str, usize> = BTreeMap::new();
        for job in jobs {
            let name = job.get("jobname").and_then(Value::as_str).unwrap_or("job");
            if let Some(code) = job.get("error").and_then(Value::as_i64).filter(|code| *code != 0) {
                return Err(format!("fio's job {name} failed with error {code}"));
            }
            let repeated = seen.entry(name).and_modify(|count| *count += 1).or_insert(1);
            let prefix = match (jobs.len(), *repeated) {
                (1, _) => String::new(),
                (_, 1) => format!("{name}/"),
                (_, count) => format!("{name}.{count}/"),
            };
            for direction in ["read", "write", "trim"] {
                let Some(part) = job.get(direction).filter(|part| number(part, "total_ios") > Some(0.0))
                else {
                    continue;
                };
                iops += number(part, "iops").unwrap_or(0.0);
                bandwidth += number(part, "bw_bytes").unwrap_or(0.0);
                if numbers.len() < JOBS * 20 {
                    numbers.extend(of_direction(part, &format!("{prefix}{direction}/")));
                }
            }
        }
        if iops <= 0.0 {
            return Err("fio did no I/O".to_owned());
        }
        numbers.push(("iops".to_owned(), iops));
        numbers.push(("bandwidth".to_owned(), bandwidth));
        Ok(numbers)
    }
}

/// The JSON, which may have warnings before and after it.
fn parse(stdout: &[u8]) -> Result<Value, String> {
    let none =
        "fio wrote no JSON to its standard output; leave out --output, and --output-format other than json";
    let begins = |index: &usize| {
        stdout.get(*index) == Some(&b'{') && (*index == 0 || stdout.get(*index - 1) == Some(&b'\n'))
    };
    let start = (0..stdout.len()).find(begins).ok_or(none)?;
    let end = stdout.iter().rposition(|byte| *byte == b'}').filter(|end| *end > start).ok_or(none)?;
    let text = stdout.get(start..=end).unwrap_or_default();
    if text.len() > LARGEST {
        return Err(format!("fio wrote more than {LARGEST} bytes of JSON"));
    }
    serde_json::from_slice(text).map_err(|error| format!("fio's JSON cannot be read: {error}"))
}

fn of_direction(part: &Value, prefix: &str) -> Vec<(String, f64)> {
    let mut numbers = Vec::new();
    let mut add = |name: &str, value: Option<f64>| {
        numbers.extend(value.map(|value| (format!("{prefix}{name}"), value)));
    };
    add("iops", number(part, "iops"));
    add("bandwidth", number(part, "bw_bytes"));
    for latency in ["clat", "lat"] {
        // Nanoseconds since fio 3.0.
        let Some(times) = part.get(format!("{latency}_ns").as_str()) else { continue };
        if number(times, "N").is_none_or(|count| count <= 0.0) {
            continue;
        }
        add(&format!("{latency}_mean"), number(times, "mean").map(seconds));
        add(&format!("{latency}_max"), number(times, "max").map(seconds));
        let Some(percentiles) = times.get("percentile") else { continue };
        for (key, short) in PERCENTILES {
            add(&format!("{latency}_p{short}"), number(percentiles, key).map(seconds));
        }
    }
    numbers
}

fn seconds(nanoseconds: f64) -> f64 {
    nanoseconds / 1e9
}

fn number(value: &Value, key: &str) -> Option<f64> {
    value.get(key)?.as_f64()
}
