//! The search.

use super::{ACCUSE, Accused, Answer, Ask, End, Event, Oracle, Outcome, Purpose, Set, Settings, Stop};
use crate::statistics::{sequential::looks, verdict::Verdict};

/// More culprits are not looked for: with so many, the machines simply differ.
const MOST_ACCUSED: usize = 8;
/// A group that matters only together is not taken apart further if it has more members.
const LARGEST_GROUP: usize = 6;

/// Finds the toggles that make the difference. The reason is beside the outcome when it was stopped.
pub fn bisect(settings: &Settings, oracle: &mut dyn Oracle) -> (Outcome, Option<Stop>) {
    let mut search = Search {
        settings,
        oracle,
        confirmations: 0,
        outcome: Outcome {
            end: End::Stopped,
            whole: None,
            accused: Vec::new(),
            unconfirmed: Vec::new(),
            rest: (0..settings.toggles).collect(),
            rest_together: None,
            experiments: 0,
        },
    };
    let stop = match search.run() {
        Ok(end) => {
            search.outcome.end = end;
            None
        }
        Err(stop) => Some(stop),
    };
    (search.outcome, stop)
}

struct Search<'a> {
    settings: &'a Settings,
    oracle: &'a mut dyn Oracle,
    /// Fresh experiments by which somebody may be accused, so far.
    confirmations: u32,
    outcome: Outcome,
}

