//! `cargo xtask test`: everything that must pass.

use std::{
    process::{Command, ExitCode},
    time::Instant,
};

use anyhow::bail;

use crate::process::{cargo, command, is_root, must, release_binary, root, works};

#[derive(clap::Args)]
pub(crate) struct TestArgs {
    /// Leave the laboratory out (it needs QEMU and about 2 GB of cache)
    #[arg(long)]
    no_lab: bool,
}

/// A step's outcome, for the table at the end.
enum Outcome {
    Passed,
    Skipped(String),
    Failed(String),
}

struct Step {
    name: &'static str,
    outcome: Outcome,
    seconds: f64,
}

pub(crate) fn run(args: &TestArgs) -> ExitCode {
    let mut steps = Vec::new();
    step(&mut steps, "packages", packages);
    step(&mut steps, "tuned, to compare with", tuned);
    step(&mut steps, "format", || passed(&mut cargo(&["fmt", "--all", "--check"])));
    step(&mut steps, "clippy", || {
        passed(&mut cargo(&["clippy", "--workspace", "--all-targets", "--quiet", "--", "-D", "warnings"]))
    });
    step(&mut steps, "release build", || passed(&mut cargo(&["build", "--release", "--package", "zenkai"])));
    step(&mut steps, "static binary", static_binary);
    let laboratory = laboratory(&mut steps, args.no_lab);
    step(&mut steps, "unit, property, golden, live and guest tests", || {
        passed(cargo(&["test", "--workspace"]).env("ZENKAI_BIN", release_binary()?))
    });
    beside_tuned(&mut steps);
    step(&mut steps, "barriers of a real file system", barriers);
    step(&mut steps, "docs are fresh", || {
        crate::docs::check()?;
        Ok(Outcome::Passed)
    });
    if laboratory {
        step(&mut steps, "beside the real tuned, in real kernels", || {
            let mut test = cargo(&["test", "--package", "zenkai", "--test", "it", "--"]);
            test.args(["guest_tuned::", "--ignored", "--test-threads=2", "--nocapture"]);
            passed(test.env("ZENKAI_BIN", release_binary()?))
        });
        step(&mut steps, "ailments in real kernels", || {
            passed(cargo(&["xtask", "lab", "ailments"]).env("ZENKAI_BIN", release_binary()?))
        });
    }
    summary(&steps)
}

fn step(steps: &mut Vec<Step>, name: &'static str, work: impl FnOnce() -> anyhow::Result<Outcome>) {
    println!("\n== {name}");
    let start = Instant::now();
    let outcome = work().unwrap_or_else(|error| Outcome::Failed(format!("{error:#}")));
    if let Outcome::Failed(why) | Outcome::Skipped(why) = &outcome {
        println!("{why}");
    }
    steps.push(Step { name, outcome, seconds: start.elapsed().as_secs_f64() });
}

fn passed(command: &mut Command) -> anyhow::Result<Outcome> {
    must(command).map(|()| Outcome::Passed)
}

/// What the live tests use: a program that must be there, and the Debian package it is in.
const PACKAGES: [(&str, &str); 10] = [
    ("ethtool", "ethtool"),
    ("readelf", "binutils"),
    ("python3", "python3"),
    ("fio", "fio"),
    ("iperf3", "iperf3"),
    ("memcached", "memcached"),
    ("memcaslap", "libmemcached-tools"),
    ("stress-ng", "stress-ng"),
    ("sysbench", "sysbench"),
    ("wrk", "wrk"),
];

fn packages() -> anyhow::Result<Outcome> {
    let find =
        |program: &&(&str, &str)| !works(&mut command("sh", &["-c", &format!("command -v {}", program.0)]));
    let missing: Vec<&str> = PACKAGES.iter().filter(find).map(|(_, package)| *package).collect();
    if missing.is_empty() {
        return Ok(Outcome::Passed);
    }
    if !is_root() {
        return Ok(Outcome::Skipped(format!(
            "not root, so {} cannot be installed; the live tests that use them will say so",
            missing.join(", ")
        )));
    }
    must(&mut command("apt-get", &["update", "-qq"]))?;
    let mut install = vec!["install", "-y", "-qq", "--no-install-recommends"];
    install.extend(missing);
    passed(command("apt-get", &install).env("DEBIAN_FRONTEND", "noninteractive"))
}

/// Debian's packages of tuned and what it imports.
const TUNED: [&str; 8] = [
    "tuned",
    "python3-pyudev",
    "python3-linux-procfs",
    "python3-dbus",
    "python3-gi",
    "python3-six",
    "python3-configobj",
    "python3-decorator",
];

/// Where tuned is unpacked.
pub(crate) fn tuned_place() -> std::path::PathBuf {
    root().join("target/tuned-oracle")
}

/// Compares with the real tuned, and kills running changes. These tests change this machine's settings for a minute
/// or two and put them back, so they run alone, after the others.
fn beside_tuned(steps: &mut Vec<Step>) {
    step(steps, "beside the real tuned, and killed at random", || {
        if !is_root() {
            return Ok(Outcome::Skipped("not root, so no settings can be changed".to_owned()));
        }
        let tuned = tuned_place();
        if !tuned.join("usr/sbin/tuned").is_file() {
            return Ok(Outcome::Skipped("tuned is not there; see the step that fetches it".to_owned()));
        }
        let mut test = cargo(&["test", "--package", "zenkai", "--test", "it", "--"]);
        test.args([
            "real_tuned::",
            "tuned_adm::",
            "killed::",
            "compare_live::",
            "fixes::",
            "state_dir::",
            "bisects::",
            "--ignored",
            "--test-threads=1",
            "--nocapture",
        ]);
        passed(test.env("ZENKAI_BIN", release_binary()?).env("ZENKAI_TUNED", tuned))
    });
}

