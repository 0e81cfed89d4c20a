//! The search with experiments that never err.

use super::*;

/// A machine on which groups of toggles, all set, change the metric by so many per cent.
struct Exact {
    groups: Vec<(Set, f64)>,
    asked: Vec<Ask>,
    told: Vec<String>,
    /// Asked so often, then interrupted.
    patience: usize,
}

impl Exact {
    fn new(groups: &[(&[usize], f64)]) -> Self {
        let groups = groups.iter().map(|(set, effect)| (set.iter().copied().collect(), *effect)).collect();
        Self { groups, asked: Vec::new(), told: Vec::new(), patience: usize::MAX }
    }

    fn metric(&self, arm: &Set) -> f64 {
        self.groups.iter().filter(|(group, _)| group.is_subset(arm)).map(|(_, effect)| effect).sum()
    }

    fn search(&mut self, toggles: usize) -> (Outcome, Option<Stop>) {
        bisect(&Settings { toggles, rho: 0.01, cap: 40 }, self)
    }

    fn of(&self, purpose: Purpose) -> usize {
        self.asked.iter().filter(|ask| ask.purpose == purpose).count()
    }
}

fn answer(percent: f64) -> Answer {
    let verdict = if percent.abs() > 0.5 { Verdict::Different } else { Verdict::Equal };
    let (low, high) = (Some(percent - 0.2), Some(percent + 0.2));
    Answer { verdict, percent: Some(percent), low, high, detectable: Some(0.3), pairs: 10 }
}

impl Oracle for Exact {
    fn measure(&mut self, ask: &Ask) -> Result<Vec<Answer>, Stop> {
        if self.asked.len() >= self.patience {
            return Err(Stop::Interrupted);
        }
        self.asked.push(ask.clone());
        let base = self.metric(&ask.arms[0]);
        Ok(ask.arms[1..].iter().map(|arm| answer(self.metric(arm) - base)).collect())
    }

    fn hear(&mut self, event: &Event) {
        match event {
            Event::Interaction { halves } => self.told.push(format!("{halves:?}")),
            Event::Again => self.told.push("again".to_owned()),
            Event::Answered { ask, answers } => assert_eq!(ask.arms.len(), answers.len() + 1),
        }
    }
}

fn sets(outcome: &Outcome) -> Vec<Vec<usize>> {
    let mut sets: Vec<Vec<usize>> =
        outcome.accused.iter().map(|accused| accused.toggles.iter().copied().collect()).collect();
    sets.sort();
    sets
}

#[test]
fn one_culprit_takes_a_logarithm_of_experiments() {
    for toggles in [1, 2, 3, 16, 43] {
        for culprit in 0..toggles {
            for effect in [5.0, -5.0] {
                let mut machine = Exact::new(&[(&[culprit], effect)]);
                let (outcome, stop) = machine.search(toggles);
                assert_eq!((outcome.end, stop), (End::Explained, None));
                assert_eq!(sets(&outcome), [[culprit]]);
                assert_eq!(outcome.accused[0].alone.percent, Some(effect));
                assert_eq!(outcome.rest.len(), toggles - 1);
                assert_eq!(outcome.rest_together.is_some(), toggles > 1);
                assert!(machine.of(Purpose::Halves) <= 6, "{toggles}: {}", machine.of(Purpose::Halves));
                assert_eq!(machine.of(Purpose::EachHalf), 0);
            }
        }
    }
}

#[test]
fn without_a_difference_one_experiment_is_enough() {
    let mut machine = Exact::new(&[]);
    let (outcome, stop) = machine.search(20);
    assert_eq!((outcome.end, stop, outcome.experiments), (End::NoDifference, None, 1));
    assert!(outcome.accused.is_empty());
    // Nor is one needed that does not matter.
    let mut machine = Exact::new(&[(&[3], 0.7)]);
    assert_eq!(machine.search(20).0.end, End::NoDifference);
    // Nothing to toggle.
    assert_eq!(Exact::new(&[]).search(0).0.end, End::NoDifference);
}

