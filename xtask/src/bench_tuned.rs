//! `cargo xtask bench`: switching profiles, beside the real tuned. Everything runs in a mount namespace of its own, as
//! in the test `real_tuned`; the kernel's settings are the machine's own and are put back.

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    thread,
    time::{Duration, Instant},
};

use anyhow::{Context as _, bail};

use crate::{
    bench::{row, time, trace},
    process::{command, is_root, must, works},
    test::tuned_place,
};

/// Lays tuned's files over the system's.
const NAMESPACE: &str = include_str!("beside_tuned.sh");
const LOG: &str = "/var/log/tuned/tuned.log";
const PROFILES: [&str; 2] = ["balanced", "throughput-performance"];
/// A start of tuned takes about half a second; this is when we give up.
const TIME_LIMIT: Duration = Duration::from_secs(30);
/// tuned is slow and does not vary much.
const TUNED_RUNS: usize = 5;

/// Starts the bench in the namespace.
pub(crate) fn run(binary: &Path, runs: usize) -> anyhow::Result<()> {
    println!("\nSwitching profiles, milliseconds (median, min to max):");
    let tuned = tuned_place();
    if !is_root() || !tuned.join("usr/sbin/tuned").is_file() {
        println!("  not measured: it takes root, and tuned, which `cargo xtask test` fetches");
        return Ok(());
    }
    let scratch = tempfile::tempdir()?;
    must(
        command("unshare", &["--mount", "--propagation", "private", "sh", "-c", NAMESPACE, "sh"])
            .arg(std::env::current_exe()?)
            .args(["bench", "--runs", &runs.to_string(), "--beside-tuned"])
            .arg(binary)
            .env("TUNED", &tuned)
            .env("SCRATCH", scratch.path()),
    )
}

/// The bench itself, inside.
pub(crate) fn inside(binary: &Path, runs: usize) -> anyhow::Result<()> {
    let before = Settings::look();
    let measured = zenkai(binary, runs).and_then(|ours| tuned(&ours));
    // Takes off what an error left on; with nothing on it does nothing.
    must(Command::new(binary).args(["profile", "off"]).stdout(Stdio::null()))?;
    before.put_back()?;
    measured
}

/// Our times for a switch and for the list.
struct Ours {
    switch: f64,
    list: f64,
}

fn zenkai(binary: &Path, runs: usize) -> anyhow::Result<Ours> {
    let apply = |profile| time(binary, &["profile", "apply", profile], 1);
    PROFILES.iter().try_for_each(|profile| apply(profile).map(drop))?;
    let mut switch = Vec::new();
    for run in 0..runs.max(1) {
        switch.extend(apply(PROFILES[run % PROFILES.len()])?);
    }
    switch.sort_by(f64::total_cmp);
    row("zenkai profile apply (promised 15)", &switch);
    let list = time(binary, &["profile", "list"], runs)?;
    row("zenkai profile list (promised 5)", &list);
    row("zenkai profile verify (promised 10)", &time(binary, &["profile", "verify"], runs)?);
    if works(&mut command("sh", &["-c", "command -v strace"])) {
        for (other, profile) in [(PROFILES[1], PROFILES[0]), (PROFILES[0], PROFILES[1])] {
            apply(other)?;
            let calls = trace(binary, &["profile", "apply", profile])?;
            let children = calls.lines().filter(|line| line.contains(" execve(")).count().saturating_sub(1);
            println!(
                "    system calls of a switch to {profile}: {} (promised below 300), {children} child processes",
                calls.lines().filter(|line| !line.contains("+++")).count()
            );
        }
    }
    must(Command::new(binary).args(["profile", "off"]).stdout(Stdio::null()))?;
    Ok(Ours { switch: switch[switch.len() / 2], list: list[list.len() / 2] })
}

fn tuned(ours: &Ours) -> anyhow::Result<()> {
    let root = PathBuf::from(std::env::var_os("TUNED").context("TUNED is not set")?);
    let mut switch = Vec::new();
    for run in 0..TUNED_RUNS {
        let start = Instant::now();
        let running = Tuned::apply(&root, PROFILES[run % PROFILES.len()])?;
        switch.push(start.elapsed().as_secs_f64() * 1000.0);
        drop(running);
    }
    switch.sort_by(f64::total_cmp);
    row("tuned --no-dbus --profile, until applied", &switch);
    let mut list = Vec::new();
    for _ in 0..TUNED_RUNS {
        let start = Instant::now();
        let mut adm = python(&root, "tuned-adm");
        adm.arg("list").stdout(Stdio::null()).stderr(Stdio::null()).status()?;
        list.push(start.elapsed().as_secs_f64() * 1000.0);
    }
    list.sort_by(f64::total_cmp);
    row("tuned-adm list", &list);
    let (theirs, lists) = (switch[switch.len() / 2], list[list.len() / 2]);
    println!(
        "    tuned takes {:.0} times as long to switch, {:.0} to list",
        theirs / ours.switch,
        lists / ours.list
    );
    Ok(())
}

fn python(root: &Path, program: &str) -> Command {
    let mut command = Command::new("/usr/bin/python3");
    command.arg(root.join("usr/sbin").join(program)).env("PYTHONDONTWRITEBYTECODE", "1");
    command
}

/// tuned without D-Bus, which is how it works without a service manager. It undoes its profile when it ends.
struct Tuned(Child);

impl Tuned {
    fn apply(root: &Path, profile: &str) -> anyhow::Result<Self> {
        fs::write(LOG, "")?;
        let mut tuned = python(root, "tuned");
        tuned.args(["--no-dbus", "--no-socket", "--log", "--profile", profile]);
        let tuned = Self(tuned.stdout(Stdio::null()).stderr(Stdio::null()).spawn()?);
        let applied = format!("static tuning from profile '{profile}' applied");
        let start = Instant::now();
        while !fs::read_to_string(LOG)?.contains(&applied) {
            if start.elapsed() > TIME_LIMIT {
                bail!("tuned did not apply {profile}: {}", fs::read_to_string(LOG)?);
            }
            thread::sleep(Duration::from_millis(1));
        }
        Ok(tuned)
    }
}

impl Drop for Tuned {
    fn drop(&mut self) {
        // An end by SIGTERM, as from an init system; killing it would leave its settings.
        let _ = Command::new("kill").arg(self.0.id().to_string()).status();
        let _ = self.0.wait();
    }
}

/// What these two profiles write to.
struct Settings(BTreeMap<PathBuf, String>);

impl Settings {
    fn look() -> Self {
        let sysctls = ["dirty_ratio", "dirty_background_ratio", "swappiness"];
        let mut paths: Vec<PathBuf> =
            sysctls.iter().map(|name| Path::new("/proc/sys/vm").join(name)).collect();
        paths.push("/proc/sys/net/core/somaxconn".into());
        let disks = fs::read_dir("/sys/block").into_iter().flatten().flatten();
        paths.extend(disks.map(|disk| disk.path().join("queue/read_ahead_kb")));
        let read = |path: PathBuf| fs::read_to_string(&path).ok().map(|text| (path, text));
        Self(paths.into_iter().filter_map(read).collect())
    }

    fn put_back(&self) -> anyhow::Result<()> {
        for (path, text) in &self.0 {
            if fs::read_to_string(path)? != *text {
                fs::write(path, text).with_context(|| path.display().to_string())?;
            }
        }
        Ok(())
    }
}
