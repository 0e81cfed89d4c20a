//! The last experiment with equal arms on this machine, which the reports of all others show.

use std::{
    fs::OpenOptions,
    io::{self, Write},
    os::unix::fs::OpenOptionsExt,
    path::{Path, PathBuf},
};

use anyhow::Context as _;
use serde_json::{Value, json};
use zenkai_host::{Host as _, LiveHost};
use zenkai_measure::experiment::Metric;

use crate::cli::{CommandError, change::is_root, experiment::read_small, labels};

/// Its name in the directory of another experiment.
const NAME: &str = "aa.json";
/// What is kept of an experiment is far smaller.
const LARGEST: usize = 64 * 1024;

/// Where the last result for this metric is: in the state directory, or beside the experiments of whoever is not root.
fn path(dir: &Path, metric: &Metric) -> PathBuf {
    let plain = |letter: char| if letter.is_ascii_alphanumeric() { letter } else { '-' };
    let name: String = metric.name.chars().take(64).map(plain).collect();
    if is_root() {
        return PathBuf::from(format!("{}/{name}.json", labels::state_folder("aa")));
    }
    let beside = dir.parent().filter(|parent| !parent.as_os_str().is_empty());
    beside.unwrap_or_else(|| Path::new(".")).join(format!(".zenkai-aa-{name}.json"))
}

fn host() -> String {
    let name = LiveHost.read("/proc/sys/kernel/hostname").unwrap_or_default();
    String::from_utf8_lossy(&name).trim().to_owned()
}

/// Keeps the result of an experiment with equal arms, given as its JSON.
pub(super) fn keep(dir: &Path, metric: &Metric, result: &Value) -> Result<(), CommandError> {
    let taken = |name: &str| result.pointer(&format!("/comparisons/0/{name}")).cloned().unwrap_or_default();
    let comparison: serde_json::Map<String, Value> =
        ["sentence", "verdict", "effect", "interval", "p", "pairs"]
            .map(|name| (name.to_owned(), taken(name)))
            .into_iter()
            .collect();
    let kept = json!({
        "schema": "zenkai.aa/1",
        "host": host(),
        "metric": metric,
        "workload": result["workload"],
        "comparisons": [comparison],
    });
    if is_root() {
        labels::make_state_folder("aa")?;
    }
    let path = path(dir, metric);
    replace(&path, &serde_json::to_vec_pretty(&kept)?).with_context(|| path.display().to_string())?;
    Ok(())
}

/// Never writes through a link that somebody else made.
#[expect(clippy::disallowed_methods, reason = "our own state directory, or the user's experiments")]
fn replace(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let new = path.with_extension("new");
    match std::fs::remove_file(&new) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&new)?;
    file.write_all(bytes)?;
    file.sync_all()?;
    std::fs::rename(&new, path)
}

/// Copies the last result for this metric on this machine, if there is one, into a new experiment's directory.
pub(super) fn copy(dir: &Path, metric: &Metric) -> io::Result<()> {
    let bytes = match read_small(&path(dir, metric)) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        other => other?,
    };
    // Another program's file, or another host's on a shared disk, says nothing about this one.
    let fits = |kept: &Value| {
        kept["host"] == host().as_str()
            && serde_json::to_value(metric).is_ok_and(|metric| kept["metric"] == metric)
    };
    if bytes.len() > LARGEST || !serde_json::from_slice(&bytes).is_ok_and(|kept| fits(&kept)) {
        return Ok(());
    }
    let mut file = OpenOptions::new().write(true).create_new(true).open(dir.join(NAME))?;
    file.write_all(&bytes)
}