#[test]
fn several_culprits_are_all_found() {
    for groups in [
        &[(&[1][..], 5.0), (&[14], 2.0)][..],
        // As large in either half: neither half has more.
        &[(&[1], 5.0), (&[14], 5.0)],
        &[(&[0], 5.0), (&[1], 5.0), (&[2], 5.0), (&[15], 5.0)],
        &[(&[4], -3.0), (&[5], 8.0)],
    ] {
        let mut machine = Exact::new(groups);
        let (outcome, stop) = machine.search(16);
        let mut planted: Vec<Vec<usize>> = groups.iter().map(|(set, _)| set.to_vec()).collect();
        planted.sort();
        assert_eq!((outcome.end, stop, sets(&outcome)), (End::Explained, None, planted));
    }
}

#[test]
fn interactions_are_found_and_told() {
    for group in [&[2, 9][..], &[0, 1], &[3, 8, 15], &[0, 5, 10, 15]] {
        let mut machine = Exact::new(&[(group, 6.0)]);
        let (outcome, stop) = machine.search(16);
        assert_eq!((outcome.end, stop, sets(&outcome)), (End::Explained, None, vec![group.to_vec()]));
        assert!(!machine.told.is_empty());
        assert_eq!(machine.of(Purpose::Needed), group.len());
        assert!(outcome.experiments < 40, "{group:?}: {}", outcome.experiments);
    }
    // One that acts alone, and two that act together.
    let mut machine = Exact::new(&[(&[7], 4.0), (&[1, 12], 6.0)]);
    assert_eq!(sets(&machine.search(16).0), [vec![1, 12], vec![7]]);
}

/// Confirmation never agrees: then nobody is accused, whatever the search says.
#[test]
fn nobody_is_accused_without_a_fresh_experiment() {
    struct Doubtful(Exact);
    impl Oracle for Doubtful {
        fn measure(&mut self, ask: &Ask) -> Result<Vec<Answer>, Stop> {
            let answers = self.0.measure(ask)?;
            let denied = matches!(ask.purpose, Purpose::Confirm | Purpose::Needed);
            Ok(if denied { vec![answer(0.0)] } else { answers })
        }
        fn hear(&mut self, event: &Event) {
            self.0.hear(event);
        }
    }
    let mut machine = Doubtful(Exact::new(&[(&[5], 5.0)]));
    let (outcome, stop) = bisect(&Settings { toggles: 16, rho: 0.01, cap: 40 }, &mut machine);
    assert_eq!((outcome.end, stop), (End::NotPinned, None));
    assert!(outcome.accused.is_empty());
    assert_eq!(outcome.unconfirmed, [Set::from([5])]);
    assert_eq!(machine.0.told, ["again"]);
}

#[test]
fn accusations_share_one_error_rate_and_a_stop_keeps_what_was_found() {
    let groups: &[(&[usize], f64)] = &[(&[7], 4.0), (&[1, 12], 6.0)];
    let mut machine = Exact::new(groups);
    let (whole, _) = machine.search(16);
    let accusing = |ask: &&Ask| matches!(ask.purpose, Purpose::Confirm | Purpose::Needed);
    let spent: f64 = machine.asked.iter().filter(accusing).map(|ask| ask.alpha).sum();
    assert!(spent < ACCUSE, "{spent}");
    for ask in &machine.asked {
        let rule = ask.rule(Better::Lower, 1);
        assert_eq!(rule.looks.len(), rule.levels.len());
        assert!(rule.levels.iter().all(|level| *level > 0.0), "{rule:?}");
    }
    for patience in 0..whole.experiments {
        let mut machine = Exact { patience, ..Exact::new(groups) };
        let (outcome, stop) = machine.search(16);
        assert_eq!((outcome.end, stop), (End::Stopped, Some(Stop::Interrupted)));
        assert!(outcome.accused.iter().all(|accused| whole.accused.contains(accused)));
    }
}

#[test]
fn however_late_a_confirmation_comes_its_level_can_be_reached() {
    let settings = Settings { toggles: 4, rho: 0.02, cap: 40 };
    for nth in 1..=20_u32 {
        let alpha = ACCUSE / (f64::from(nth) * f64::from(nth + 1));
        let arms = vec![Set::new(), Set::from([0])];
        let rule = Ask { alpha, ..Ask::new(Purpose::Confirm, arms, &settings) }.rule(Better::Lower, 1);
        let least = 1.0 / real(rule.draws + 1);
        // The first two looks have few orders, which are all counted.
        assert!(rule.levels[2..].iter().all(|level| least < *level), "{nth}: {rule:?}");
    }
}
