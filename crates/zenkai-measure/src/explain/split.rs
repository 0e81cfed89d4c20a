//! The effect as a product of factors: logarithms add up.
//!
//! A piece of work takes instructions × cycles per instruction ÷ clock ÷ CPUs used; for disks it takes requests ×
//! latency ÷ queue depth. The identity holds in every trial. Each factor gets the same estimate as the metric itself;
//! estimates of medians do not add up to the last digit, so the difference is shown as "rest".

use serde::Serialize;

use super::Pairing;
use crate::experiment::Trial;
use crate::statistics::estimate::Test;

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

/// Names under which a quantity may be recorded, the best first.
type Names = &'static [&'static str];
const CLOCK: Names = &["cpu.clock", "clock", "cpu.freq", "cpu_clock_hz", "clock.busy"];
const INSTRUCTIONS: Names = &["cpu.instructions", "instructions"];
const CYCLES: Names = &["cpu.cycles", "cycles"];
const REQUESTS: Names = &["block.ios", "block.requests", "disk.ios"];
const LATENCY: Names = &["block.await", "block.latency", "disk.await"];

/// The workload must keep at least this many CPUs busy for its time to be CPU time.
const BUSY: f64 = 0.5;

/// The splits that the trials allow.
pub(super) fn splits(pairing: &Pairing) -> Vec<Split> {
    [cpu(pairing), io(pairing)].into_iter().flatten().collect()
}

fn found(pairing: &Pairing, names: Names) -> Option<&'static str> {
    let everywhere = |name: &&&str| {
        pairing.trials.iter().filter(|trial| trial.value.is_some()).all(|trial| log(trial, name).is_some())
    };
    names.iter().find(everywhere).copied()
}

fn log(trial: &Trial, channel: &str) -> Option<f64> {
    trial.channels.get(channel).copied().filter(|value| *value > 0.0 && value.is_finite()).map(libm::log)
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
    channel: Option<&'static str>,
    y: Vec<Option<f64>>,
}

fn factor(
    pairing: &Pairing,
    name: &'static str,
    channel: Option<&'static str>,
    of: impl Fn(&Trial, f64) -> Option<f64>,
) -> Factor {
    let outcomes = pairing.series.outcomes().iter();
    let y = outcomes.zip(&pairing.trials).map(|(y, trial)| of(trial, (*y)?)).collect();
    Factor { name, channel, y }
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
    let clock = found(pairing, CLOCK);
    let counters = found(pairing, INSTRUCTIONS).zip(found(pairing, CYCLES));
    let (identity, factors) = match (clock, counters) {
        (Some(clock), Some((instructions, cycles))) => (
            "time = instructions × cycles per instruction ÷ clock ÷ CPUs used",
            vec![
                factor(pairing, "instructions", Some(instructions), |trial, y| {
                    Some(
                        y + log(trial, instructions)? + busy(trial)? + log(trial, clock)?
                            - log(trial, cycles)?,
                    )
                }),
                factor(pairing, "cycles per instruction", None, |trial, _| {
                    Some(log(trial, cycles)? - log(trial, instructions)?)
                }),
                factor(pairing, "clock", Some(clock), |trial, _| Some(-log(trial, clock)?)),
                share,
            ],
        ),
        (Some(clock), None) => (
            "time = CPU cycles needed ÷ clock ÷ CPUs used",
            vec![
                factor(pairing, "cycles needed", None, |trial, y| {
                    Some(y + log(trial, clock)? + busy(trial)?)
                }),
                factor(pairing, "clock", Some(clock), |trial, _| Some(-log(trial, clock)?)),
                share,
            ],
        ),
        (None, _) => (
            "time = CPU time needed ÷ CPUs used",
            vec![factor(pairing, "CPU time needed", None, |trial, y| Some(y + busy(trial)?)), share],
        ),
    };
    split(pairing, "cpu", identity, factors)
}

fn io(pairing: &Pairing) -> Option<Split> {
    let (requests, latency) = (found(pairing, REQUESTS)?, found(pairing, LATENCY)?);
    // Little's law: requests under way = requests a second × latency.
    let factors = vec![
        factor(pairing, "requests needed", Some(requests), |trial, y| Some(y + log(trial, requests)?)),
        factor(pairing, "latency", Some(latency), |trial, _| log(trial, latency)),
        factor(pairing, "queue depth", None, |trial, _| Some(-log(trial, requests)? - log(trial, latency)?)),
    ];
    split(pairing, "io", "time = requests × latency ÷ requests under way", factors)
}

fn split(pairing: &Pairing, of: &'static str, identity: &'static str, factors: Vec<Factor>) -> Option<Split> {
    let theta = pairing.theta?;
    let share = |term: f64| (theta != 0.0).then(|| term / theta);
    let mut terms = Vec::new();
    for Factor { name, channel, y } in factors {
        let series = pairing.with(y)?;
        let test = Test::new(&series, &pairing.redraws);
        let (estimate, p) = (test.estimate()?, test.p(0.0));
        let interval = test.interval(estimate, 0.05, &[(0.0, p)]);
        terms.push(Term {
            name: name.to_owned(),
            channel: channel.map(str::to_owned),
            theta: estimate,
            interval: [interval.low, interval.high],
            p: Some(p),
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
