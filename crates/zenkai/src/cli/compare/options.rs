//! The options of `zenkai compare`, and the plan that they make.

use std::{
    hash::{BuildHasher, Hasher, RandomState},
    path::{Path, PathBuf},
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use anyhow::anyhow;
use zenkai_measure::{
    experiment::{Confirms, MOST_PAIRS_OF_SHORT_RUNS, Plan, Setting, Settle},
    statistics::{
        estimate::detectable,
        real,
        rng::following,
        verdict::{self, Rule},
    },
};
use zenkai_report::IDLE_ARM;

use crate::cli::{CommandError, time};

/// The most pairs where nothing else is asked for and runs are not short.
const PAIRS: usize = 40;
/// How long an experiment of short runs may take.
const FILL_S: f64 = 60.0;

/// Compare states of this machine, or commands: do they differ, and by how much?
///
/// A workload runs in each of them, in random order, until it is clear whether they differ.
///
/// ARM is `now` (as it is), `profile:NAME`, `set:KNOB=VALUE` (a sysctl, or a file below /sys), `cmd:'COMMAND'` (the arm
/// is the command itself), or `enter='COMMAND' leave='COMMAND'`. Parts are joined by ` + `; `without:KNOB` takes out what
/// the parts before it set (`profile:NAME + without:vm.swappiness`). The first arm is what the others are compared with.
/// Whatever happens, the machine ends as it began.
///
/// Exit code: 0 the experiment came to its end (the verdict is in the output), 2 it could not be done, 5 something
/// could not be put back, 77 an arm changes the machine and this is not root, 130 interrupted.
#[derive(Debug, clap::Args)]
pub(in crate::cli) struct Args {
    /// What is compared
    #[arg(value_name = "ARM", required_unless_present_any = ["resume", "aa"])]
    pub(super) arms: Vec<String>,
    /// What is run in each arm; fio, iperf3, sysbench, wrk, stress-ng and others give their own numbers
    #[arg(last = true, value_name = "COMMAND")]
    pub(super) command: Vec<String>,
    /// Compare one arm with itself, to see what this machine does to a test
    #[arg(long)]
    pub(super) aa: bool,
    #[command(flatten)]
    pub(super) measuring: Measuring,
    /// Judge once, after all pairs, and not on the way: for a claim that is published
    #[arg(long)]
    fixed: bool,
    /// Where the experiment is kept [default: zenkai-compare-DATE in this directory]
    #[arg(long, value_name = "DIR")]
    pub(super) out: Option<PathBuf>,
    /// Go on with an experiment that was interrupted
    #[arg(long, value_name = "DIR", conflicts_with_all = ["arms", "command", "aa", "metric", "better", "out", "seed"])]
    pub(super) resume: Option<PathBuf>,
    /// If the arms are different, prove by a fresh experiment what this setting of the arm does alone: a sysctl, a file,
    /// or the end of its name. May be given several times, which share the error rate of 5 %, and with --resume after an
    /// experiment that is over
    #[arg(long, value_name = "KNOB")]
    pub(super) confirm: Vec<String>,
    /// Write JSON
    #[arg(long)]
    pub(super) json: bool,
}

/// How it is measured: the same for every command that does experiments.
#[derive(Debug, clap::Args)]
pub(in crate::cli) struct Measuring {
    /// The number that is compared: time, user, sys, maxrss, joules (joules:DOMAIN of one domain), one that the tool gives, `json:PATH` or a regular
    /// expression with one group, looked for in the output [default: the tool's own, else time]
    #[arg(long)]
    pub(in crate::cli) metric: Option<String>,
    /// Which direction is better [default: what the metric says]
    #[arg(long, value_enum)]
    pub(in crate::cli) better: Option<Better>,
    /// Differences up to this do not matter
    #[arg(long, value_name = "PERCENT", default_value = "2%", value_parser = percent)]
    pub(in crate::cli) rho: f64,
    /// Go on until the difference is known to within this
    #[arg(long, value_name = "PERCENT", value_parser = percent)]
    pub(in crate::cli) precision: Option<f64>,
    /// Most pairs of runs [default: 40; compare: of short runs up to 200, as many as take a minute]
    #[arg(long, value_parser = clap::value_parser!(u16).range(6..=1_000))]
    pub(in crate::cli) pairs: Option<u16>,
    /// A run that takes longer has failed: 30s, 5m
    #[arg(long, value_parser = time::duration)]
    pub(in crate::cli) timeout: Option<Duration>,
    /// Wait after each switch: at least and at most
    #[arg(long, value_name = "LEAST..MOST", default_value = "2s..30s", value_parser = settle)]
    pub(in crate::cli) settle: Settle,
    /// From one sample of the machine to the next while the workload runs: 10ms to 1s
    #[arg(long, default_value = "250ms", value_parser = interval)]
    interval: Duration,
    /// Do not sample the machine: no explanation, no graphs
    #[arg(long)]
    pub(super) no_sample: bool,
    /// Seed of the order of runs [default: a random one]
    #[arg(long)]
    seed: Option<u64>,
}

/// Which direction of a metric is better.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(in crate::cli) enum Better {
    /// Time, latency, energy
    Lower,
    /// Throughput
    Higher,
}

