//! Two recordings of one workload side by side: before an upgrade and after it, or on two machines.
//!
//! They cannot be interleaved, so there is no order that a seed decided, and no verdict: whatever else changed in between
//! is in the numbers too.

use super::plan::{Arm, Plan, Status, Trial};
use super::{Comparison, outcome};
use crate::statistics::unordered::shift;
use crate::statistics::verdict::{Judgement, Look, Verdict, change};

/// One of the two: an experiment's directory as read. Of several arms the first is taken.
#[derive(Debug, Clone, Copy)]
pub struct SideOf<'a> {
    /// What the user calls it.
    pub name: &'a str,
    /// Its plan.
    pub plan: &'a Plan,
    /// Its trials.
    pub trials: &'a [Trial],
}

/// Why two recordings cannot be put side by side.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum JoinError {
    /// A recording without an arm.
    #[error("{0} has no arm: nothing can have run")]
    NoArm(String),
    /// The commands differ.
    #[error("not the same workload: {a} ran `{of_a}`, {b} ran `{of_b}`")]
    Workload {
        /// The first recording.
        a: String,
        /// Its command.
        of_a: String,
        /// The second.
        b: String,
        /// Its command.
        of_b: String,
    },
    /// The metrics differ.
    #[error("not the same metric: {a} measured {of_a}, {b} measured {of_b}")]
    Metric {
        /// The first recording.
        a: String,
        /// Its metric.
        of_a: String,
        /// The second.
        b: String,
        /// Its metric.
        of_b: String,
    },
    /// No run of one side ended.
    #[error("{0} has no run that counts")]
    Empty(String),
}

/// Two recordings as two arms, "before" and "after".
#[derive(Debug, Clone, PartialEq)]
pub struct Joined {
    /// A plan of two arms. Its seed and looks are those of the first recording and say nothing about the order here.
    pub plan: Plan,
    /// The trials of both, those before first; each is of block 0 or 1 as it is of arm 0 or 1.
    pub trials: Vec<Trial>,
    /// What makes them less alike than they should be.
    pub notes: Vec<String>,
}

/// Puts two recordings side by side, or says why that would compare different things.
pub fn join(before: SideOf, after: SideOf) -> Result<Joined, JoinError> {
    let arms = [first_arm(&before)?, first_arm(&after)?];
    let ran = [(&before, arms[0]), (&after, arms[1])].map(|(side, arm)| {
        if arm.command.is_empty() { side.plan.workload.clone() } else { arm.command.clone() }
    });
    if ran[0] != ran[1] {
        return Err(JoinError::Workload {
            a: before.name.to_owned(),
            of_a: ran[0].join(" "),
            b: after.name.to_owned(),
            of_b: ran[1].join(" "),
        });
    }
    if before.plan.metric != after.plan.metric || before.plan.rule.better != after.plan.rule.better {
        let said = |plan: &Plan| {
            let metric = &plan.metric;
            let asked = metric.pattern.as_ref().map_or(String::new(), |pattern| format!(" by `{pattern}`"));
            let better = format!("{:?}", plan.rule.better).to_lowercase();
            format!("{}{asked} in `{}`, {better} is better", metric.name, metric.unit)
        };
        return Err(JoinError::Metric {
            a: before.name.to_owned(),
            of_a: said(before.plan),
            b: after.name.to_owned(),
            of_b: said(after.plan),
        });
    }
    let (mut trials, mut notes) = (Vec::new(), notes(&before, &after));
    for (side, nth) in [&before, &after].into_iter().zip(0_u32..) {
        let of_arm: Vec<Trial> = side.trials.iter().filter(|trial| trial.arm == 0).cloned().collect();
        if of_arm.iter().all(|trial| trial.status == Status::Discarded) {
            return Err(JoinError::Empty(side.name.to_owned()));
        }
        if side.plan.arms.len() > 1 {
            let arm = &arms[usize::from(nth == 1)].name;
            notes.push(format!(
                "{} compared {} arms; of them the first, {arm}, is shown here",
                side.name,
                side.plan.arms.len()
            ));
        }
        let arm = usize::from(nth == 1);
        let place = |(place, trial): (usize, Trial)| Trial { block: nth, attempt: 0, place, arm, ..trial };
        trials.extend(of_arm.into_iter().enumerate().map(place));
    }
    let mut plan = before.plan.clone();
    plan.arms = arms
        .into_iter()
        .zip(["before", "after"])
        .map(|(arm, name)| Arm { name: name.to_owned(), command: Vec::new(), ..arm.clone() })
        .collect();
    plan.workload.clone_from(&ran[0]);
    (plan.aa, plan.confirms) = (false, None);
    // Both are drawn on one axis, in bins that hold samples of either.
    plan.sample_s = [before.plan.sample_s, after.plan.sample_s].into_iter().flatten().reduce(f64::max);
    Ok(Joined { plan, trials, notes })
}

