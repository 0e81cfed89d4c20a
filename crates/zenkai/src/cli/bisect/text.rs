//! What a search says.

use std::{io::Write, path::Path, time::Duration};

use serde_json::{Value, json};
use zenkai_measure::{
    bisect::{Answer, Ask, End, Event, Outcome, Purpose, Set, Stop},
    statistics::verdict::Verdict,
};
use zenkai_report::Block;

use super::{cost, laid::Laid, toggles::Sides};
use crate::cli::{
    CommandError,
    compare::{self, visible},
};

/// Before the first experiment: what is toggled, and what it will cost.
pub(super) fn tell_plan(
    laid: &Laid,
    dir: &Path,
    budget: Duration,
    err: &mut dyn Write,
) -> Result<(), CommandError> {
    let sides = &laid.sides;
    let toggles = counted(sides.toggles.len(), "toggle");
    writeln!(err, "{toggles}, each set as in {} or as in {}:", visible(&sides.a), visible(&sides.b))?;
    for (nth, toggle) in sides.toggles.iter().enumerate() {
        let text = format!("  {}. {}: {} → {}", nth + 1, toggle.name, toggle.from, toggle.to);
        writeln!(err, "{}", visible(&text))?;
    }
    for (what, why) in &sides.left {
        writeln!(err, "{}", visible(&format!("  left out: {what}: {why}")))?;
    }
    let (experiments, pairs, seconds) = cost(laid);
    let minutes = |seconds: f64| format!("{:.0} min", (seconds / 60.0).max(1.0));
    writeln!(
        err,
        "one culprit takes about {experiments} experiments, {pairs} pairs of runs of {:.2} s: {}; budget {}",
        laid.run_s,
        minutes(seconds),
        minutes(budget.as_secs_f64()),
    )?;
    if seconds > budget.as_secs_f64() {
        writeln!(err, "zenkai: the budget is likely too small; --resume goes on where it ends")?;
    }
    writeln!(err, "kept in {}", dir.display())?;
    Ok(())
}

/// `1 toggle`, `2 toggles`
fn counted(count: usize, noun: &str) -> String {
    format!("{count} {noun}{}", if count == 1 { "" } else { "s" })
}

/// What an experiment asks.
pub(super) fn question(ask: &Ask, sides: &Sides) -> String {
    let arm = |nth: usize| ask.arms.get(nth).map(|set| sides.arm(set)).unwrap_or_default();
    match ask.purpose {
        Purpose::Whole => format!("is there a difference to explain? {} against {}", arm(1), arm(0)),
        Purpose::Halves => format!("which half has more of it? {} against {}", arm(1), arm(0)),
        Purpose::EachHalf => format!("each half against {}: {}; {}", arm(0), arm(1), arm(2)),
        Purpose::Confirm => format!("accused: {} alone, afresh", arm(1)),
        Purpose::Needed => format!("is it needed? {} against {}", arm(1), arm(0)),
        Purpose::Rest => format!("what is left: {} against {}", arm(1), arm(0)),
    }
}

/// What happened.
pub(super) fn event(event: &Event, sides: &Sides) -> String {
    match event {
        Event::Answered { ask, answers } => {
            let each = ask.arms.iter().skip(1).zip(*answers);
            let text = |(set, answer): (&Set, &Answer)| format!("{}: {}", sides.arm(set), told(answer));
            format!("   {}", visible(&each.map(text).collect::<Vec<_>>().join("; ")))
        }
        Event::Interaction { halves: [one, other] } => {
            let text = format!("   neither half alone shows it: {} and {}", sides.arm(one), sides.arm(other));
            format!("{}; searching what of each is needed with the other", visible(&text))
        }
        Event::Again => "   that leads nowhere; again, with each half against neither".to_owned(),
    }
}

fn told(answer: &Answer) -> String {
    let verdict = match answer.verdict {
        Verdict::Different => "different",
        Verdict::Equal => "equal",
        Verdict::Undecided => "the trials do not tell",
    };
    format!("{} ({verdict}, {} pairs)", change(answer), answer.pairs)
}

/// `-5.4 % [-6.7, -4.1]`
fn change(answer: &Answer) -> String {
    let number = |value: Option<f64>| value.map_or_else(|| "?".to_owned(), |value| format!("{value:+.1}"));
    format!("{} % [{}, {}]", number(answer.percent), number(answer.low), number(answer.high))
}

/// What came of a search.
pub(super) struct Done<'a> {
    pub(super) laid: &'a Laid,
    pub(super) dir: &'a Path,
    pub(super) outcome: &'a Outcome,
    pub(super) stop: Option<&'a Stop>,
}