impl From<Better> for verdict::Better {
    fn from(better: Better) -> Self {
        match better {
            Better::Lower => Self::Lower,
            Better::Higher => Self::Higher,
        }
    }
}

/// `2%` or `2` as 0.02.
fn percent(text: &str) -> Result<f64, String> {
    let number = text.trim().strip_suffix('%').unwrap_or(text).trim().parse::<f64>();
    match number {
        Ok(number) if (0.0..100.0).contains(&number) => Ok(number / 100.0),
        _ => Err("a number from 0 to 100, such as 2%".to_owned()),
    }
}

fn settle(text: &str) -> Result<Settle, String> {
    let (least, most) = text.split_once("..").unwrap_or((text, text));
    let (at_least_s, at_most_s) = (time::duration(least)?.as_secs_f64(), time::duration(most)?.as_secs_f64());
    if at_least_s > at_most_s {
        return Err("the first must not be longer than the second".to_owned());
    }
    Ok(Settle { at_least_s, at_most_s })
}

/// Told at once: a run that cannot be sampled counts all the same, and would only lack its graphs.
fn interval(text: &str) -> Result<Duration, String> {
    let interval = time::duration(text)?;
    let fits = zenkai_measure::sampler::Options::INTERVALS.contains(&interval);
    if fits { Ok(interval) } else { Err("a time from 10ms to 1s".to_owned()) }
}

impl Measuring {
    pub(in crate::cli) fn pairs(&self) -> usize {
        self.pairs.map_or(PAIRS, usize::from)
    }

    /// The seed, a random one if none is given: the standard library's hasher takes its keys from the system.
    pub(in crate::cli) fn seed(&self) -> u64 {
        // The upper bits stay free so that every JSON reader takes it as a whole number.
        self.seed.unwrap_or_else(|| RandomState::new().build_hasher().finish() >> 12)
    }

    /// The seed of the nth experiment that follows from the first: another one, since an order that is known from
    /// before is no chance any more.
    pub(super) fn seed_of(&self, nth: u32) -> u64 {
        following(self.seed(), u64::from(nth))
    }

    /// What the options change about the recommended plan.
    pub(in crate::cli) fn adjust(&self, plan: &mut Plan, switches: bool) {
        plan.rule.rho = self.rho;
        plan.rule.precision = self.precision;
        plan.settle = if switches { self.settle } else { Settle { at_least_s: 0.0, at_most_s: 0.0 } };
        plan.timeout_s = self.timeout.map(|timeout| timeout.as_secs_f64());
        plan.sample_s = (!self.no_sample).then_some(self.interval.as_secs_f64());
        plan.created_unix_s = now_unix_s();
    }
}

impl Args {
    /// What the options change about the recommended plan.
    pub(super) fn adjust(&self, plan: &mut Plan, switches: bool) {
        self.measuring.adjust(plan, switches);
        plan.fill_s = self.measuring.pairs.is_none().then_some(FILL_S);
        if self.fixed {
            plan.rule.look_once();
        }
        plan.aa = self.aa;
    }
}

/// The directory of what a command measures: the one asked for, or a new one named after command and time.
pub(in crate::cli) fn directory(
    asked: Option<&PathBuf>,
    command: &str,
    now_unix_s: u64,
) -> Result<PathBuf, CommandError> {
    if let Some(dir) = asked {
        return Ok(dir.clone());
    }
    let date: String = zenkai_report::utc(now_unix_s).replace(" UTC", "").replace([' ', ':'], "-");
    let free = (1..1000).find_map(|nth| {
        let more = if nth == 1 { String::new() } else { format!("-{nth}") };
        let name = format!("zenkai-{command}-{date}{more}");
        match super::trust::make_new(Path::new(&name)) {
            Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => None,
            other => Some(other.map(|()| PathBuf::from(name))),
        }
    });
    match free {
        Some(Ok(dir)) => Ok(dir),
        Some(Err(error)) => Err(CommandError::from(error).hint("--out DIR keeps it somewhere else")),
        None => {
            Err(CommandError::usage(anyhow!("there are too many experiments of this minute"))
                .hint("--out DIR"))
        }
    }
}

#[expect(clippy::disallowed_methods, reason = "the program's clock is read here, for the plan's record")]
pub(in crate::cli) fn now_unix_s() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs()
}