fn first_arm<'a>(side: &SideOf<'a>) -> Result<&'a Arm, JoinError> {
    side.plan.arms.first().ok_or_else(|| JoinError::NoArm(side.name.to_owned()))
}

fn notes(before: &SideOf, after: &SideOf) -> Vec<String> {
    let mut notes = Vec::new();
    if before.plan.created_unix_s > after.plan.created_unix_s {
        notes.push(format!("{} is the later of the two: are they the wrong way round?", before.name));
    }
    if before.plan.timeout_s != after.plan.timeout_s {
        notes.push("the two had different time limits for a run".to_owned());
    }
    if before.plan.sample_s != after.plan.sample_s {
        notes.push(
            "the two were sampled at different intervals, which changes what a graph shows of short peaks"
                .to_owned(),
        );
    }
    let domain =
        |side: &SideOf| side.trials.iter().find_map(|trial| trial.energy_domain().map(str::to_owned));
    if let (Some(a), Some(b)) = (domain(before), domain(after))
        && a != b
    {
        notes.push(format!("the energy is of different parts of the machine: {a}, and {b}"));
    }
    notes
}

/// What the numbers of `joined` look like. Never a verdict: it is always undecided. The p-value and the 95 % interval
/// of its one look are those of [`shift`], and `pairs` counts the runs of the smaller side.
pub fn look_apart(joined: &Joined) -> Comparison {
    let plan = &joined.plan;
    let of_arm = |arm: usize| -> Vec<Option<f64>> {
        let of_arm = joined.trials.iter().filter(|trial| trial.arm == arm);
        of_arm.filter(|trial| trial.status != Status::Discarded).map(|trial| outcome(plan, trial)).collect()
    };
    let (before, after) = (of_arm(0), of_arm(1));
    let found = shift(&before, &after);
    // What is no number any more as a percentage is none.
    let theta = found.theta.filter(|theta| plan.rule.better.percent(*theta).is_finite());
    let failed = [&before, &after].map(|y| y.iter().filter(|y| y.is_none()).count());
    let look = Look {
        pairs: before.len().min(after.len()),
        level: 0.05,
        p: found.p,
        exact: false,
        verdict: Verdict::Undecided,
        change: theta.map(|theta| change(plan.rule.better, theta, found.interval)),
        half_width: None,
        detectable: None,
        failed,
    };
    let judgement =
        Judgement { verdict: Verdict::Undecided, finished: true, decided_at: None, looks: vec![look] };
    Comparison { arm: 1, judgement }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiment::made_up::Recipe;
    use crate::experiment::plan::Metric;
    use crate::statistics::verdict::{Better, Rule};

    /// A recording of one arm: what the made-up experiment measured under `arm`.
    fn recording(recipe: &Recipe, arm: usize) -> (Plan, Vec<Trial>) {
        let mut plan = recipe.plan();
        let trials = recipe.trials(&plan).into_iter().filter(|trial| trial.arm == arm);
        let trials = trials.map(|trial| Trial { arm: 0, ..trial }).collect();
        plan.arms.truncate(1);
        (plan, trials)
    }

    fn side<'a>(name: &'a str, (plan, trials): &'a (Plan, Vec<Trial>)) -> SideOf<'a> {
        SideOf { name, plan, trials }
    }

    #[test]
    fn a_clear_change_stays_undecided() {
        let recipe = Recipe { effect: 0.1, ..Recipe::default() };
        let (a, b) = (recording(&recipe, 0), recording(&recipe, 1));
        let joined = join(side("old", &a), side("new", &b)).unwrap();
        assert_eq!(
            joined.plan.arms.iter().map(|arm| arm.name.as_str()).collect::<Vec<_>>(),
            ["before", "after"]
        );
        assert_eq!((joined.trials.len(), joined.notes.len()), (40, 0));
        let found = look_apart(&joined);
        assert_eq!(found.judgement.verdict, Verdict::Undecided);
        let look = &found.judgement.looks[0];
        let change = look.change.unwrap();
        assert!((change.percent - 10.0).abs() < 2.0 && look.p < 1e-4, "{look:?}");
        assert!(change.low.unwrap() > 5.0 && change.high.unwrap() < 15.0, "{change:?}");
    }

    #[test]
    fn numbers_that_no_ratio_holds_have_no_percentage() {
        let (mut a, mut b) = (recording(&Recipe::default(), 0), recording(&Recipe::default(), 0));
        a.1.iter_mut().for_each(|trial| trial.value = Some(1e-300));
        b.1.iter_mut().for_each(|trial| trial.value = Some(1e300));
        let found = look_apart(&join(side("a", &a), side("b", &b)).unwrap());
        assert_eq!(found.judgement.looks[0].change, None);
    }

    #[test]
    fn a_higher_number_is_not_taken_for_a_slower_one() {
        let recipe = Recipe { effect: 0.1, ..Recipe::default() };
        let (mut a, mut b) = (recording(&recipe, 0), recording(&recipe, 1));
        for (plan, _) in [&mut a, &mut b] {
            plan.rule = Rule { better: Better::Higher, ..plan.rule.clone() };
        }
        let change =
            look_apart(&join(side("a", &a), side("b", &b)).unwrap()).judgement.looks[0].change.unwrap();
        assert!(change.percent > 5.0 && change.low < change.high, "{change:?}");
    }

    #[test]
    fn different_things_are_not_compared() {
        let good = recording(&Recipe::default(), 0);
        let mut other = good.clone();
        other.0.workload.push("--more".to_owned());
        let error = join(side("a", &good), side("b", &other)).unwrap_err();
        assert!(error.to_string().starts_with("not the same workload: a ran `made-up"), "{error}");
        let mut other = good.clone();
        other.0.metric = Metric { name: "joules".into(), unit: "J".into(), pattern: None };
        let error = join(side("a", &good), side("b", &other)).unwrap_err();
        assert!(error.to_string().contains("b measured joules in `J`, lower is better"), "{error}");
        let mut other = good.clone();
        other.0.arms.clear();
        assert_eq!(join(side("a", &good), side("b", &other)), Err(JoinError::NoArm("b".into())));
        let empty = (good.0.clone(), Vec::new());
        assert_eq!(join(side("a", &empty), side("b", &good)), Err(JoinError::Empty("a".into())));
    }

    #[test]
    fn of_an_experiment_the_first_arm_is_taken_and_said() {
        let recipe = Recipe::default();
        let whole = (recipe.plan(), recipe.trials(&recipe.plan()));
        let mut later = recording(&recipe, 0);
        later.0.created_unix_s -= 10;
        later.0.sample_s = Some(2.0);
        let joined = join(side("a", &whole), side("b", &later)).unwrap();
        assert_eq!(joined.trials.len(), 40);
        let notes = joined.notes.join("; ");
        for wanted in
            ["a compared 2 arms; of them the first, balanced", "wrong way round", "different intervals"]
        {
            assert!(notes.contains(wanted), "{wanted}: {notes}");
        }
        assert_eq!(joined.plan.sample_s, Some(2.0));
    }
}
