//! The effect as a product of factors: logarithms add up.
//!
//! A piece of work takes instructions × cycles per instruction ÷ clock ÷ CPUs used; for disks it takes requests ×
//! latency ÷ queue depth. The identity holds in every trial. Each factor gets the same estimate as the metric itself;
//! estimates of medians do not add up to the last digit, so the difference is shown as "rest".

use serde::Serialize;

use super::{Asked, Pairing};
use crate::experiment::Trial;

/// A factor of the effect.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Term {
    /// `clock`, `CPU share` …
    pub name: String,
    /// The channel that it was read from, when it is one.
    pub channel: Option<String>,
    /// Its effect on the outcome in log units (negative makes the outcome better); all terms of a split add up to the
    /// effect itself.
    pub theta: f64,
    /// 95 % interval of it; `None` without limits, as for the rest.
    pub interval: [Option<f64>; 2],
    /// p-value of "no effect through this factor"; `None` for the rest.
    pub p: Option<f64>,
    /// Its share of the effect; `None` when there is no effect to share.
    pub share: Option<f64>,
}

/// An effect and its factors.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Split {
    /// Which identity: `cpu` or `io`.
    pub of: &'static str,
    /// The identity in words.
    pub identity: &'static str,
    /// The effect on the outcome in log units.
    pub theta: f64,
    /// The factors, largest first, and the rest.
    pub terms: Vec<Term>,
}

const INSTRUCTIONS: &str = "perf.instructions";
const CYCLES: &str = "perf.cycles";

/// The workload must keep at least this many CPUs busy for its time to be CPU time.
const BUSY: f64 = 0.5;

/// The splits that the trials allow.
pub(super) fn splits(pairing: &Pairing) -> Vec<Split> {
    [cpu(pairing), io(pairing)].into_iter().flatten().collect()
}

/// Whether every trial that gave a number gave this quantity.
fn everywhere(pairing: &Pairing, of: impl Fn(&Trial) -> Option<f64>) -> bool {
    pairing.trials.iter().filter(|trial| trial.value.is_some()).all(|trial| of(trial).is_some())
}

fn log(trial: &Trial, channel: &str) -> Option<f64> {
    trial.channels.get(channel).copied().filter(|value| *value > 0.0 && value.is_finite()).map(libm::log)
}

/// The channel that is the clock of the machine, if there is one; else the clock is the mean of those of the CPUs.
const CLOCK: &str = "clock.mean";

/// The clock as a logarithm.
fn clock(trial: &Trial) -> Option<f64> {
    let of_cpus = trial.channels.iter().filter(|(name, _)| {
        let number = name.strip_prefix("clock.cpu");
        number.is_some_and(|number| number.chars().all(|letter| letter.is_ascii_digit()))
    });
    let (sum, count) = of_cpus.fold((0.0, 0.0), |(sum, count), (_, clock)| (sum + clock, count + 1.0));
    log(trial, CLOCK).or_else(|| (sum > 0.0 && sum.is_finite()).then(|| libm::log(sum / count)))
}

/// CPUs that the workload itself kept busy, as a logarithm.
fn busy(trial: &Trial) -> Option<f64> {
    let metric = |name: &str| trial.metrics.get(name).map(|measure| measure.value);
    let cpus = (metric("user")? + metric("sys")?) / trial.elapsed_s;
    (cpus.is_finite() && cpus > 0.0).then(|| libm::log(cpus))
}

/// A factor before it is estimated: its logarithm in every trial, signed so that larger is worse.
struct Factor {
    name: &'static str,
    channel: Option<String>,
    y: Vec<Option<f64>>,
}

fn factor(
    pairing: &Pairing,
    name: &'static str,
    channel: Option<&str>,
    of: impl Fn(&Trial, f64) -> Option<f64>,
) -> Factor {
    let outcomes = pairing.outcomes().iter();
    let y = outcomes.zip(&pairing.trials).map(|(y, trial)| of(trial, (*y)?)).collect();
    Factor { name, channel: channel.map(str::to_owned), y }
}

