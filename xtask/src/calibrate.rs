//! `cargo xtask calibrate`: whether `zenkai compare` keeps its promises on a real machine, with whatever noise that has.
//!
//! Equal arms must be called different in at most 5 % of experiments; known differences must be found, with an interval
//! that holds the truth. The result is written to `docs/calibration.md` as it was measured.

use std::{
    path::PathBuf,
    process::{ExitCode, Stdio},
    time::{Duration, Instant},
};

use anyhow::{Context as _, bail};
use serde_json::Value;

use crate::{
    calibrate_page::{self, Conditions},
    process::{cargo, command, must, release_binary},
};

#[derive(clap::Args)]
pub(crate) struct CalibrateArgs {
    /// Experiments with equal arms for each of the four workloads
    #[arg(long, default_value_t = 40, value_parser = clap::value_parser!(u64).range(1..=10_000))]
    repeats: u64,
    /// Most pairs of runs in one experiment [default: with equal arms 40, with known differences zenkai's own plan]
    #[arg(long, value_parser = clap::value_parser!(u16).range(6..=1_000))]
    pairs: Option<u16>,
    /// Three experiments of each kind, to see that all of it works; docs/calibration.md is left alone
    #[arg(long)]
    quick: bool,
    /// Begin no further round with equal arms after so many minutes
    #[arg(long, value_name = "MINUTES")]
    minutes: Option<u64>,
    /// Only equal arms or only known differences; the rest of docs/calibration.md stays
    #[arg(long, value_enum)]
    part: Option<Part>,
    /// The program to calibrate [default: the release build]
    #[arg(long, value_name = "FILE")]
    binary: Option<PathBuf>,
}

/// What can be calibrated by itself.
#[derive(Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Part {
    Equal,
    Known,
}

/// What is run with equal arms: name and shell command. Each takes 5 to 20 ms of CPU time on a machine of
/// 2020: the law of the order, not the length of a run, keeps the level.
const WORKLOADS: [(&str, &str); 4] = [
    ("CPU loop", "i=0; while [ $i -lt 10000 ]; do i=$((i+1)); done"),
    ("pipe", "head -c 30000000 /dev/zero | cat > /dev/null"),
    (
        "file metadata",
        "d=$(mktemp -d) && cd $d && i=0; while [ $i -lt 200 ]; do : > f$i; i=$((i+1)); done; cd / && rm -r $d",
    ),
    ("memory", "dd if=/dev/zero of=/dev/null bs=32M count=1 2> /dev/null"),
];

/// A difference of known size.
pub(crate) struct Control {
    pub(crate) name: &'static str,
    pub(crate) metric: &'static str,
    /// By how much the metric of the second arm is larger, in per cent.
    pub(crate) truth_percent: f64,
    arms: [&'static str; 2],
    workload: Option<&'static str>,
}

/// The CPU time of a loop is proportional to its length; starting the shell is less than 1 % of it. With 95 % of the
/// wall-clock time a loop takes 1 / 0.95 as long, provided that it would otherwise have a CPU for itself; both get the
/// highest priority, where that is permitted. 20 and 19 % differ by as much, and even a crowded machine gives more than
/// that to a process.
pub(crate) const CONTROLS: [Control; 3] = [
    Control {
        name: "a loop 3 % longer",
        metric: "user",
        truth_percent: 3.0,
        arms: [
            "cmd:exec nice -n -40 sh -c 'i=0; while [ $i -lt 100000 ]; do i=$((i+1)); done'",
            "cmd:exec nice -n -40 sh -c 'i=0; while [ $i -lt 103000 ]; do i=$((i+1)); done'",
        ],
        workload: None,
    },
    Control {
        name: "`cpu-max:95%`",
        metric: "time",
        truth_percent: 100.0 / 0.95 - 100.0,
        arms: ["now", "cpu-max:95%"],
        workload: Some("exec nice -n -40 sh -c 'i=0; while [ $i -lt 100000 ]; do i=$((i+1)); done'"),
    },
    Control {
        name: "`cpu-max:19%` after `cpu-max:20%`",
        metric: "time",
        truth_percent: 100.0 * 20.0 / 19.0 - 100.0,
        arms: ["cpu-max:20%", "cpu-max:19%"],
        workload: Some("i=0; while [ $i -lt 60000 ]; do i=$((i+1)); done"),
    },
];

/// How one experiment ended.
pub(crate) struct Ended {
    pub(crate) verdict: String,
    pub(crate) pairs: u64,
    /// Estimate and interval in per cent.
    pub(crate) effect: Option<(f64, f64, f64)>,
    /// Median of the first arm's runs, in seconds when that is what is compared.
    pub(crate) median_s: Option<f64>,
}

/// The experiments of one workload or control.
pub(crate) struct Series {
    pub(crate) name: &'static str,
    pub(crate) ended: Vec<Ended>,
}

impl Series {
    pub(crate) fn count(&self, verdict: &str) -> u64 {
        self.ended.iter().map(|ended| u64::from(ended.verdict == verdict)).sum()
    }

