//! `cargo xtask bench`: what the program itself costs. Figures are for reading, side by side; nothing is asserted,
//! since the machine may be busy.

use std::{
    path::{Path, PathBuf},
    process::{Command, ExitCode, Stdio},
    time::Instant,
};

use anyhow::{Context as _, bail};
use zenkai_host::LiveHost;

use crate::{
    bench_capture::grown_in_order,
    bench_count::{MARK, by_subsystem, machine},
    bench_sampler::sampler,
    bench_tuned,
    process::{cargo, command, must, release_binary, root, works},
};

#[derive(clap::Args)]
pub(crate) struct BenchArgs {
    /// Runs of each command
    #[arg(long, default_value_t = 21)]
    runs: usize,
    /// Only the recorders, for this many seconds each
    #[arg(long, value_name = "SECONDS")]
    recorders: Option<u64>,
    /// Only look at this machine once, to be traced
    #[arg(long, hide = true)]
    look: bool,
    /// Measure this binary beside tuned; only inside the bench's own namespace
    #[arg(long, hide = true)]
    beside_tuned: Option<PathBuf>,
}

/// System calls that a subsystem may make where their number does not depend on CPUs or devices.
const LIMIT: usize = 400;

/// CPU and disk counts of the grown captures.
const SIZES: [u32; 4] = [2, 64, 256, 1024];

pub(crate) fn run(args: &BenchArgs) -> anyhow::Result<ExitCode> {
    if args.look {
        by_subsystem(&LiveHost);
        return Ok(ExitCode::SUCCESS);
    }
    if let Some(binary) = &args.beside_tuned {
        bench_tuned::inside(binary, args.runs)?;
        return Ok(ExitCode::SUCCESS);
    }
    must(&mut cargo(&["build", "--release", "--quiet", "--package", "zenkai"]))?;
    let binary = release_binary()?;
    if let Some(seconds) = args.recorders {
        sampler(&binary, seconds)?;
        return Ok(ExitCode::SUCCESS);
    }
    live(&binary, args.runs)?;
    growth(&binary, args.runs)?;
    bench_tuned::run(&binary, args.runs)?;
    differences(&binary, args.runs)?;
    sampler(&binary, 60)?;
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
        println!(
            "system calls of `zenkai doctor --json`: {}",
            trace(binary, &["doctor", "--json"])?.lines().count()
        );
        subsystems()?;
    } else {
        println!("system calls: not counted, strace is not installed");
    }
    match peak_kib(binary) {
        Ok(kib) => println!("peak resident memory of `zenkai doctor --json`: {:.1} MB", kib * 1024.0 / 1e6),
        Err(error) => println!("peak resident memory: not measured, {error:#}"),
    }
    Ok(())
}

/// The same diagnosis on captures with more and more CPUs and disks: time per CPU and disk should not grow.
fn growth(binary: &Path, runs: usize) -> anyhow::Result<()> {
    let plain = root().join("fixtures/hosts/plain.capture");
    let text = std::fs::read_to_string(&plain).with_context(|| plain.display().to_string())?;
    let dir = tempfile::tempdir()?;
    println!("\nCaptures grown to N CPUs and N disks, `zenkai doctor --json --capture`, milliseconds:");
    let mut before: Option<(u32, f64, usize)> = None;
    for size in SIZES {
        let capture = grown_in_order(&text, size)?;
        let host = machine(&capture)?;
        let facts = zenkai_facts::observe(&host);
        let questions: usize = by_subsystem(&host).iter().map(|(_, asked)| asked).sum();
        let path = dir.path().join(format!("{size}.capture"));
        std::fs::write(&path, &capture)?;
        let times = time(binary, &["doctor", "--json", "--capture", &path.to_string_lossy()], runs)?;
        let cpus = facts.cpu.topology.threads.value().unwrap_or(0);
        let disks = facts.block.disks.get().map_or(0, Vec::len);
        row(&format!("{cpus} CPUs, {disks} disks, {questions} questions"), &times);
        let median = times[times.len() / 2];
        if let Some((fewer, faster, asked)) = before {
            let more = f64::from(size - fewer);
            println!(
                "    each more of both: {:.4} ms, {} questions",
                (median - faster) / more,
                questions.saturating_sub(asked) / (size - fewer) as usize
            );
        }
        before = Some((size, median, questions));
    }
    Ok(())
}

/// Two machines side by side: the second one has other governors and reads less ahead.
fn differences(binary: &Path, runs: usize) -> anyhow::Result<()> {
    let plain = root().join("fixtures/hosts/plain.capture");
    let text = std::fs::read_to_string(&plain).with_context(|| plain.display().to_string())?;
    let dir = tempfile::tempdir()?;
    let file = |name: &str| dir.path().join(name).to_string_lossy().into_owned();
    println!("\nTwo captures with N CPUs and N disks each, `zenkai diff A B --json`, milliseconds:");
    for size in SIZES {
        let capture = grown_in_order(&text, size)?;
        let slower = capture
            .replace("/scaling_governor = schedutil", "/scaling_governor = powersave")
            .replace("/read_ahead_kb = 128", "/read_ahead_kb = 16");
        std::fs::write(file("a"), &capture)?;
        std::fs::write(file("b"), &slower)?;
        row(
            &format!("{size} CPUs and disks"),
            &time(binary, &["diff", &file("a"), &file("b"), "--json"], runs)?,
        );
    }
    Ok(())
}

/// Wall-clock milliseconds, sorted.
pub(crate) fn time(binary: &Path, args: &[&str], runs: usize) -> anyhow::Result<Vec<f64>> {
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

pub(crate) fn row(name: &str, times: &[f64]) {
    let (median, least, most) = (times[times.len() / 2], times[0], times[times.len() - 1]);
    println!("  {name:<40} {median:8.2}  {least:8.2} to {most:.2}");
}

/// The system calls of a command, one a line.
pub(crate) fn trace(program: &Path, args: &[&str]) -> anyhow::Result<String> {
    let dir = tempfile::tempdir()?;
    let trace = dir.path().join("trace");
    command("strace", &["-f", "-qq", "-o"])
        .arg(&trace)
        .arg(program)
        .args(args)
        .stdout(Stdio::null())
        .status()?;
    Ok(String::from_utf8_lossy(&std::fs::read(&trace)?).into_owned())
}

/// What each subsystem costs on this machine.
fn subsystems() -> anyhow::Result<()> {
    let trace = trace(&std::env::current_exe()?, &["bench", "--look"])?;
    println!("  by subsystem:");
    let mut calls = 0_usize;
    for line in trace.lines() {
        match line.split_once(MARK).and_then(|(_, rest)| rest.split_once('"')) {
            Some((name, _)) => {
                if name != "start" {
                    println!("    {name:<20} {calls:6}{}", if calls > LIMIT { "  above 400" } else { "" });
                }
                calls = 0;
            }
            // A debug build asks before each close whether the descriptor is open.
            None if line.contains(" fcntl(") => {}
            None => calls += 1,
        }
    }
    Ok(())
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