fn cpu(pairing: &Pairing) -> Option<Split> {
    let shares: Vec<Option<f64>> = pairing.trials.iter().map(|trial| busy(trial)).collect();
    if pairing.trials.iter().zip(&shares).any(|(trial, share)| trial.value.is_some() && share.is_none()) {
        return None;
    }
    let used = pairing.middle(&shares, false)?.max(pairing.middle(&shares, true)?);
    if used < libm::log(BUSY) {
        return None;
    }
    let share = factor(pairing, "CPU share", None, |trial, _| Some(-busy(trial)?));
    let has_clock = everywhere(pairing, clock);
    let counters = [INSTRUCTIONS, CYCLES].iter().all(|name| everywhere(pairing, |trial| log(trial, name)));
    let of_clock = factor(pairing, "clock", Some(CLOCK), |trial, _| Some(-clock(trial)?));
    let (identity, factors) = match (has_clock, counters) {
        (true, true) => (
            "time = instructions × cycles per instruction ÷ clock ÷ CPUs used",
            vec![
                factor(pairing, "instructions", Some(INSTRUCTIONS), |trial, y| {
                    Some(y + log(trial, INSTRUCTIONS)? + busy(trial)? + clock(trial)? - log(trial, CYCLES)?)
                }),
                factor(pairing, "cycles per instruction", None, |trial, _| {
                    Some(log(trial, CYCLES)? - log(trial, INSTRUCTIONS)?)
                }),
                of_clock,
                share,
            ],
        ),
        (true, false) => (
            "time = CPU cycles needed ÷ clock ÷ CPUs used",
            vec![
                factor(pairing, "cycles needed", None, |trial, y| Some(y + clock(trial)? + busy(trial)?)),
                of_clock,
                share,
            ],
        ),
        (false, _) => (
            "time = CPU time needed ÷ CPUs used",
            vec![factor(pairing, "CPU time needed", None, |trial, y| Some(y + busy(trial)?)), share],
        ),
    };
    split(pairing, "cpu", identity, factors)
}

fn io(pairing: &Pairing) -> Option<Split> {
    let disk = busiest(pairing)?;
    let queue = format!("block.{disk}.queue");
    let rate = |trial: &Trial| requests(trial, &disk).map(libm::log);
    if !everywhere(pairing, |trial| Some(rate(trial)? + log(trial, &queue)?)) {
        return None;
    }
    // Little's law: requests under way = requests a second × latency.
    let factors = vec![
        factor(pairing, "requests needed", None, |trial, y| Some(y + rate(trial)?)),
        factor(pairing, "latency", None, |trial, _| Some(log(trial, &queue)? - rate(trial)?)),
        factor(pairing, "queue depth", Some(&queue), |trial, _| Some(-log(trial, &queue)?)),
    ];
    split(pairing, "io", "time = requests × latency ÷ requests under way", factors)
}

/// Requests a second of a disk.
fn requests(trial: &Trial, disk: &str) -> Option<f64> {
    let of = |kind: &str| trial.channels.get(&format!("block.{disk}.{kind}")).copied();
    Some(of("reads").unwrap_or(0.0) + of("writes").unwrap_or(0.0))
        .filter(|rate| *rate > 0.0 && rate.is_finite())
}

/// Below this many requests a second no disk decides how long a workload takes.
const BUSY_DISK: f64 = 20.0;

/// The disk that had the most requests over all trials.
fn busiest(pairing: &Pairing) -> Option<String> {
    let disk = |name: &String| Some(name.strip_prefix("block.")?.strip_suffix(".queue")?.to_owned());
    let disks: std::collections::BTreeSet<String> =
        pairing.trials.iter().flat_map(|trial| trial.channels.keys()).filter_map(disk).collect();
    let total =
        |disk: &String| -> f64 { pairing.trials.iter().filter_map(|trial| requests(trial, disk)).sum() };
    let busiest =
        disks.into_iter().map(|disk| (total(&disk), disk)).max_by(|left, right| left.0.total_cmp(&right.0));
    busiest
        .filter(|(total, _)| *total >= BUSY_DISK * crate::statistics::real(pairing.trials.len()))
        .map(|(_, disk)| disk)
}

fn split(pairing: &Pairing, of: &'static str, identity: &'static str, factors: Vec<Factor>) -> Option<Split> {
    let theta = pairing.theta?;
    let share = |term: f64| (theta != 0.0).then(|| term / theta);
    let mut terms = Vec::new();
    for Factor { name, channel, y } in factors {
        let moved = pairing.moved(y, Asked::Interval)?;
        let estimate = moved.theta?;
        terms.push(Term {
            name: name.to_owned(),
            channel,
            theta: estimate,
            interval: moved.interval,
            p: Some(moved.p),
            share: share(estimate),
        });
    }
    terms.sort_by(|left, right| right.theta.abs().total_cmp(&left.theta.abs()));
    let rest = theta - terms.iter().map(|term| term.theta).sum::<f64>();
    let interval = [None, None];
    terms.push(Term {
        name: "rest".into(),
        channel: None,
        theta: rest,
        interval,
        p: None,
        share: share(rest),
    });
    Some(Split { of, identity, theta, terms })
}
