//! The real tuned beside zenkai on this machine: the same profile must end in the same state, and `off` in the state
//! before. `cargo xtask test` fetches tuned and runs this alone, since it changes the machine for a minute or two.
//!
//! Everything runs in a mount namespace of its own, where tuned's files lie over `/usr/lib` and `/etc`, and `/var`,
//! `/run` and `/boot` are private. The kernel's settings are the machine's own: they are saved first and put back at the end,
//! also after a panic.

use std::{
    collections::BTreeSet,
    env, fs,
    path::Path,
    process::{Child, Command, Stdio},
    thread,
    time::{Duration, Instant},
};

use crate::watched::Watched;

/// Set to the folder into which tuned and its Python modules were unpacked.
const TUNED: &str = "ZENKAI_TUNED";
/// Set inside the mount namespace.
const INSIDE: &str = "ZENKAI_INSIDE";

/// Stock profiles left out, with the reason.
const LEFT_OUT: [(&str, &str); 13] = [
    ("atomic-guest", "loads the connection tracker with a table of a million entries"),
    ("atomic-host", "loads the connection tracker with a table of a million entries"),
    ("cpu-partitioning", "moves every task and interrupt"),
    ("cpu-partitioning-powersave", "moves every task and interrupt"),
    ("intel-sst", "steers hardware that few machines have"),
    ("laptop-ac-powersave", "its script steers wireless cards"),
    ("laptop-battery-powersave", "builds on powersave"),
    ("openshift", "loads the connection tracker, forwards packets"),
    ("powersave", "its script steers wireless cards and USB"),
    ("realtime", "moves every task and interrupt"),
    ("realtime-virtual-guest", "moves every task and interrupt"),
    ("realtime-virtual-host", "moves every task and interrupt"),
    ("spindown-disk", "its script remounts file systems and stops services"),
];

/// Where zenkai's end state differs from tuned's on purpose: the start of a profile's name, the start of a path, and the
/// reason. An entry that is not met fails the test, so that the list stays true.
const INTENDED: [(&str, &str, &str); 4] = [
    ("", "/sys/block/loop", "reading ahead for a loop device is the business of the disk below it"),
    ("", "/sys/block/zram", "there is nothing to read ahead from in memory"),
    ("", "/etc/modprobe.d/tuned.conf", "what others wrote there stays"),
    (
        "openshift",
        "/proc/sys/vm/",
        "a guest is known as one without virt-what, so the profile for guests is included",
    ),
];

/// The start of the path in the list of what differs on purpose, if this difference is in it.
pub(crate) fn intended(profile: &str, path: &str) -> Option<&'static str> {
    let entry = INTENDED.iter().find(|(name, start, _)| profile.starts_with(name) && path.starts_with(start));
    entry.map(|(_, start, _)| *start)
}

/// Lays tuned's files over the system's; the bench of xtask does the same.
const NAMESPACE: &str = include_str!("../../../../xtask/src/beside_tuned.sh");

/// Runs a test again, in a mount namespace. Returns whether this is the run inside.
pub(crate) fn inside(test: &str) -> bool {
    if env::var_os(INSIDE).is_some() {
        return true;
    }
    let Some(tuned) = env::var_os(TUNED) else {
        eprintln!("SKIPPED: {TUNED} does not say where tuned is; `cargo xtask test` fetches it");
        return false;
    };
    let scratch = tempfile::tempdir().unwrap();
    let status = Command::new("unshare")
        .args(["--mount", "--propagation", "private", "sh", "-c", NAMESPACE, "sh"])
        .arg(env::current_exe().unwrap())
        .args(["--ignored", "--exact", "--nocapture", test])
        .env("TUNED", &tuned)
        .env("SCRATCH", scratch.path())
        .env(INSIDE, "1")
        .status()
        .unwrap();
    assert!(status.success(), "{test} failed in the mount namespace, see above");
    false
}

/// Puts the machine back at the end, also when a test panics.
pub(crate) struct PutBack(pub(crate) Watched);

impl Drop for PutBack {
    fn drop(&mut self) {
        self.0.put_back();
    }
}

/// The real daemon, without D-Bus and without its profile until it says so in its log.
struct Tuned(Child);

const LOG: &str = "/var/log/tuned/tuned.log";
const ERRORS: &str = "/run/tuned/errors";

impl Tuned {
    fn apply(profile: &str) -> Self {
        fs::write(LOG, "").unwrap();
        let root = env::var(TUNED).unwrap();
        let child = Command::new("/usr/bin/python3")
            .arg(Path::new(&root).join("usr/sbin/tuned"))
            .args(["--no-dbus", "--no-socket", "--log", "--profile", profile])
            .env("PYTHONDONTWRITEBYTECODE", "1")
            .stdout(Stdio::null())
            .stderr(fs::File::create(ERRORS).unwrap())
            .spawn()
            .unwrap();
        let tuned = Self(child);
        let applied = format!("static tuning from profile '{profile}' applied");
        let start = Instant::now();
        while !log().contains(&applied) {
            assert!(start.elapsed() < Duration::from_secs(120), "tuned did not apply {profile}:\n{}", log());
            thread::sleep(Duration::from_millis(20));
        }
        tuned
    }

