//! `cargo xtask bench`: what the program itself costs. Figures are for reading, side by side; nothing is asserted,
//! since the machine may be busy.

use std::{
    path::Path,
    process::{Command, ExitCode, Stdio},
    time::Instant,
};

use anyhow::{Context as _, bail};

use crate::{
    bench_capture::grown,
    process::{cargo, command, must, release_binary, root, works},
};

#[derive(clap::Args)]
pub(crate) struct BenchArgs {
    /// Runs of each command
    #[arg(long, default_value_t = 21)]
    runs: usize,
}

/// CPU and disk counts of the grown captures.
const SIZES: [u32; 3] = [2, 64, 256];

pub(crate) fn run(args: &BenchArgs) -> anyhow::Result<ExitCode> {
    must(&mut cargo(&["build", "--release", "--quiet", "--package", "zenkai"]))?;
    let binary = release_binary()?;
    live(&binary, args.runs)?;
    growth(&binary, args.runs)?;
    Ok(ExitCode::SUCCESS)
}

/// The static diagnosis of this machine: time, memory, system calls.
fn live(binary: &Path, runs: usize) -> anyhow::Result<()> {
    println!("This machine, {runs} runs each, milliseconds (median, min to max):");
    let baseline = time(binary, &["--version"], runs)?;
    row("zenkai --version (process start)", &baseline);
    for args in [&["doctor", "--json"][..], &["facts", "--json"], &["capture"]] {
        row(&format!("zenkai {}", args.join(" ")), &time(binary, args, runs)?);
    }
    if works(&mut command("sh", &["-c", "command -v strace"])) {
        println!("system calls of `zenkai doctor --json`: {}", system_calls(binary)?);
    } else {
        println!("system calls: not counted, strace is not installed");
    }
    match peak_kib(binary) {
        Ok(kib) => println!("peak resident memory of `zenkai doctor --json`: {:.1} MB", kib * 1024.0 / 1e6),
        Err(error) => println!("peak resident memory: not measured, {error:#}"),
    }
    Ok(())
}

/// The same diagnosis on captures with more and more CPUs and disks: time per CPU should not grow.
fn growth(binary: &Path, runs: usize) -> anyhow::Result<()> {
    let source = root().join("fixtures/hosts");
    let dir = tempfile::tempdir()?;
    println!("\nCaptures grown to N CPUs and N disks, `zenkai doctor --json --capture`:");
    let mut first: Option<f64> = None;
    for size in SIZES {
        let text =
            std::fs::read_to_string(source.join("plain.capture")).context("fixtures/hosts/plain.capture")?;
        let path = dir.path().join(format!("{size}.capture"));
        std::fs::write(&path, grown(&text, size))?;
        let path = path.to_string_lossy().into_owned();
        let times = time(binary, &["doctor", "--json", "--capture", &path], runs)?;
        row(&format!("{size} CPUs and disks"), &times);
        let median = times[times.len() / 2];
        let base = *first.get_or_insert(median);
        println!(
            "    {:.2} times the first, for {} times the CPUs and disks",
            median / base,
            size / SIZES[0]
        );
    }
    Ok(())
}

/// Wall-clock milliseconds, sorted.
fn time(binary: &Path, args: &[&str], runs: usize) -> anyhow::Result<Vec<f64>> {
    let mut times = Vec::with_capacity(runs);
    for _ in 0..runs.max(1) {
        let start = Instant::now();
        let status = Command::new(binary).args(args).stdout(Stdio::null()).stderr(Stdio::null()).status()?;
        times.push(start.elapsed().as_secs_f64() * 1000.0);
        if !matches!(status.code(), Some(0 | 1 | 3)) {
            bail!("{} {args:?} ended with {status}", binary.display());
        }
    }
    times.sort_by(f64::total_cmp);
    Ok(times)
}

fn row(name: &str, times: &[f64]) {
    let (median, least, most) = (times[times.len() / 2], times[0], times[times.len() - 1]);
    println!("  {name:<40} {median:8.2}  {least:8.2} to {most:.2}");
}

fn system_calls(binary: &Path) -> anyhow::Result<usize> {
    let dir = tempfile::tempdir()?;
    let trace = dir.path().join("trace");
    command("strace", &["-f", "-qq", "-o"])
        .arg(&trace)
        .arg(binary)
        .args(["doctor", "--json"])
        .stdout(Stdio::null())
        .status()?;
    Ok(std::fs::read_to_string(&trace)?.lines().count())
}

/// Peak resident set as the kernel accounts it (`getrusage`), through GNU time.
fn peak_kib(binary: &Path) -> anyhow::Result<f64> {
    let output = command("/usr/bin/time", &["-f", "%M"])
        .arg(binary)
        .args(["doctor", "--json"])
        .stdout(Stdio::null())
        .output()
        .context("GNU time is not installed (apt-get install time)")?;
    let text = String::from_utf8_lossy(&output.stderr);
    text.lines().last().and_then(|line| line.trim().parse().ok()).context("GNU time said nothing")
}