impl Search<'_> {
    fn run(&mut self) -> Result<End, Stop> {
        let all = self.outcome.rest.clone();
        let whole = self.alone(Purpose::Whole, &all)?;
        self.outcome.whole = Some(whole);
        if !whole.shows(self.settings.rho) {
            return Ok(End::NoDifference);
        }
        let mut left = whole;
        loop {
            let found = match self.search_and_confirm(false, &left)? {
                None => {
                    self.oracle.hear(&Event::Again);
                    self.search_and_confirm(true, &left)?
                }
                found => found,
            };
            let Some(accused) = found else { return Ok(End::NotPinned) };
            self.outcome.rest.retain(|toggle| !accused.toggles.contains(toggle));
            self.outcome.accused.push(accused);
            self.outcome.rest_together = None;
            if self.outcome.rest.is_empty() {
                return Ok(End::Explained);
            }
            let rest = self.outcome.rest.clone();
            left = self.alone(Purpose::Rest, &rest)?;
            self.outcome.rest_together = Some(left);
            if !left.shows(self.settings.rho) {
                return Ok(End::Explained);
            }
            if self.outcome.accused.len() >= MOST_ACCUSED {
                return Ok(End::NotPinned);
            }
        }
    }

    /// One suspect out of what is left, if a fresh experiment confirms it.
    fn search_and_confirm(&mut self, careful: bool, left: &Answer) -> Result<Option<Accused>, Stop> {
        let rest = self.outcome.rest.clone();
        let Some(suspect) = self.search(&rest, &Set::new(), careful, true, left)? else { return Ok(None) };
        let confirmed = self.confirm(suspect.clone())?;
        if confirmed.is_none() && !self.outcome.unconfirmed.contains(&suspect) {
            self.outcome.unconfirmed.push(suspect);
        }
        Ok(confirmed)
    }

    /// A minimal part of `set` that makes a difference where `context` is set too. `known`: it was measured that the
    /// whole of `set` does, so a half that leads nowhere is no reason to give up. `None` when it does not after all. `careful`: halves are not played off against each other.
    fn search(
        &mut self,
        set: &Set,
        context: &Set,
        careful: bool,
        known: bool,
        left: &Answer,
    ) -> Result<Option<Set>, Stop> {
        if set.len() <= 1 {
            return Ok((!set.is_empty()).then(|| set.clone()));
        }
        let (one, other) = halves(set);
        if !careful && let Some(better) = self.larger(&one, &other, context, left)? {
            let half = if better { &one } else { &other };
            let found = self.search(half, context, careful, false, left)?;
            if found.is_some() || !known {
                return Ok(found);
            }
        }
        // The whole beside its halves: without it, chance that made it look different would be taken for an interaction
        // and followed down to every toggle.
        let parts = [union(context, &one), union(context, &other), union(context, set)];
        let arms = std::iter::once(context.clone()).chain(parts).collect();
        let rho = self.settings.rho;
        let answers = self.ask(Ask::new(Purpose::EachHalf, arms, self.settings))?;
        let shows = |nth: usize| answers.get(nth).is_some_and(|answer| answer.shows(rho));
        match (shows(0), shows(1)) {
            (true, _) => self.search(&one, context, careful, true, left),
            (_, true) => self.search(&other, context, careful, true, left),
            _ if !shows(2) => Ok(None),
            // Delta debugging's interference (Zeller 1999): a part of each half is needed, so each half is searched
            // with the other, or what is needed of it, in place.
            _ => {
                self.oracle.hear(&Event::Interaction { halves: [&one, &other] });
                let of_one = self.search(&one, &union(context, &other), careful, true, left)?;
                let Some(of_one) = of_one else { return Ok(None) };
                let of_other = self.search(&other, &union(context, &of_one), careful, true, left)?;
                Ok(of_other.map(|of_other| union(&of_one, &of_other)))
            }
        }
    }

    /// Whether the first of two halves moves the metric further than the second, in the direction of what is to be
    /// explained. `None` when the trials do not tell.
    fn larger(&mut self, one: &Set, other: &Set, context: &Set, left: &Answer) -> Result<Option<bool>, Stop> {
        let arms = vec![union(context, other), union(context, one)];
        let answers = self.ask(Ask::new(Purpose::Halves, arms, self.settings))?;
        let told = answers.first().filter(|answer| answer.shows(self.settings.rho));
        Ok(told.and_then(|told| Some((told.percent? > 0.0) == (left.percent? > 0.0))))
    }

    /// Accuses by fresh experiments: each suspect must be needed, and all of them together must make a difference.
    fn confirm(&mut self, mut suspects: Set) -> Result<Option<Accused>, Stop> {
        if suspects.len() > LARGEST_GROUP {
            return Ok(None);
        }
        while suspects.len() > 1 {
            let mut needless = None;
            for suspect in suspects.clone() {
                let mut without = suspects.clone();
                without.remove(&suspect);
                let answer = self.accuse(Purpose::Needed, vec![without, suspects.clone()])?;
                if answer.verdict != Verdict::Different {
                    needless = Some(suspect);
                    break;
                }
            }
            let Some(needless) = needless else { break };
            // What is left is another group, and is tried from the start.
            suspects.remove(&needless);
        }
        let alone = self.accuse(Purpose::Confirm, vec![Set::new(), suspects.clone()])?;
        Ok(alone.shows(self.settings.rho).then_some(Accused { toggles: suspects, alone }))
    }

    /// An experiment by which somebody may be accused. The nth has the level α/(n (n + 1)): together they are within
    /// α, however many there are and whatever led to them.
    fn accuse(&mut self, purpose: Purpose, arms: Vec<Set>) -> Result<Answer, Stop> {
        self.confirmations += 1;
        let nth = f64::from(self.confirmations);
        let alpha = ACCUSE / (nth * (nth + 1.0));
        let ask = Ask { alpha, looks: looks(self.settings.cap), ..Ask::new(purpose, arms, self.settings) };
        self.only(ask)
    }

    fn alone(&mut self, purpose: Purpose, set: &Set) -> Result<Answer, Stop> {
        self.only(Ask::new(purpose, vec![Set::new(), set.clone()], self.settings))
    }

    fn only(&mut self, ask: Ask) -> Result<Answer, Stop> {
        let answers = self.ask(ask)?;
        answers.first().copied().ok_or_else(|| Stop::Failed("the experiment gave no answer".to_owned()))
    }

    fn ask(&mut self, mut ask: Ask) -> Result<Vec<Answer>, Stop> {
        self.outcome.experiments += 1;
        ask.number = self.outcome.experiments;
        let answers = self.oracle.measure(&ask)?;
        self.oracle.hear(&Event::Answered { ask: &ask, answers: &answers });
        Ok(answers)
    }
}

fn halves(set: &Set) -> (Set, Set) {
    let middle = set.len().div_ceil(2);
    (set.iter().copied().take(middle).collect(), set.iter().copied().skip(middle).collect())
}

fn union(one: &Set, other: &Set) -> Set {
    one.union(other).copied().collect()
}

/// How many experiments a search for one culprit takes, and about how many pairs of runs: for the plan that is shown
/// before the first.
pub fn expected(settings: &Settings) -> (usize, usize) {
    let steps = usize::try_from(settings.toggles.next_power_of_two().ilog2()).unwrap_or_default();
    // Experiments that end by a difference take about 10 pairs, a half about 6, and what is left goes to its cap.
    (steps + 3, 20 + 6 * steps + settings.cap)
}
