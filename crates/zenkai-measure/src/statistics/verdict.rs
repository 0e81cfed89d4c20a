//! The three verdicts: different, equal within what does not matter, undecided.

use serde::{Deserialize, Serialize};

use super::design::Law;
use super::estimate::{Interval, Series, Test};
use super::real;
use super::redraw::{Redraws, draws_for};
use super::sequential::{local_levels, looks};

/// Which direction of a metric is better.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Better {
    /// Time, latency, energy.
    Lower,
    /// Throughput.
    Higher,
}

impl Better {
    /// The outcome of a trial whose metric is `value`: its logarithm, turned so that larger is worse. `None` for a
    /// value that is not a positive number: such a trial counts as failed.
    pub fn outcome(self, value: f64) -> Option<f64> {
        (value.is_finite() && value > 0.0).then(|| match self {
            Better::Lower => libm::log(value),
            Better::Higher => -libm::log(value),
        })
    }

    /// The change of the metric in per cent for an effect of `theta` on the outcome.
    pub fn percent(self, theta: f64) -> f64 {
        let log_ratio = match self {
            Better::Lower => theta,
            Better::Higher => -theta,
        };
        100.0 * libm::expm1(log_ratio)
    }
}

/// What is laid down before the first trial.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Rule {
    /// Which direction of the metric is better.
    pub better: Better,
    /// The law by which the arms are ordered.
    pub law: Law,
    /// Seed of the re-randomisations.
    pub seed: u64,
    /// Re-randomisations behind a p-value where there are too many orders to go through all.
    pub draws: usize,
    /// Chance to call two equal arms different, over all looks.
    pub alpha: f64,
    /// Differences up to this share of the metric do not matter (0.02: two per cent).
    pub rho: f64,
    /// Pairs at which the trials are judged, ascending; the last is the cap.
    pub looks: Vec<usize>,
    /// The level of each look.
    pub levels: Vec<f64>,
    /// Go on until half the interval is at most this share of the metric, or the cap is reached.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub precision: Option<f64>,
}

impl Rule {
    /// The recommended rule for at most `cap` pairs: blocks of four, an error rate of 5 %, equivalence within 2 %.
    pub fn new(better: Better, seed: u64, cap: usize) -> Self {
        let mut rule = Self {
            better,
            law: Law::BlocksOfFour,
            seed,
            draws: 0,
            alpha: 0.05,
            rho: 0.02,
            looks: Vec::new(),
            levels: Vec::new(),
            precision: None,
        };
        rule.judge_at(looks(cap), 0.05);
        rule
    }

    /// The same rule judged once, after `pairs` pairs, at the full error rate: for a published claim.
    pub fn fixed(better: Better, seed: u64, pairs: usize) -> Self {
        let mut rule = Self::new(better, seed, pairs);
        rule.judge_at(vec![pairs], 0.05);
        rule
    }

    /// Judges once, at the last look, with all of the error rate.
    pub fn look_once(&mut self) {
        self.judge_at(self.looks.last().copied().into_iter().collect(), self.alpha);
    }

    /// Plans for at most `cap` pairs. To be called before the first trial only: the levels of all looks change.
    pub fn cap(&mut self, cap: usize) {
        let looks = looks(cap);
        let kept = if self.looks.len() == 1 { looks.len() - 1 } else { 0 };
        self.judge_at(looks[kept..].to_vec(), self.alpha);
    }

    /// Gives this rule its part of the error rate that `many` tests share: with a part each, the chance that any of
    /// them is wrong is at most what one of them alone had before (Bonferroni).
    pub fn share(&mut self, many: usize) {
        self.judge_at(self.looks.clone(), self.alpha / real(many.max(1)));
    }

    /// Judges at `looks`, all of them together with the error rate `alpha`.
    pub fn judge_at(&mut self, looks: Vec<usize>, alpha: f64) {
        self.levels = local_levels(&looks, alpha);
        self.draws = draws_for(&self.levels);
        (self.looks, self.alpha) = (looks, alpha);
    }

    /// The limit of equivalence in log units.
    fn margin(&self) -> f64 {
        libm::log1p(self.rho.max(0.0))
    }

    /// The orders that a look at `pairs` pairs is compared with.
    pub fn redraws(&self, pairs: usize) -> Redraws {
        Redraws::new(self.law, pairs.saturating_mul(2), self.draws, self.seed)
    }
}

/// What an experiment found.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Verdict {
    /// The arms differ.
    Different,
    /// No difference larger than the one that does not matter.
    Equal,
    /// The trials do not tell.
    Undecided,
}

