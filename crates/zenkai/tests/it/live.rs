//! The machine the tests run on.

use std::{fs, process::Command, sync::Mutex};

use serde_json::Value;
use zenkai::cli::Exit;
use zenkai_diagnose::{Context, Policy, Selection, diagnose};
use zenkai_host::{Capture, FakeHost, LiveHost, RecordingHost};

use crate::zenkai;

/// The promise of captures: the same look at the machine, kept as text and without identity, leads to the same
/// diagnosis and the same facts, byte for byte.
#[test]
fn a_capture_tells_what_the_machine_told() {
    let host = RecordingHost::new(LiveHost);
    let live = zenkai_facts::observe(&host);
    let capture = host.into_capture();
    let text = capture.clone().anonymised().to_text();
    let replayed = zenkai_facts::observe(&FakeHost::from_capture(Capture::parse(&text).unwrap()));
    let judge = |facts| {
        let diagnosis = diagnose(facts, Context::default(), &Policy::default(), &Selection::default());
        serde_json::to_string_pretty(&diagnosis).unwrap()
    };
    assert_eq!(judge(&live), judge(&replayed));
    let exact = zenkai_facts::observe(&FakeHost::from_capture(capture));
    assert_eq!(serde_json::to_string(&live).unwrap(), serde_json::to_string(&exact).unwrap());
}

#[test]
fn a_capture_holds_no_name_of_this_machine() {
    let text = zenkai(&["capture"]).out;
    let mut secrets = Vec::new();
    secrets.extend(fs::read_to_string("/proc/sys/kernel/hostname").ok());
    for path in ["/etc/machine-id", "/proc/sys/kernel/random/boot_id", "/sys/class/dmi/id/product_uuid"] {
        secrets.extend(fs::read_to_string(path).ok());
    }
    for device in fs::read_dir("/sys/class/net").unwrap() {
        secrets.extend(fs::read_to_string(device.unwrap().path().join("address")).ok());
    }
    let secrets = secrets.iter().map(|secret| secret.trim()).filter(|secret| {
        // A short or all-zero name is part of other words.
        secret.len() > 5 && !secret.chars().all(|letter| "0:-".contains(letter))
    });
    for secret in secrets {
        assert!(!text.contains(secret), "the capture tells {secret}");
    }
    assert_eq!(Capture::parse(&text).unwrap().anonymised().to_text(), text, "anonymising twice changes more");
}

#[test]
fn facts_are_what_the_kernel_says() {
    let facts: Value = serde_json::from_str(&zenkai(&["facts", "--json"]).out).unwrap();
    let online = fs::read_to_string("/sys/devices/system/cpu/online").unwrap();
    assert_eq!(facts["cpu"]["online"], online.trim());
    let release = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap();
    assert_eq!(facts["kernel"]["release"], release.trim());
}

#[test]
fn every_check_can_be_explained() {
    let checks: Value = serde_json::from_str(&zenkai(&["checks", "--json"]).out).unwrap();
    let checks = checks["checks"].as_array().unwrap();
    assert!(checks.len() >= 60, "only {} checks", checks.len());
    for check in checks {
        let id = check["id"].as_str().unwrap();
        let called = zenkai(&["explain", id]);
        assert_eq!(called.exit, Exit::Fine);
        assert!(called.out.contains(id));
    }
}

#[test]
fn every_subsystem_is_judged() {
    let all: Value = serde_json::from_str(&zenkai(&["checks", "--json"]).out).unwrap();
    for subsystem in [
        "cpu",
        "idle",
        "power",
        "memory",
        "numa",
        "block",
        "pcie",
        "net",
        "irq",
        "kernel",
        "cgroup",
        "virtualisation",
        "services",
    ] {
        let own = all["checks"].as_array().unwrap().iter().filter(|check| check["subsystem"] == subsystem);
        assert!(own.count() >= 2, "{subsystem} is hardly judged");
    }
}

/// Puts attributes back as they were, whatever the test does.
struct Restored(Vec<(String, String)>);

