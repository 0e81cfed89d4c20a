//! `os-index`: a small suite of what an operating system does all day, in the manner of the old Unix benchmarks but with
//! kernels of our own. Its purpose is to compare a machine with itself under another setting.
//!
//! Every copy of a test is a process of its own, so that copies share nothing but the machine. All copies start at the
//! same moment and run for the same time; a score is the sum of their rates, in an SI unit. The index is the geometric
//! mean of the scores. It has no baseline and no meaning of its own: only the ratio of two indices of the same tests
//! has, which is the geometric mean of the tests' ratios.

mod copy;
mod float;
mod integer;
mod pipe_switch;
mod pipe_throughput;
mod process;
mod shell;
mod syscall;
mod wake;

use std::{
    io::{self, BufRead, BufReader, Read, Write},
    path::{Path, PathBuf},
    process::{Child, ChildStdout, Command, Stdio},
    time::{Duration, Instant},
};

use crate::statistics::real;

pub use pipe_switch::peer;

/// All tests, in the order in which they run.
static TESTS: [&dyn Test; 11] = [
    &integer::Integer,
    &float::Float,
    &process::Process,
    &pipe_throughput::PipeThroughput,
    &pipe_switch::PipeSwitch,
    &shell::Shell,
    &copy::Copy { name: "copy-256", block: 256 },
    &copy::Copy { name: "copy-1k", block: 1024 },
    &copy::Copy { name: "copy-4k", block: 4096 },
    &syscall::Syscall,
    &wake::Wake,
];

/// A batch takes at least this long, so that looking at the clock costs nothing.
const BATCH: Duration = Duration::from_millis(2);
/// More copies than any machine has CPUs are a mistake.
pub const MOST_COPIES: usize = 8192;

/// One test.
trait Test: Sync {
    /// Name on the command line and in results.
    fn name(&self) -> &'static str;

    /// SI unit of its rate.
    fn unit(&self) -> &'static str {
        "1/s"
    }

    /// What is counted, for people.
    fn what(&self) -> &'static str;

    /// Works for the bench's time and gives the rate.
    fn run(&self, bench: &Bench) -> io::Result<f64>;
}

/// What a test needs to know.
#[derive(Debug, Clone)]
pub struct Bench {
    /// How long every test runs.
    pub time: Duration,
    /// Where files are made; nothing is left there.
    pub dir: PathBuf,
    /// This program, to be started again as a copy of a test.
    pub program: PathBuf,
}

/// The rate of one test with so many copies.
#[derive(Debug, Clone, PartialEq)]
pub struct Score {
    /// The test.
    pub test: &'static str,
    /// Copies that ran at the same time.
    pub copies: usize,
    /// Sum of their rates.
    pub rate: f64,
    /// SI unit of the rate.
    pub unit: &'static str,
}

/// Names of all tests, with what they count.
pub fn tests() -> impl Iterator<Item = (&'static str, &'static str, &'static str)> {
    TESTS.iter().map(|test| (test.name(), test.unit(), test.what()))
}

/// Geometric mean of the rates; `None` without any.
pub fn index(scores: &[Score]) -> Option<f64> {
    let sum: f64 = scores.iter().map(|score| libm::log(score.rate)).sum();
    (!scores.is_empty()).then(|| libm::exp(sum / real(scores.len())))
}

/// Runs `copies` of a test at the same time, each in a process of its own, which is this program called as
/// `os-index --copy-of TEST` (see [`copy_of`]).
pub fn score(name: &str, copies: usize, bench: &Bench) -> io::Result<Score> {
    let test = find(name)?;
    if copies == 0 || copies > MOST_COPIES {
        return Err(io::Error::new(
            io::ErrorKind::InvalidInput,
            format!("{copies} copies: use 1 to {MOST_COPIES}"),
        ));
    }
    // All copies wait for the end of this pipe.
    let (gate, opener) = io::pipe()?;
    let mut running = Vec::new();
    for _ in 0..copies {
        let mut command = again(&bench.program);
        command.args(["--copy-of", name, "--seconds", &bench.time.as_secs_f64().to_string(), "--dir"]);
        command.arg(&bench.dir).stdin(gate.try_clone()?).stdout(Stdio::piped());
        running.push(Running::start(command)?);
    }
    drop(gate);
    for copy in &mut running {
        copy.expect("ready")?;
    }
    drop(opener);
    let mut rate = 0.0;
    for copy in running {
        rate += copy.rate(name)?;
    }
    Ok(Score { test: test.name(), copies, rate, unit: test.unit() })
}