    /// Ends it as an init system does; it undoes its profile.
    fn off(mut self) {
        Command::new("kill").arg(self.0.id().to_string()).status().unwrap();
        self.0.wait().unwrap();
    }
}

impl Drop for Tuned {
    fn drop(&mut self) {
        // It has ended already, as it should have, unless a test panicked.
        if matches!(self.0.try_wait(), Ok(None)) && self.0.kill().is_ok() {
            self.0.wait().unwrap();
        }
    }
}

fn log() -> String {
    [LOG, ERRORS].map(|file| fs::read_to_string(file).unwrap_or_default()).concat()
}

fn stock_profiles() -> Vec<String> {
    let names = fs::read_dir("/usr/lib/tuned").unwrap().flatten();
    let mut names: Vec<String> = names
        .filter(|entry| entry.path().join("tuned.conf").is_file())
        .map(|entry| entry.file_name().into_string().unwrap())
        .filter(|name| !LEFT_OUT.iter().any(|(left, _)| left == name))
        .collect();
    names.sort();
    names
}

/// The program under test: the release binary if there is one, which is what we ship.
pub(crate) fn zenkai(args: &[&str]) -> Command {
    let binary = env::var("ZENKAI_BIN").unwrap_or_else(|_| env!("CARGO_BIN_EXE_zenkai").to_owned());
    let mut command = Command::new(binary);
    command.args(args).stdin(Stdio::null());
    command
}

fn must(args: &[&str]) {
    let output = zenkai(args).output().unwrap();
    assert!(
        output.status.success(),
        "zenkai {args:?}: {}\n{}{}",
        output.status,
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    );
}

#[test]
#[ignore = "changes this machine for two minutes; `cargo xtask test` runs it"]
fn every_stock_profile_ends_as_with_the_real_tuned() {
    if !inside("real_tuned::every_stock_profile_ends_as_with_the_real_tuned") {
        return;
    }
    let before = PutBack(Watched::look());
    assert!(before.0.0.len() > 1000, "only {} files are watched", before.0.0.len());
    let (mut wrong, mut used) = (Vec::new(), BTreeSet::new());
    let profiles = stock_profiles();
    for profile in &profiles {
        let theirs = with_tuned(profile, &before.0);
        let applied = zenkai(&["profile", "apply", profile]).output().unwrap();
        if !applied.status.success() {
            let said = [applied.stdout, applied.stderr].concat();
            wrong.push(format!("{profile}: apply: {}: {}", applied.status, String::from_utf8_lossy(&said)));
        }
        let ours = Watched::look();
        must(&["profile", "off"]);
        for (path, (was, is)) in before.0.differences(&Watched::look()) {
            wrong.push(format!("{profile}: after off {path} is {is:?}, was {was:?}"));
        }
        before.0.put_back();
        for (path, (theirs, ours)) in theirs.differences(&ours) {
            match intended(profile, &path) {
                Some(start) => {
                    used.insert(start);
                }
                None => wrong.push(format!("{profile}: {path} is {ours:?}, with tuned {theirs:?}")),
            }
        }
    }
    let idle = INTENDED.iter().filter(|(_, start, _)| !used.contains(start));
    wrong.extend(idle.map(|(_, start, why)| format!("no profile differs at {start}: {why}")));
    eprintln!("{} profiles, {} files watched", profiles.len(), before.0.0.len());
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// The state that the real tuned leads to. What it leaves behind after its end is told, not judged.
fn with_tuned(profile: &str, before: &Watched) -> Watched {
    let tuned = Tuned::apply(profile);
    let state = Watched::look();
    tuned.off();
    let left: Vec<String> = before.differences(&Watched::look()).into_keys().collect();
    if !left.is_empty() {
        eprintln!("{profile}: tuned leaves {} changed", left.join(", "));
    }
    before.put_back();
    state
}

/// The real tuned changes what it says here, so that the comparison above compares something.
#[test]
#[ignore = "changes this machine for a moment; `cargo xtask test` runs it"]
fn the_real_tuned_changes_this_machine() {
    if !inside("real_tuned::the_real_tuned_changes_this_machine") {
        return;
    }
    let before = PutBack(Watched::look());
    let changed = before.0.differences(&with_tuned("throughput-performance", &before.0));
    let swappiness = changed.get("/proc/sys/vm/swappiness");
    assert!(swappiness.is_some(), "{changed:?}");
    let rest = before.0.differences(&Watched::look());
    assert!(rest.is_empty(), "not put back: {rest:?}");
}