/// A scratch ext4 in a file, mounted where nobody else sees it; the loop device and the mount end with the namespace.
fn barriers() -> anyhow::Result<Outcome> {
    const WITH_EXT4: &str = "truncate -s 16M \"$1\" && mkfs.ext4 -q \"$1\" && \
                             mount -o loop,nosuid,nodev,noatime \"$1\" /mnt && shift && exec \"$@\"";
    if !is_root() {
        return Ok(Outcome::Skipped("not root, so nothing can be mounted".to_owned()));
    }
    if !works(&mut command("sh", &["-c", "command -v mkfs.ext4 unshare && grep -qw ext4 /proc/filesystems"]))
    {
        return Ok(Outcome::Skipped("needs mkfs.ext4, unshare and a kernel with ext4".to_owned()));
    }
    let test = cargo(&["test", "--package", "zenkai-host", "--lib", "live::mounts::", "--", "--ignored"]);
    let image = std::env::temp_dir().join(format!("zenkai-barriers-{}.ext4", std::process::id()));
    let mut mounted = command("unshare", &["--mount", "sh", "-c", WITH_EXT4, "sh"]);
    let outcome = passed(mounted.arg(&image).arg(test.get_program()).args(test.get_args()));
    if image.exists() {
        std::fs::remove_file(image)?;
    }
    outcome
}

/// The real tuned, whose loader is the judge of ours, and what it imports. Its packages are unpacked below `target`, not
/// installed: no service is started and the machine's own tuned, if any, is left alone.
fn tuned() -> anyhow::Result<Outcome> {
    let place = tuned_place();
    if place.join("usr/lib/python3/dist-packages/tuned").is_dir() {
        return Ok(Outcome::Passed);
    }
    if !works(&mut command("sh", &["-c", "command -v apt-get dpkg && test -x /usr/bin/python3"])) {
        let why = "needs Debian's apt-get, dpkg and python3; the comparisons with tuned will say so";
        return Ok(Outcome::Skipped(why.to_owned()));
    }
    let archives = root().join("target/tuned-archives");
    std::fs::create_dir_all(&archives)?;
    if !works(command("apt-get", &["download", "-q"]).args(TUNED).current_dir(&archives)) {
        let why = "its packages cannot be downloaded; the comparisons with tuned will say so";
        return Ok(Outcome::Skipped(why.to_owned()));
    }
    for entry in std::fs::read_dir(&archives)? {
        must(command("dpkg", &["-x"]).arg(entry?.path()).arg(&place))?;
    }
    Ok(Outcome::Passed)
}

/// The one file we ship must run on any distribution: no shared library at all, and small.
fn static_binary() -> anyhow::Result<Outcome> {
    const SIZE_LIMIT_BYTES: u64 = 8_000_000;
    let binary = release_binary()?;
    let dynamic = command("readelf", &["--dynamic"]).arg(&binary).output()?;
    if !dynamic.status.success() {
        bail!("readelf cannot read {}", binary.display());
    }
    let text = String::from_utf8_lossy(&dynamic.stdout);
    if let Some(line) = text.lines().find(|line| line.contains("NEEDED")) {
        bail!("the release binary needs a shared library: {}", line.trim());
    }
    let size = std::fs::metadata(&binary)?.len();
    println!("{}: {size} bytes, no shared library", binary.display());
    if size > SIZE_LIMIT_BYTES {
        bail!("the release binary is larger than {SIZE_LIMIT_BYTES} bytes");
    }
    Ok(Outcome::Passed)
}

/// Builds the laboratory's images; guest tests skip visibly what is not there. `mini` costs seconds and is always
/// tried; `full` takes a minute or two the first time; the MSR build takes minutes and is asked for by
/// `ZENKAI_LAB=all`. Returns whether there is a laboratory at all.
fn laboratory(steps: &mut Vec<Step>, left_out: bool) -> bool {
    let skip = |steps: &mut Vec<Step>, why: &str| {
        step(steps, "laboratory", || Ok(Outcome::Skipped(why.to_owned())));
        false
    };
    if left_out {
        return skip(steps, "left out by --no-lab");
    }
    if !is_root() {
        return skip(steps, "not root, so its images cannot be built; `sudo cargo xtask test` runs it");
    }
    let tiers: &[&'static str] = match std::env::var("ZENKAI_LAB").as_deref() {
        Ok("all") => &["mini", "full", "qemu"],
        Ok("mini") => &["mini"],
        _ => &["mini", "full"],
    };
    for tier in tiers {
        let name = match *tier {
            "mini" => "laboratory: build mini",
            "full" => "laboratory: build full",
            _ => "laboratory: build qemu",
        };
        step(steps, name, || passed(&mut cargo(&["xtask", "lab", "build", tier])));
    }
    true
}

fn summary(steps: &[Step]) -> ExitCode {
    println!("\n== summary of {}", root().display());
    let (mut good, mut bad, mut skipped) = (0, 0, 0);
    for Step { name, outcome, seconds } in steps {
        let word = match outcome {
            Outcome::Passed => {
                good += 1;
                "passed".to_owned()
            }
            Outcome::Skipped(why) => {
                skipped += 1;
                format!("SKIPPED: {why}")
            }
            Outcome::Failed(why) => {
                bad += 1;
                format!("FAILED: {why}")
            }
        };
        println!("{seconds:7.1} s  {name}: {word}");
    }
    println!("{good} passed, {bad} failed, {skipped} skipped");
    if bad == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