/// One copy of a test, in a process started by [`score`]: says that it is ready, waits for the start, which is the end
/// of `gate`, and tells its rate.
pub fn copy_of(name: &str, bench: &Bench, mut gate: impl Read, out: &mut dyn Write) -> io::Result<()> {
    let test = find(name)?;
    writeln!(out, "ready")?;
    out.flush()?;
    io::copy(&mut gate, &mut io::sink())?;
    let rate = test.run(bench)?;
    if !(rate.is_finite() && rate > 0.0) {
        return Err(io::Error::other(format!("{name} did nothing")));
    }
    writeln!(out, "{rate:e}")
}

fn find(name: &str) -> io::Result<&'static dyn Test> {
    TESTS.iter().copied().find(|test| test.name() == name).ok_or_else(|| {
        let names: Vec<_> = TESTS.iter().map(|test| test.name()).collect();
        io::Error::new(
            io::ErrorKind::InvalidInput,
            format!("there is no test {name}; there are: {}", names.join(", ")),
        )
    })
}

#[expect(
    clippy::disallowed_methods,
    reason = "processes are what is measured; nothing of the machine is changed"
)]
fn again(program: &Path) -> Command {
    let mut command = Command::new(program);
    command.arg("os-index");
    command
}

/// A started copy; killed when dropped early.
struct Running {
    child: Child,
    out: BufReader<io::Take<ChildStdout>>,
}

impl Running {
    fn start(mut command: Command) -> io::Result<Self> {
        let mut child = command.spawn()?;
        let out = child.stdout.take().ok_or(io::ErrorKind::BrokenPipe)?;
        // Two short lines.
        Ok(Self { child, out: BufReader::new(out.take(256)) })
    }

    fn line(&mut self) -> io::Result<String> {
        let mut line = String::new();
        self.out.read_line(&mut line)?;
        Ok(line.trim_end().to_owned())
    }

    fn expect(&mut self, word: &str) -> io::Result<()> {
        if self.line()? == word { Ok(()) } else { Err(io::Error::other("a copy of the test did not start")) }
    }

    fn rate(mut self, name: &str) -> io::Result<f64> {
        let line = self.line()?;
        let ended = self.child.wait()?;
        let rate = line.parse().ok().filter(|_| ended.success());
        rate.ok_or_else(|| io::Error::other(format!("a copy of {name} failed; what it said is above")))
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // Both fail only when it has ended and was waited for.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Bench {
    /// How often a second `work` gets done; `work` does its thing so many times as it is told.
    fn rate(&self, mut work: impl FnMut(u32) -> io::Result<()>) -> io::Result<f64> {
        // Pages and caches of the first time are no part of the rate.
        work(1)?;
        let start = Instant::now();
        let mut done = 0_u64;
        let mut batch = 1_u32;
        loop {
            let before = start.elapsed();
            work(batch)?;
            done += u64::from(batch);
            let now = start.elapsed();
            if now >= self.time {
                return Ok(crate::to_f64(done) / now.as_secs_f64());
            }
            if now.saturating_sub(before) < BATCH {
                batch = batch.saturating_mul(2);
            }
        }
    }
}

#[cfg(test)]
mod unit_tests {
    use super::*;

    fn bench(dir: &Path) -> Bench {
        Bench { time: Duration::from_millis(20), dir: dir.to_owned(), program: "/bin/cat".into() }
    }

    #[test]
    fn every_test_works_in_this_process() {
        let dir = tempfile::tempdir().unwrap();
        // The peer of pipe-switch is this program, which is not the program under test here.
        for test in TESTS.iter().filter(|test| test.name() != "pipe-switch") {
            let mut out = Vec::new();
            copy_of(test.name(), &bench(dir.path()), io::empty(), &mut out).unwrap();
            let text = String::from_utf8(out).unwrap();
            let rate: f64 = text.strip_prefix("ready\n").unwrap().trim().parse().unwrap();
            assert!(rate.is_finite() && rate > 0.0, "{}: {rate}", test.name());
        }
        assert_eq!(dir.path().read_dir().unwrap().count(), 0);
    }

    #[test]
    fn wrong_names_and_numbers_are_told() {
        let bench = bench(Path::new("/nowhere"));
        assert!(score("x", 1, &bench).unwrap_err().to_string().contains("there are: integer, float"));
        assert!(score("integer", 0, &bench).unwrap_err().to_string().starts_with("0 copies"));
        let error = copy_of("copy-1k", &bench, io::empty(), &mut Vec::new()).unwrap_err();
        assert!(error.to_string().starts_with("/nowhere: "), "{error}");
    }

    #[test]
    fn the_index_is_the_geometric_mean() {
        let score = |rate| Score { test: "x", copies: 1, rate, unit: "1/s" };
        assert!((index(&[score(2.0), score(8.0)]).unwrap() - 4.0).abs() < 1e-12);
        assert_eq!(index(&[]), None);
    }
}