/// A change of the metric from A to B, in per cent of A; a limit is `None` where the interval has no end.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Change {
    /// The estimate.
    pub percent: f64,
    /// Lower limit of the interval.
    pub low: Option<f64>,
    /// Upper limit of the interval.
    pub high: Option<f64>,
}

/// What one look at the trials says.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Look {
    /// Pairs looked at.
    pub pairs: usize,
    /// The level of this look; the interval leaves out effects whose p-value is at most this.
    pub level: f64,
    /// p-value of "no difference", two-sided.
    pub p: f64,
    /// Whether the p-value counts all orders there are.
    pub exact: bool,
    /// The verdict if the experiment ended here.
    pub verdict: Verdict,
    /// The change of the metric; `None` when failed trials leave nothing to estimate.
    pub change: Option<Change>,
    /// Half the width of the interval in per cent; `None` without both limits.
    pub half_width: Option<f64>,
    /// The smallest change in per cent that this many trials find four times in five.
    pub detectable: Option<f64>,
    /// Failed trials of A and of B; they count as the worst of all.
    pub failed: [usize; 2],
}

/// The end of an experiment, or where it stands.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Judgement {
    /// The verdict: of the first look that reached one, else undecided.
    pub verdict: Verdict,
    /// Whether the experiment is over.
    pub finished: bool,
    /// Pairs at the look that reached the verdict.
    pub decided_at: Option<usize>,
    /// All looks so far, the last one being the one to show.
    pub looks: Vec<Look>,
}

/// Judges `series` (of the law of `rule`) at one look of `level`.
pub fn look(series: &Series, rule: &Rule, level: f64) -> Look {
    let redraws = rule.redraws(series.pairs());
    let test = Test::new(series, &redraws);
    let p = test.p(0.0);
    let margin = rule.margin();
    let estimate = test.estimate();
    let (below, above) = (test.p(-margin), test.p(margin));
    let equal = margin > 0.0
        && below <= level
        && above <= level
        && estimate.is_some_and(|estimate| estimate.abs() < margin);
    let verdict = match (p <= level, equal) {
        (true, _) => Verdict::Different,
        (false, true) => Verdict::Equal,
        (false, false) => Verdict::Undecided,
    };
    let interval = estimate
        .map(|estimate| test.interval(estimate, level, &[(0.0, p), (-margin, below), (margin, above)]));
    Look {
        pairs: series.pairs(),
        level,
        p,
        exact: redraws.is_complete(),
        verdict,
        change: estimate.zip(interval).map(|(estimate, interval)| change(rule.better, estimate, interval)),
        half_width: interval.and_then(|interval| Some(100.0 * libm::expm1(interval.half_width()?))),
        detectable: test.detectable(series.pairs()).map(|theta| 100.0 * libm::expm1(theta)),
        failed: series.failed(),
    }
}

pub(crate) fn change(better: Better, estimate: f64, interval: Interval) -> Change {
    let percent =
        |theta: Option<f64>| theta.map(|theta| better.percent(theta)).filter(|limit| limit.is_finite());
    let (low, high) = match better {
        Better::Lower => (percent(interval.low), percent(interval.high)),
        Better::Higher => (percent(interval.high), percent(interval.low)),
    };
    Change { percent: better.percent(estimate), low, high }
}

/// Judges the trials of `series` so far as the rule laid down: look after look, until one reaches a verdict.
///
/// With [`Rule::precision`] a verdict stands from the look that reached it, but the experiment goes on until the
/// interval is narrow enough.
pub fn judge(series: &Series, rule: &Rule) -> Judgement {
    let mut judgement =
        Judgement { verdict: Verdict::Undecided, finished: false, decided_at: None, looks: Vec::new() };
    let cap = rule.looks.last().copied();
    for (pairs, level) in rule.looks.iter().zip(&rule.levels) {
        let Some(so_far) = series.first(*pairs) else { break };
        let look = look(&so_far, rule, *level);
        if judgement.decided_at.is_none() && look.verdict != Verdict::Undecided {
            judgement.verdict = look.verdict;
            judgement.decided_at = Some(*pairs);
        }
        let narrow = rule.precision.is_none_or(|precision| {
            look.half_width.is_some_and(|half_width| half_width <= 100.0 * precision)
        });
        judgement.finished = (judgement.decided_at.is_some() && narrow) || Some(*pairs) == cap;
        judgement.looks.push(look);
        if judgement.finished {
            break;
        }
    }
    judgement
}
