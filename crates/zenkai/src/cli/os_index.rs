//! `zenkai os-index`

use std::{
    io::{self, Write},
    path::PathBuf,
    time::Duration,
};

use anyhow::anyhow;
use serde::Serialize;
use zenkai_measure::os_index::{self, Bench, MOST_COPIES, Score};

use super::{CommandError, Exit, output};

/// Measure what an operating system does all day, to compare a machine with itself.
///
/// Each test runs with one copy, then with one copy for every CPU that this process may use; a score is the sum over
/// the copies. The index is the geometric mean of all scores. It has no baseline: only the ratio of two indices of the
/// same tests means something. To prove that a setting matters, use `os-index` as the workload of an experiment.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// Only these tests: integer, float, process, pipe, pipe-switch, shell, copy-256, copy-1k, copy-4k, syscall, wake
    #[arg(long = "test", value_name = "NAME")]
    tests: Vec<String>,
    /// How many copies of each test run at the same time: a number or `all`; several with commas
    #[arg(long, value_name = "N", default_value = "1,all", value_delimiter = ',', value_parser = copies)]
    copies: Vec<Copies>,
    /// How long every test runs, in seconds
    #[arg(long, value_name = "S", default_value = "1", value_parser = seconds)]
    seconds: Duration,
    /// Where files are copied; nothing is left there
    #[arg(long, value_name = "DIR", default_value = "/var/tmp")]
    dir: PathBuf,
    /// Print JSON
    #[arg(long)]
    json: bool,
    /// One copy of a test, started by this program itself
    #[arg(long, hide = true, value_name = "TEST")]
    copy_of: Option<String>,
    /// The other end of pipe-switch, started by this program itself
    #[arg(long, hide = true)]
    peer: bool,
}

#[derive(Debug, Clone, Copy)]
enum Copies {
    Number(usize),
    All,
}

fn copies(text: &str) -> Result<Copies, String> {
    let number = || text.parse().ok().filter(|number| (1..=MOST_COPIES).contains(number)).map(Copies::Number);
    let chosen = if text == "all" { Some(Copies::All) } else { number() };
    chosen.ok_or_else(|| format!("use a number from 1 to {MOST_COPIES}, or all"))
}

fn seconds(text: &str) -> Result<Duration, String> {
    let seconds = text.parse().ok().filter(|seconds| (0.01..=3600.0).contains(seconds));
    let duration = seconds.and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
    duration.ok_or_else(|| "use seconds from 0.01 to 3600".to_owned())
}

/// What `--json` prints.
#[derive(Serialize)]
struct Json {
    /// Version of this form.
    version: u32,
    /// Geometric mean of the scores.
    index: f64,
    /// Seconds that every test ran.
    seconds: f64,
    scores: Vec<JsonScore>,
}

#[derive(Serialize)]
struct JsonScore {
    test: &'static str,
    copies: usize,
    rate: f64,
    unit: &'static str,
}

pub(super) fn run(args: &Args, out: &mut dyn Write, err: &mut dyn Write) -> Result<Exit, CommandError> {
    if args.peer {
        os_index::peer(io::stdin().lock(), out)?;
        return Ok(Exit::Fine);
    }
    let bench = Bench { time: args.seconds, dir: args.dir.clone(), program: "/proc/self/exe".into() };
    if let Some(name) = &args.copy_of {
        os_index::copy_of(name, &bench, io::stdin().lock(), out)?;
        return Ok(Exit::Fine);
    }
    let scores = scores(args, &bench, out, err)?;
    let index = os_index::index(&scores).ok_or_else(|| CommandError::usage(anyhow!("no test was run")))?;
    if args.json {
        let scores = scores.iter().map(|score| JsonScore {
            test: score.test,
            copies: score.copies,
            rate: score.rate,
            unit: score.unit,
        });
        let scores = scores.collect();
        output::write_json(out, &Json { version: 1, index, seconds: args.seconds.as_secs_f64(), scores })?;
    } else {
        writeln!(
            out,
            "\nindex {index:.0}: geometric mean of these scores; to be compared with the same tests only"
        )?;
    }
    Ok(Exit::Fine)
}

/// Runs all tests that were asked for, and tells each score as soon as it is there.
fn scores(
    args: &Args,
    bench: &Bench,
    out: &mut dyn Write,
    err: &mut dyn Write,
) -> Result<Vec<Score>, CommandError> {
    let all = std::thread::available_parallelism().map_or(1, usize::from);
    let mut copies: Vec<usize> = args.copies.iter().map(|copies| copies.number(all)).collect();
    copies.dedup();
    let wanted = |name: &&str| args.tests.is_empty() || args.tests.iter().any(|test| test == name);
    let known: Vec<&str> = os_index::tests().map(|(name, ..)| name).collect();
    if let Some(unknown) = args.tests.iter().find(|test| !known.contains(&test.as_str())) {
        let error = anyhow!("no test is called `{unknown}`");
        return Err(CommandError::usage(error).hint(known.join(", ")));
    }
    if !args.json {
        writeln!(out, "{:<12} {:>7} {:>14}", "test", "copies", "score")?;
    }
    let mut scores = Vec::new();
    for &copies in &copies {
        for (name, unit, what) in os_index::tests().filter(|(name, ..)| wanted(name)) {
            let score = os_index::score(name, copies, bench)?;
            if args.json {
                writeln!(err, "{name} x{copies}: {} {unit}", amount(score.rate))?;
            } else {
                writeln!(out, "{name:<12} {copies:>7} {:>14} {unit:<4} {what}", amount(score.rate))?;
                out.flush()?;
            }
            scores.push(score);
        }
    }
    Ok(scores)
}

impl Copies {
    fn number(self, all: usize) -> usize {
        match self {
            Self::Number(number) => number,
            Self::All => all,
        }
    }
}

/// Four digits and the prefix of the SI.
fn amount(rate: f64) -> String {
    let (scaled, prefix) = match rate {
        _ if rate >= 1e9 => (rate / 1e9, "G"),
        _ if rate >= 1e6 => (rate / 1e6, "M"),
        _ if rate >= 1e3 => (rate / 1e3, "k"),
        _ => (rate, ""),
    };
    let digits = match scaled {
        _ if scaled >= 100.0 => 1,
        _ if scaled >= 10.0 => 2,
        _ => 3,
    };
    format!("{scaled:.digits$} {prefix}")
}