    pub(crate) fn len(&self) -> u64 {
        self.ended.iter().map(|_| 1).sum()
    }
}

pub(crate) fn run(args: &CalibrateArgs) -> anyhow::Result<ExitCode> {
    let binary = if let Some(binary) = &args.binary {
        binary.canonicalize().with_context(|| binary.display().to_string())?
    } else {
        must(&mut cargo(&["build", "--release", "--quiet", "--package", "zenkai"]))?;
        release_binary()?
    };
    let repeats = if args.quick { 3 } else { args.repeats };
    let place = tempfile::tempdir()?;
    let lab = Laboratory { binary, place: place.path().to_owned() };
    let mut sections = Vec::new();
    if args.part != Some(Part::Known) {
        let (before, start) = (Conditions::now()?, Instant::now());
        let limit = args.minutes.map(|minutes| Duration::from_secs(60 * minutes));
        let pairs = args.pairs.unwrap_or(40);
        let equal = lab.equal(repeats, limit, pairs)?;
        let conditions = before.sentence(&Conditions::now()?, start.elapsed());
        sections.push(calibrate_page::equal_arms(&equal, pairs, &conditions));
    }
    if args.part != Some(Part::Equal) {
        let (before, start) = (Conditions::now()?, Instant::now());
        let known = lab.known(if args.quick { 3 } else { repeats.div_ceil(8) }, args.pairs)?;
        let conditions = before.sentence(&Conditions::now()?, start.elapsed());
        sections.push(calibrate_page::known_differences(&known, args.pairs, &conditions));
    }
    println!("\n{}", sections.concat());
    if !args.quick {
        calibrate_page::write(&sections)?;
    }
    Ok(ExitCode::SUCCESS)
}

/// One experiment.
struct Asked<'a> {
    arms: &'a [&'a str],
    script: Option<&'a str>,
    metric: &'a str,
    /// Else as many as zenkai plans by itself.
    pairs: Option<u16>,
}

struct Laboratory {
    binary: PathBuf,
    place: PathBuf,
}

impl Laboratory {
    /// Equal arms. One round after the other, so that an early end leaves as many of each workload.
    fn equal(&self, repeats: u64, limit: Option<Duration>, pairs: u16) -> anyhow::Result<Vec<Series>> {
        let start = Instant::now();
        let mut all: Vec<Series> =
            WORKLOADS.iter().map(|(name, _)| Series { name, ended: Vec::new() }).collect();
        for round in 0..repeats {
            if limit.is_some_and(|limit| start.elapsed() > limit) {
                println!("the time is up after {round} rounds");
                break;
            }
            for (nth, (series, (name, script))) in (0..).zip(all.iter_mut().zip(WORKLOADS)) {
                let asked = Asked {
                    arms: &["--aa", "now"],
                    script: Some(script),
                    metric: "time",
                    pairs: Some(pairs),
                };
                let ended = self.experiment(&asked, 10 * round + nth, name)?;
                series.ended.push(ended);
            }
        }
        Ok(all)
    }

    /// Arms whose difference is known.
    fn known(&self, repeats: u64, pairs: Option<u16>) -> anyhow::Result<Vec<Series>> {
        let mut all = Vec::new();
        for (nth, control) in (0..).zip(&CONTROLS) {
            let mut ended = Vec::new();
            for round in 0..repeats {
                let seed = 1_000_000 + 10 * round + nth;
                let asked =
                    Asked { arms: &control.arms, script: control.workload, metric: control.metric, pairs };
                ended.push(self.experiment(&asked, seed, control.name)?);
            }
            all.push(Series { name: control.name, ended });
        }
        Ok(all)
    }

    fn experiment(&self, asked: &Asked, seed: u64, name: &str) -> anyhow::Result<Ended> {
        let dir = self.place.join(seed.to_string());
        let mut compare = command(self.binary.to_str().context("the program's name")?, &["compare"]);
        compare.args(asked.arms).args(["--no-sample", "--settle", "0s..0s", "--metric", asked.metric]);
        if let Some(pairs) = asked.pairs {
            compare.args(["--pairs", &pairs.to_string()]);
        }
        compare.args(["--seed", &seed.to_string(), "--json", "--out"]).arg(&dir);
        if let Some(script) = asked.script {
            compare.args(["--", "sh", "-c", script]);
        }
        let output = compare.stdin(Stdio::null()).output()?;
        if !output.status.success() {
            bail!("{name}: {}: {}", output.status, String::from_utf8_lossy(&output.stderr));
        }
        let ended = read(&output.stdout).with_context(|| format!("{name}: its JSON"))?;
        std::fs::remove_dir_all(&dir)?;
        tell(name, seed, &ended);
        Ok(ended)
    }
}

fn read(json: &[u8]) -> anyhow::Result<Ended> {
    let json: Value = serde_json::from_slice(json)?;
    let number = |at: &str| json.pointer(at).and_then(Value::as_f64);
    let effect = number("/effect").map(|effect| {
        // A limit that would lie beyond all bounds is absent.
        let low = number("/interval/0").unwrap_or(f64::NEG_INFINITY);
        (effect, low, number("/interval/1").unwrap_or(f64::INFINITY))
    });
    Ok(Ended {
        verdict: json["verdict"].as_str().context("there is no verdict")?.to_owned(),
        pairs: json["pairs"].as_u64().context("there is no number of pairs")?,
        effect,
        median_s: number("/arms/0/median"),
    })
}

fn tell(name: &str, seed: u64, ended: &Ended) {
    let effect = ended.effect.map_or_else(
        || "no estimate".to_owned(),
        |(effect, low, high)| format!("{effect:+.2} % [{low:+.2}, {high:+.2}]"),
    );
    println!("{name} (seed {seed}): {} after {} pairs, {effect}", ended.verdict, ended.pairs);
}

/// Whether the interval of an experiment holds the truth.
pub(crate) fn covers(ended: &Ended, truth_percent: f64) -> bool {
    ended.effect.is_some_and(|(_, low, high)| low <= truth_percent && truth_percent <= high)
}