/// What the plan of an earlier experiment says, with today's date.
pub(super) fn adjust_as(base: &Plan, plan: &mut Plan) {
    plan.rule.rho = base.rule.rho;
    plan.rule.precision = base.rule.precision;
    if base.rule.looks.len() == 1 {
        plan.rule.look_once();
    }
    (plan.settle, plan.timeout_s, plan.sample_s) = (base.settle, base.timeout_s, base.sample_s);
    plan.created_unix_s = now_unix_s();
}

/// What is laid down before the first run, for the user.
pub(super) fn tell_plan(plan: &Plan, dir: &Path, tell: &mut dyn FnMut(&str)) {
    let most = plan.rule.looks.last().copied().unwrap_or_default();
    tell(&format!(
        "{} arms, at most {most} runs of each in random order (seed {}):",
        plan.arms.len(),
        plan.order_seed
    ));
    if let Some(within_s) = plan.fill_s {
        tell(&format!(
            "  (up to {MOST_PAIRS_OF_SHORT_RUNS} runs of each if all together take less than {within_s} s)"
        ));
    }
    for arm in &plan.arms {
        let settings: Vec<String> = arm.settings.iter().map(setting).collect();
        let what = match settings.len() {
            0 if arm.is_idle() => IDLE_ARM.to_owned(),
            0 if arm.spec == "now" => "changes nothing".to_owned(),
            0 if arm.command.is_empty() => "changes no setting".to_owned(),
            0 => arm.command.join(" "),
            1..=3 => settings.join(", "),
            many => format!("{}, and {} more", settings[..2].join(", "), many - 2),
        };
        // Plain words are run as they stand: once is enough.
        if arm.spec.strip_prefix("cmd:") == Some(what.as_str()) {
            tell(&format!("  {}", arm.name));
        } else {
            tell(&format!("  {}: {what}", arm.name));
        }
    }
    if plan.is_one_state() {
        tell("Warning: no arm changes anything. Ctrl-C, unless you want to compare the machine with itself.");
    }
    let better = match plan.rule.better {
        verdict::Better::Lower => "lower is better",
        verdict::Better::Higher => "higher is better",
    };
    let unit = if plan.metric.unit.is_empty() { String::new() } else { format!(" in {}", plan.metric.unit) };
    tell(&format!(
        "metric: {}{unit}, {better}; differences up to {} % do not matter",
        plan.metric.name,
        100.0 * plan.rule.rho,
    ));
    tell(&format!(
        "if nothing differs, {:.1} % of such experiments say it does",
        100.0 * plan.rule.alpha * real(plan.arms.len().saturating_sub(1)),
    ));
    if let Some(Confirms { among: among @ 2.., .. }) = &plan.confirms {
        tell(&format!(
            "one of {among} settings put to the proof in this run: together {:.1} %",
            100.0 * plan.rule.alpha * real(*among)
        ));
    }
    tell_looks(plan, tell);
    tell(&format!("kept in {}", dir.display()));
}

/// When the trials are judged, and what they find then.
pub(super) fn tell_looks(plan: &Plan, tell: &mut dyn FnMut(&str)) {
    let looks: Vec<String> = plan.rule.looks.iter().map(ToString::to_string).collect();
    tell(&format!("judged after {} pairs", looks.join(", ")));
    tell(&format!(
        "a difference of {:.2} times the spread of the runs is found four times in five",
        detectable(1.0, plan.rule.looks.last().copied().unwrap_or(1)),
    ));
}

/// What comes after the experiment if it finds a difference, laid down before its first run.
pub(super) fn tell_confirmations(args: &Args, tell: &mut dyn FnMut(&str)) {
    let knobs = &args.confirm;
    if !knobs.is_empty() {
        let each =
            100.0 * Rule::new(verdict::Better::Lower, 0, args.measuring.pairs()).alpha / real(knobs.len());
        tell(&format!(
            "then, if different, by a fresh experiment each, at an error rate of {each:.1} %: what {} alone do",
            knobs.join(", ")
        ));
    }
}

fn setting(setting: &Setting) -> String {
    let text = |value: &Option<String>| value.clone().unwrap_or_else(|| "absent".to_owned());
    match (&setting.from, &setting.to) {
        (None, None) => setting.what.clone(),
        (from, to) => format!("{} {} → {}", setting.what, text(from), text(to)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn experiments_that_follow_have_orders_of_their_own() {
        use clap::Parser as _;
        #[derive(clap::Parser)]
        struct Line {
            #[command(flatten)]
            measuring: Measuring,
        }
        let Line { measuring } = Line::parse_from(["x", "--seed", "7"]);
        assert_eq!(measuring.seed(), 7);
        let seeds = [1, 2, 3].map(|nth| measuring.seed_of(nth));
        assert!(seeds.iter().all(|seed| *seed != 7 && *seed < 1 << 53) && seeds[0] != seeds[1], "{seeds:?}");
        assert_eq!(seeds, [1, 2, 3].map(|nth| measuring.seed_of(nth)), "and the same when it is repeated");
    }
}
