//! The same explanations for trials that were not interleaved: a recording before, and one after.
//!
//! The identities (time = work ÷ clock …) hold whatever the order was, so the split of a change into factors is as good
//! as the numbers. That a channel moved is far less than in an experiment: everything that changed between the two
//! recordings moved together.

use std::collections::BTreeMap;

use super::{About, Explanation, Moved, Order, Pairing, Role, of_pairing, words};
use crate::experiment::{Plan, Status, Trial, outcome};
use crate::statistics::{median, unordered};

/// Below this p-value, if each run stood alone, the metric is said to have moved.
const MOVED: f64 = 0.05;

/// What goes with the difference of two recordings, `trials` of two arms as [`crate::experiment::join`] makes them.
/// `about` as in [`super::explain()`].
pub fn explain_apart(plan: &Plan, trials: &[Trial], about: &BTreeMap<String, About>) -> Explanation {
    let trials: Vec<&Trial> = trials.iter().filter(|trial| trial.status != Status::Discarded).collect();
    let y: Vec<Option<f64>> = trials.iter().map(|trial| outcome(plan, trial)).collect();
    let is_b: Vec<bool> = trials.iter().map(|trial| trial.arm == 1).collect();
    let of_metric = moved(&y, &is_b);
    let pairing = Pairing { plan, trials, order: Order::Unknown { y, is_b }, theta: of_metric.theta };
    let mut explanation = of_pairing(&pairing, 1, about);
    explanation.is_change = of_metric.p <= MOVED;
    if !explanation.is_change {
        // There is nothing to explain.
        let explains = explanation.channels.iter_mut().filter(|channel| channel.role == Role::Explains);
        explains.for_each(|channel| channel.role = Role::AlsoChanged);
    }
    explanation.sentences = words::sentences_apart(plan, &explanation);
    explanation
}

/// The trials of one arm.
fn of_arm(y: &[Option<f64>], is_b: &[bool], b: bool) -> Vec<Option<f64>> {
    y.iter().zip(is_b).filter(|(_, is_b)| **is_b == b).map(|(y, _)| *y).collect()
}

pub(super) fn moved(y: &[Option<f64>], is_b: &[bool]) -> Moved {
    let shift = unordered::shift(&of_arm(y, is_b, false), &of_arm(y, is_b, true));
    Moved {
        theta: shift.theta,
        p: shift.p,
        interval: [shift.interval.low, shift.interval.high],
        residuals: residuals(y, is_b),
    }
}

/// Each trial without the median of its arm: there is no neighbour of the other arm to take the level from.
pub(super) fn residuals(y: &[Option<f64>], is_b: &[bool]) -> Vec<Option<f64>> {
    let middle =
        |b: bool| median(&mut of_arm(y, is_b, b).into_iter().flatten().collect::<Vec<f64>>()).unwrap_or(0.0);
    let middles = [middle(false), middle(true)];
    y.iter().zip(is_b).map(|(y, is_b)| y.map(|y| y - middles[usize::from(*is_b)])).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiment::made_up::Recipe;

    /// The same trials, but all of the first arm before all of the other.
    fn apart(recipe: &Recipe) -> Explanation {
        let plan = recipe.plan();
        let mut trials = recipe.trials(&plan);
        trials.sort_by_key(|trial| trial.arm);
        explain_apart(&plan, &trials, &BTreeMap::new())
    }

    #[test]
    fn the_factors_hold_whatever_the_order() {
        let found = apart(&Recipe::default());
        let clock = found.splits[0].terms.iter().find(|term| term.name == "clock").unwrap();
        assert!((clock.share.unwrap() - 1.0).abs() < 0.2, "{:?}", found.splits);
        let sum: f64 = found.splits[0].terms.iter().map(|term| term.theta).sum();
        assert!((sum - found.splits[0].theta).abs() < 1e-12, "the terms add up");
        assert_eq!((found.channels[0].name.as_str(), found.channels[0].role), ("clock.mean", Role::Explains));
        assert!(found.lines.is_none(), "what needs a drawn order is left out");
        let said = found.sentences.join(" ");
        assert!(said.contains("clock explains") && said.contains("for whatever reason"), "{said}");
    }

    #[test]
    fn what_did_not_move_needs_no_explanation() {
        let found = apart(&Recipe { effect: 0.0, pairs: 4, noise: 0.05, ..Recipe::default() });
        let said = found.sentences.join(" ");
        assert!(!said.contains("explains"), "{said}");
        assert!(found.channels.iter().all(|channel| channel.role != Role::Explains));
        let nothing = explain_apart(&Recipe::default().plan(), &[], &BTreeMap::new());
        assert!(nothing.channels.is_empty() && nothing.sentences.is_empty());
    }
}
