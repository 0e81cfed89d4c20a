//! The real tuned's loader as the judge: the same files to both, and the same answer wanted.

use std::{
    collections::BTreeMap,
    io::Write as _,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use serde_json::{Value, json};
use zenkai_host::FakeHost;
use zenkai_tune::profile::{Expander, Functions, Library, Profile};

/// Files and which profiles to load from them.
#[derive(Default)]
pub(crate) struct World {
    pub(crate) files: BTreeMap<String, String>,
    /// Whether the world is a virtual machine.
    pub(crate) is_guest: bool,
    pub(crate) loads: Vec<Vec<String>>,
}

/// Two packages of two cores.
const CPUS: [(&str, &str); 6] = [
    ("/sys/devices/system/cpu/online", "0-3\n"),
    ("/sys/devices/system/cpu/present", "0-7\n"),
    ("/sys/devices/system/cpu/cpu0/topology/physical_package_id", "0\n"),
    ("/sys/devices/system/cpu/cpu1/topology/physical_package_id", "0\n"),
    ("/sys/devices/system/cpu/cpu2/topology/physical_package_id", "1\n"),
    ("/sys/devices/system/cpu/cpu3/topology/physical_package_id", "1\n"),
];

/// Where `cargo xtask test` unpacks tuned's packages; `ZENKAI_TUNED_ORACLE` names another place.
pub(crate) fn root() -> Option<PathBuf> {
    let named = std::env::var("ZENKAI_TUNED_ORACLE").ok().map(PathBuf::from);
    let usual = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/tuned-oracle");
    let root = named.unwrap_or(usual);
    root.join("usr/lib/python3/dist-packages/tuned").is_dir().then_some(root)
}

/// What tuned makes of the worlds: one answer for every load of every world. Nothing when tuned is not there, which is
/// said aloud.
pub(crate) fn answers(worlds: &[World]) -> Option<Vec<Value>> {
    let Some(root) = root() else {
        eprintln!("SKIPPED: tuned is not there; `cargo xtask test` fetches it");
        return None;
    };
    let input: Vec<Value> = worlds
        .iter()
        .map(|world| {
            let virt = if world.is_guest { "kvm\n" } else { "" };
            let mut files = world.files.clone();
            files.extend(CPUS.map(|(path, text)| (path.to_owned(), text.to_owned())));
            json!({ "files": files, "virt": virt, "loads": world.loads })
        })
        .collect();
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/oracle.py");
    let mut child = Command::new("/usr/bin/python3")
        .arg(script)
        .arg(root)
        .env("PYTHONUTF8", "1")
        .env("PYTHONDONTWRITEBYTECODE", "1")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    // The script reads all of it before it writes anything.
    child.stdin.take().unwrap().write_all(Value::from(input).to_string().as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success(), "the oracle failed");
    Some(serde_json::from_slice(&output.stdout).unwrap())
}

/// What we make of one load, in the oracle's form.
pub(crate) fn ours(world: &World, names: &[String]) -> Value {
    let mut host = FakeHost::new(&CPUS);
    for (path, text) in &world.files {
        host = host.file(path, text);
    }
    let flags = if world.is_guest { "hypervisor" } else { "fpu" };
    host = host.file("/proc/cpuinfo", &format!("vendor_id\t: GenuineIntel\nflags\t\t: {flags}\n"));
    host = host.file("/proc/1/comm", "systemd\n").file("/proc/2/comm", "kthreadd\n");
    let library = Library::new(&host, vec!["/usr/lib/tuned".to_owned(), "/etc/tuned".to_owned()]);
    let functions = Functions { host: &host, commands: None };
    match library.load(names, None, &functions) {
        Ok(profile) => shown(&profile, functions),
        Err(error) => json!({ "error": error.as_tuned() }),
    }
}

/// tuned expands devices and two of the expressions when it loads.
fn shown(profile: &Profile, functions: Functions<'_>) -> Value {
    let expander = Expander::of(profile, functions);
    let full = |raw: &Option<String>| raw.as_ref().map(|raw| expander.expand(raw).text);
    let units = profile.units.iter().map(|unit| {
        let mut options: Vec<Value> = Vec::new();
        for (key, value) in &unit.options {
            if key != "script" {
                options.push(json!([key, value.raw]));
            } else if !options.iter().any(|option| option[0] == "script") {
                let scripts: Vec<&str> = unit.all("script").map(|value| value.raw.as_str()).collect();
                options.push(json!(["script", scripts]));
            }
        }
        let about = json!({
            "priority": unit.priority,
            "type": unit.plugin,
            "enabled": unit.enabled,
            "devices": expander.expand(&unit.devices).text,
            "devices_udev_regex": unit.devices_udev_regex,
            "cpuinfo_regex": full(&unit.cpuinfo_regex),
            "uname_regex": full(&unit.uname_regex),
            "script_pre": unit.script_pre.as_ref().map(|value| &value.raw),
            "script_post": unit.script_post.as_ref().map(|value| &value.raw),
        });
        json!([unit.name, about, options])
    });
    let variables = profile.variables.iter().map(|(name, value)| {
        let prefix = if name.starts_with("TUNED_") { "" } else { "TUNED_" };
        json!([format!("{prefix}{name}"), value.raw])
    });
    json!({ "units": units.collect::<Vec<_>>(), "variables": variables.collect::<Vec<_>>() })
}

/// Where two answers differ: a path into them and both values, at most a few.
pub(crate) fn differences(theirs: &Value, ours: &Value) -> String {
    let mut found = Vec::new();
    differ("", theirs, ours, &mut found);
    found.truncate(5);
    found.join("\n")
}

fn differ(path: &str, theirs: &Value, ours: &Value, found: &mut Vec<String>) {
    match (theirs, ours) {
        (Value::Array(left), Value::Array(right)) if left.len() == right.len() => {
            for (at, (left, right)) in left.iter().zip(right).enumerate() {
                differ(&format!("{path}/{at}"), left, right, found);
            }
        }
        (Value::Object(left), Value::Object(right)) if left.keys().eq(right.keys()) => {
            for (key, left) in left {
                differ(&format!("{path}/{key}"), left, &right[key], found);
            }
        }
        _ if theirs != ours => found.push(format!("  {path}\n    tuned {theirs}\n    ours  {ours}")),
        _ => {}
    }
}