impl Done<'_> {
    pub(super) fn blocks(&self) -> Vec<Block> {
        let metric = &self.laid.plan.metric.name;
        let sides = &self.laid.sides;
        let mut blocks = vec![Block::Heading(visible(&format!(
            "bisect: {metric} of {} when set as in {}",
            sides.b, sides.a
        )))];
        if let Some(whole) = &self.outcome.whole {
            let text = match sides.toggles.len() {
                1 => format!("the only difference: {}", told(whole)),
                many => format!("all {many} differences together: {}", told(whole)),
            };
            blocks.push(Block::Text(text));
        }
        if let Some(text) = self.ending() {
            blocks.push(Block::Text(text));
        }
        let rows = self.outcome.accused.iter().flat_map(|accused| {
            let head = if accused.toggles.len() > 1 { "only together: " } else { "" };
            accused.toggles.iter().filter_map(move |nth| {
                let toggle = sides.toggles.get(*nth)?;
                let values = format!("{} → {}", toggle.from, toggle.to);
                Some(vec![
                    visible(&format!("{head}{}", toggle.name)),
                    visible(&values),
                    change(&accused.alone),
                ])
            })
        });
        let rows: Vec<Vec<String>> = rows.collect();
        if !rows.is_empty() {
            blocks.push(Block::Heading("to blame".to_owned()));
            blocks.push(Block::Table(rows));
        }
        for suspects in &self.outcome.unconfirmed {
            blocks.push(Block::Text(visible(&format!(
                "suspected, but no fresh experiment confirmed it: {}",
                self.names(suspects)
            ))));
        }
        if !self.outcome.accused.is_empty() {
            blocks.push(Block::Text(visible(&self.summary())));
        }
        blocks.push(Block::Text(format!(
            "{} in {}; `zenkai report DIR/01` shows the first",
            counted(self.outcome.experiments, "experiment"),
            self.dir.display()
        )));
        blocks
    }

    fn ending(&self) -> Option<String> {
        let resume = || format!("go on with: {}", compare::resume("bisect", self.dir));
        match (self.stop, self.outcome.end) {
            (Some(stop), _) => Some(format!("{stop}; the machine is as it was. {}", resume())),
            (None, End::NoDifference) => {
                let seen = self.outcome.whole.and_then(|whole| whole.detectable);
                let seen = seen.map_or_else(String::new, |seen| {
                    format!("; a difference of {seen:.1} % would have been found four times in five")
                });
                let told = self.outcome.whole.is_some_and(|whole| whole.verdict != Verdict::Undecided);
                let text = if told { "no difference to explain" } else { "no difference was found" };
                Some(format!("{text}{seen}"))
            }
            (None, End::NotPinned) => Some("not all of it could be pinned on single differences".to_owned()),
            (None, End::Explained | End::Stopped) => None,
        }
    }

    /// `governor: 5.4 % [4.1, 6.7]; the other 41 differences: together within ±1 %`
    pub(super) fn summary(&self) -> String {
        let each = self
            .outcome
            .accused
            .iter()
            .map(|accused| format!("{}: {}", self.names(&accused.toggles), change(&accused.alone)));
        let mut parts: Vec<String> = each.collect();
        let rest = match self.outcome.rest.len() {
            0 => return parts.join("; "),
            1 => "the other difference".to_owned(),
            many => format!("the other {many} differences: together"),
        };
        parts.push(match &self.outcome.rest_together {
            None => format!("{rest} not measured"),
            Some(together) => match (together.verdict, together.within()) {
                (Verdict::Different, _) => format!("{rest} {}", change(together)),
                // Rounded up: it is a limit.
                (_, Some(within)) => {
                    format!("{rest} within ±{:.1} %", (10.0 * within).ceil().max(1.0) / 10.0)
                }
                (_, None) => format!("{rest} unknown: the trials do not tell"),
            },
        });
        parts.join("; ")
    }

    fn names(&self, set: &Set) -> String {
        let names: Vec<&str> = set.iter().map(|nth| self.laid.sides.name(*nth)).collect();
        names.join(" with ")
    }

    pub(super) fn json(&self) -> Value {
        let sides = &self.laid.sides;
        let toggle = |(nth, toggle): (usize, &super::toggles::Toggle)| json!({ "number": nth, "name": toggle.name, "b": toggle.from, "a": toggle.to });
        json!({
            "schema": "zenkai.bisect-result/1",
            "a": sides.a,
            "b": sides.b,
            "metric": self.laid.plan.metric,
            "toggles": sides.toggles.iter().enumerate().map(toggle).collect::<Vec<_>>(),
            "left_out": sides.left.iter().map(|(what, why)| json!({ "what": what, "why": why })).collect::<Vec<_>>(),
            "outcome": self.outcome,
            "stopped": self.stop.map(ToString::to_string),
            "summary": self.summary(),
            "dir": self.dir.display().to_string(),
        })
    }
}
