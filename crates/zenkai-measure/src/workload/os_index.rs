//! Our own suite, [`crate::os_index`]: `-- os-index` stands for this very program.

use serde_json::Value;

use super::{Adapter, Kind, given, higher};

pub(super) struct OsIndex;

/// Largest output that is read: some hundred bytes a score.
const LARGEST: usize = 1024 * 1024;

static KINDS: [Kind; 12] = [
    higher("index", ""),
    higher("integer", "1/s"),
    higher("float", "1/s"),
    higher("process", "1/s"),
    higher("pipe", "B/s"),
    higher("pipe-switch", "1/s"),
    higher("shell", "1/s"),
    higher("copy-256", "B/s"),
    higher("copy-1k", "B/s"),
    higher("copy-4k", "B/s"),
    higher("syscall", "1/s"),
    higher("wake", "1/s"),
];

impl Adapter for OsIndex {
    fn programs(&self) -> &'static [&'static str] {
        &["os-index"]
    }

    fn packages(&self) -> Option<(&'static str, &'static str)> {
        None
    }

    fn primary(&self) -> &'static str {
        "index"
    }

    fn kinds(&self) -> &'static [Kind] {
        &KINDS
    }

    fn stands_for(&self) -> &'static [&'static str] {
        // Right before it becomes the program, the started process still is a copy of us.
        &["/proc/self/exe", "os-index"]
    }

    fn additions(&self, argv: &[String]) -> Vec<String> {
        if given(argv, &["--json"]) { Vec::new() } else { vec!["--json".to_owned()] }
    }

    fn read(&self, stdout: &[u8], _: &[u8]) -> Result<Vec<(String, f64)>, String> {
        let text = stdout.get(..stdout.len().min(LARGEST)).unwrap_or_default();
        let value: Value = serde_json::from_slice(text)
            .map_err(|error| format!("os-index's JSON cannot be read: {error}"))?;
        let index = value.get("index").and_then(Value::as_f64).ok_or("os-index gave no index")?;
        let mut numbers = vec![("index".to_owned(), index)];
        for score in value.get("scores").and_then(Value::as_array).into_iter().flatten() {
            let name = score.get("test").and_then(Value::as_str);
            let copies = score.get("copies").and_then(Value::as_u64);
            let rate = score.get("rate").and_then(Value::as_f64);
            if let (Some(name), Some(copies), Some(rate)) = (name, copies, rate) {
                numbers.push((format!("{copies}x/{name}"), rate));
            }
        }
        Ok(numbers)
    }
}