impl Restored {
    fn new(paths: &[&str]) -> Self {
        Self(paths.iter().map(|path| ((*path).to_owned(), fs::read_to_string(path).unwrap())).collect())
    }
}

impl Drop for Restored {
    fn drop(&mut self) {
        for (path, value) in &self.0 {
            fs::write(path, value).unwrap();
        }
    }
}

/// Held by whoever turns a knob of this machine beside the other tests, and by whoever needs it to stay as it is.
pub(crate) static KNOBS: Mutex<()> = Mutex::new(());

/// Whether a check finds something, with this word in what it says.
fn fires(check: &str, word: &str) -> bool {
    let doctor: Value = serde_json::from_str(&zenkai(&["doctor", "--json", "--only", check]).out).unwrap();
    doctor["findings"].as_array().unwrap().iter().any(|finding| finding.to_string().contains(word))
}

/// Real knobs of this machine: turned, found, and put back.
#[test]
fn what_is_turned_here_is_found_here() {
    const DIRTY_RATIO: &str = "/proc/sys/vm/dirty_ratio";
    const DIRTY_BYTES: &str = "/proc/sys/vm/dirty_bytes";
    let _knobs = KNOBS.lock();
    let writable = |path: &str| fs::OpenOptions::new().write(true).open(path).is_ok();
    if !writable(DIRTY_RATIO) {
        eprintln!("SKIPPED: the sysctls of this machine are not ours to write");
        return;
    }
    if fs::read_to_string(DIRTY_BYTES).unwrap().trim() == "0" {
        // Writing dirty_bytes clears dirty_ratio, so the ratio is what is put back.
        let _restored = Restored::new(&[DIRTY_RATIO]);
        fs::write(DIRTY_RATIO, "20").unwrap();
        assert!(!fires("memory-dirty-limits-small", ""));
        fs::write(DIRTY_BYTES, "4194304").unwrap();
        assert!(fires("memory-dirty-limits-small", ""));
    }
    let disks = ["vda", "sda", "nvme0n1", "xvda"];
    let ahead = disks.map(|disk| (disk, format!("/sys/block/{disk}/queue/read_ahead_kb")));
    if let Some((disk, path)) = ahead.iter().find(|(_, path)| writable(path)) {
        let _restored = Restored::new(&[path]);
        fs::write(path, "128").unwrap();
        assert!(!fires("block-read-ahead-off", disk));
        fs::write(path, "0").unwrap();
        assert!(fires("block-read-ahead-off", disk));
    }
}

/// Our own ioctls against the tool that everybody trusts, on every card of this machine.
#[test]
fn network_cards_are_what_ethtool_says() {
    let facts: Value = serde_json::from_str(&zenkai(&["facts", "net", "--json"]).out).unwrap();
    let interfaces = facts["interfaces"].as_array().unwrap();
    let mut compared = 0;
    for interface in interfaces.iter().filter(|interface| interface["hardware"].is_object()) {
        let name = interface["name"].as_str().unwrap();
        let ours = &interface["hardware"]["ethtool"];
        let Ok(told) = Command::new("ethtool").args(["-i", name]).output() else {
            eprintln!("SKIPPED: ethtool is not installed");
            return;
        };
        let told = String::from_utf8(told.stdout).unwrap();
        let driver = told.lines().find_map(|line| line.strip_prefix("driver: ")).unwrap();
        assert_eq!(ours["driver"]["name"], driver, "{name}");
        let told = Command::new("ethtool").args(["-g", name]).output().unwrap();
        let told = String::from_utf8(told.stdout).unwrap();
        // Maxima first, then what is in force, each with a line `RX:`.
        let mut rings = told.lines().filter_map(|line| line.strip_prefix("RX:")).map(str::trim);
        if let (Some(most), Some(now)) = (rings.next(), rings.next()) {
            assert_eq!(ours["rings"]["rx_max"].to_string(), most, "{name}");
            assert_eq!(ours["rings"]["rx"].to_string(), now, "{name}");
        }
        compared += 1;
    }
    eprintln!("{compared} of {} interfaces compared", interfaces.len());
}
