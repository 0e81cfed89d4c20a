//! Which of many differences between two machines is to blame: adaptive group testing on measured halves, delta
//! debugging where halves do not show it, and accusations by fresh experiments only.
//!
//! Pure: [`bisect()`] asks an [`Oracle`] for experiments and gets verdicts. The same answers lead to the same questions,
//! so an interrupted search is resumed by asking again from the start, and what was measured answers at once.
//! `docs/statistics.md` tells the procedure, its error rates and why they hold.

mod procedure;
#[cfg(test)]
mod simulation;
#[cfg(test)]
mod tests;

use std::collections::BTreeSet;

use serde::Serialize;

use crate::statistics::{
    design::Law,
    real,
    sequential::looks,
    verdict::{Better, Judgement, Rule, Verdict},
};

pub use procedure::{bisect, expected};

/// Some of the toggles, by number from 0: an arm in which these are set as on the other machine.
pub type Set = BTreeSet<usize>;

/// Chance to accuse an innocent toggle, over the whole search.
pub const ACCUSE: f64 = 0.05;
/// Chance that the first experiment calls equal arms different, and so each look at what is left.
const SCREEN: f64 = 0.05;
/// The same for an experiment that only guides the search. Its errors cost time; nobody is accused by them.
const GUIDE: f64 = 0.20;
/// Pairs at which an experiment that guides is judged: four pairs in blocks of four have 36 orders, enough for its level.
const GUIDE_LOOKS: [usize; 7] = [4, 6, 8, 10, 12, 16, 20];

/// What is laid down before the first experiment.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Settings {
    /// Toggles that there are.
    pub toggles: usize,
    /// Differences up to this share of the metric do not matter.
    pub rho: f64,
    /// Most pairs of an experiment that says something about toggles; one that guides has at most 20.
    pub cap: usize,
}

/// What an experiment is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Purpose {
    /// All toggles together against none: is there a difference to explain?
    Whole,
    /// One half against the other: which holds the larger part?
    Halves,
    /// Each half against neither.
    EachHalf,
    /// The accused alone against none.
    Confirm,
    /// The accused together against all of them but one: is this one needed?
    Needed,
    /// All that is not accused against none.
    Rest,
}

/// An experiment that is asked for.
#[derive(Debug, Clone, PartialEq)]
pub struct Ask {
    /// From 1, in the order of asking.
    pub number: usize,
    /// What it is for.
    pub purpose: Purpose,
    /// The arms; each is compared with the first.
    pub arms: Vec<Set>,
    /// Chance that equal arms are called different, over all looks and comparisons.
    pub alpha: f64,
    /// Pairs at which it is judged.
    pub looks: Vec<usize>,
    /// Differences up to this share of the metric do not matter.
    pub rho: f64,
}

impl Ask {
    /// How its trials are judged.
    pub fn rule(&self, better: Better, seed: u64) -> Rule {
        let mut rule = Rule::new(better, seed, self.looks.last().copied().unwrap_or_default());
        rule.law = if self.arms.len() > 2 { Law::Pairs } else { Law::BlocksOfFour };
        rule.judge_at(self.looks.clone(), self.alpha / real(self.arms.len().saturating_sub(1).max(1)));
        rule.rho = self.rho;
        rule
    }

    fn new(purpose: Purpose, arms: Vec<Set>, settings: &Settings) -> Self {
        let (alpha, looks) = match purpose {
            Purpose::Halves => (GUIDE, GUIDE_LOOKS.to_vec()),
            _ => (SCREEN, looks(settings.cap)),
        };
        Self { number: 0, purpose, arms, alpha, looks, rho: settings.rho }
    }
}

/// What an experiment said of one arm against its first.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Answer {
    /// The verdict.
    pub verdict: Verdict,
    /// The change of the metric in per cent; `None` when failed trials leave nothing to estimate.
    pub percent: Option<f64>,
    /// Lower limit of the interval; `None` where it has no end.
    pub low: Option<f64>,
    /// Upper limit of the interval.
    pub high: Option<f64>,
    /// The smallest change in per cent that so many trials find four times in five.
    pub detectable: Option<f64>,
    /// Pairs of trials behind it.
    pub pairs: usize,
}

impl Answer {
    /// Both limits lie within what does not matter.
    fn is_negligible(&self, rho: f64) -> bool {
        self.within().is_some_and(|most| most <= 100.0 * rho)
    }

    /// The effect and everything in its interval is at most this large, in per cent.
    pub fn within(&self) -> Option<f64> {
        Some(self.low?.abs().max(self.high?.abs()))
    }

    /// A difference, and one that matters.
    fn shows(&self, rho: f64) -> bool {
        self.verdict == Verdict::Different && !self.is_negligible(rho)
    }
}

impl From<&Judgement> for Answer {
    fn from(judgement: &Judgement) -> Self {
        let last = judgement.looks.last();
        let change = last.and_then(|look| look.change);
        Self {
            verdict: judgement.verdict,
            percent: change.map(|change| change.percent),
            low: change.and_then(|change| change.low),
            high: change.and_then(|change| change.high),
            detectable: last.and_then(|look| look.detectable),
            pairs: last.map_or(0, |look| look.pairs),
        }
    }
}

/// Why a search ends before its time.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Stop {
    /// The user wants it to end.
    #[error("interrupted")]
    Interrupted,
    /// The time is used up.
    #[error("the budget is used up")]
    Budget,
    /// An experiment cannot be done.
    #[error("{0}")]
    Failed(String),
}

/// What is told on the way.
#[derive(Debug, Clone, PartialEq)]
pub enum Event<'a> {
    /// An experiment gave its answers.
    Answered {
        /// The experiment.
        ask: &'a Ask,
        /// Its answers, one for each arm but the first.
        answers: &'a [Answer],
    },
    /// Neither half alone shows what both together do.
    Interaction {
        /// The two halves.
        halves: [&'a Set; 2],
    },
    /// The search leads nowhere and starts again, each half against neither.
    Again,
}

/// Who carries out the experiments.
pub trait Oracle {
    /// Carries out an experiment, or looks up what it gave before. One answer for each arm but the first.
    fn measure(&mut self, ask: &Ask) -> Result<Vec<Answer>, Stop>;

    /// Hears how it goes.
    fn hear(&mut self, event: &Event);
}

/// Toggles that are proven to matter: one, or several that matter only together.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Accused {
    /// The toggles.
    pub toggles: Set,
    /// What they do alone, by a fresh experiment.
    pub alone: Answer,
}

/// How a search ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum End {
    /// What is left does not differ any more, as far as the trials tell.
    Explained,
    /// All toggles together do not differ from none: there is nothing to explain.
    NoDifference,
    /// There is a difference, but it could not be pinned on toggles.
    NotPinned,
    /// It was stopped.
    Stopped,
}

/// What a search found.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Outcome {
    /// How it ended.
    pub end: End,
    /// All toggles against none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub whole: Option<Answer>,
    /// The accused, in the order in which they were found.
    pub accused: Vec<Accused>,
    /// Suspects that no fresh experiment confirmed.
    pub unconfirmed: Vec<Set>,
    /// The toggles that are not accused.
    pub rest: Set,
    /// What these do together; `None` if that was not measured.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rest_together: Option<Answer>,
    /// How many experiments were asked for.
    pub experiments: usize,
}
