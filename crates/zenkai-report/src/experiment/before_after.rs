//! Two recordings that were not interleaved, before an upgrade and after it, as one report: information, and the way to
//! proof.

use serde_json::{Value, json};
use zenkai_diagnose::difference::{self, Changeable};
use zenkai_facts::Facts;
use zenkai_measure::experiment::{Comparison, Plan, Trial};
use zenkai_measure::statistics::verdict::{Change, Look};

use super::Experiment;
use super::text::{arms_table, explained, failures, secondary};
use super::words::{self, p_value, signed};
use crate::{Block, Detail, Mark};

/// Two recordings side by side.
#[derive(Debug, Clone, Copy)]
pub struct BeforeAfter<'a> {
    /// Both as the arms "before" and "after" of one experiment; its `apart` is set.
    pub experiment: Experiment<'a>,
    /// What the user calls the two.
    pub names: [&'a str; 2],
    /// When each was laid down, in seconds since 1970.
    pub laid_down: [u64; 2],
    /// What makes the two less alike than they should be, or keeps something from being shown.
    pub warnings: &'a [String],
    /// What differs between the machine's two states, where both recordings hold a capture.
    pub states: Option<States<'a>>,
}

/// The two states of the machine.
#[derive(Debug, Clone, Copy)]
pub struct States<'a> {
    /// What each was.
    pub facts: [&'a Facts; 2],
    /// What differs.
    pub comparison: &'a difference::Comparison,
    /// How many of the differences can be toggled now.
    pub carried: usize,
}

/// What the page and the text say in the same words.
pub(super) struct Said {
    /// What the numbers show, one sentence.
    pub(super) shows: String,
    /// What they cannot show.
    pub(super) cannot: [&'static str; 3],
    /// How to find out, sentence and command.
    pub(super) next: Vec<(String, Option<String>)>,
}

impl BeforeAfter<'_> {
    fn look(&self) -> Option<&Look> {
        self.experiment.comparisons.first()?.judgement.looks.last()
    }

    /// Runs of each side that count.
    fn runs(&self) -> [usize; 2] {
        [0, 1].map(|arm| self.experiment.of_arm(arm).trials)
    }

    /// Effect, interval and p-value in numbers.
    pub(super) fn reading(&self) -> Option<String> {
        let (look, [before, after]) = (self.look()?, self.runs());
        let change = look.change?;
        let limits = words::confidence("runs", 0.95, change);
        Some(format!(
            "After against before, {} changes by {} ({limits}, p = {}, as if each run stood alone), from {before} and \
             {after} runs.",
            super::cut(&self.experiment.plan.metric.name),
            signed(change.percent),
            p_value(look.p),
        ))
    }

    /// The same program, the same machine, two times: what that can show and what not.
    pub(super) fn said(&self) -> Said {
        let shows = match self.look() {
            Some(look) if look.p <= 0.05 => {
                "The two recordings are further apart than the runs within each are: after is not like before."
            }
            Some(Look { change: Some(Change { low: Some(_), high: Some(_), .. }), .. }) => {
                "The two recordings are not further apart than the runs within each are; a difference within the \
                 interval may still be there."
            }
            _ => {
                "There are too few runs to tell the two recordings from each other: record ten on each side."
            }
        };
        Said {
            shows: shows.to_owned(),
            cannot: [
                "Why. All runs of one recording came before all of the other, so whatever else changed in between is \
                 in the numbers too: data, neighbours, temperature, what a boot puts where, the command itself and its \
                 libraries.",
                "How sure. Runs of one recording resemble each other more than they resemble those of another day, \
                 so the interval is narrower than the truth. Two recordings of the same state, on two days, show by \
                 how much.",
                "Which difference it is. The list below says what differs and what checks think of it.",
            ],
            next: self.next(),
        }
    }

    fn next(&self) -> Vec<(String, Option<String>)> {
        let mut next = Vec::new();
        let workload = &self.experiment.plan.workload;
        let command = |words: Vec<String>| {
            let all: Vec<String> = words.into_iter().chain(["--".into()]).chain(workload.clone()).collect();
            Some(words::shell(&all))
        };
        let metric = words::metric_options(self.experiment.plan);
        let carried = self.states.map_or(0, |states| states.carried);
        if carried > 0 {
            let settings = words::counted(carried, "setting");
            let words = ["zenkai", "bisect", "--from", self.names[0]].map(str::to_owned);
            next.push((
                format!(
                    "Of what differs, {settings} can be changed while the machine runs. Turned back and forth in random \
                     order, they are put to the proof, on the machine as it is after:"
                ),
                command(words.into_iter().chain(metric.clone()).collect()),
            ));
        } else if let Some(states) = self.states {
            let why = if states.comparison.differences.is_empty() {
                "No difference is seen between the two states of the machine"
            } else {
                "Nothing of what differs can be turned back and forth while the machine runs"
            };
            next.push((format!("{why}, so nothing can be tested now."), None));
        }
        if let Some(others) = self.not_now() {
            // A label must be a plain name; that of a directory may be none.
            let plain =
                |name: &&str| name.len() < 50 && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '-');
            let again = format!("{}-again", Some(self.names[0]).filter(plain).unwrap_or("before"));
            let runs = self.runs()[0].max(4).to_string();
            let words = ["zenkai", "record", "--runs", &runs, "--label", &again].map(str::to_owned);
            next.push((
                format!(
                    "{others} cannot be changed while the machine runs. Go back to the state before (boot the old \
                     kernel, say), record a third time, and see which of the two it is like:"
                ),
                command(words.into_iter().chain(metric).collect()),
            ));
        }
        next
    }

    /// How many differences want a boot, other software or more.
    fn not_now(&self) -> Option<String> {
        let differences = &self.states?.comparison.differences;
        let others = differences.iter().filter(|difference| difference.changeable != Changeable::Now).count();
        (others > 0).then(|| words::counted(others, "difference"))
    }

    /// One row for each recording: letter, role, name, time, runs, machine.
    pub(super) fn rows(&self) -> Vec<Vec<String>> {
        let runs = self.runs();
        let row = |side: usize| {
            let machine = self.states.map(|states| crate::facts::headline(states.facts[side]));
            vec![
                ["A", "B"][side].to_owned(),
                self.experiment.arm(side).to_owned(),
                self.names[side].to_owned(),
                crate::utc(self.laid_down[side]),
                format!("{} runs", runs[side]),
                machine.unwrap_or_default(),
            ]
        };
        vec![row(0), row(1)]
    }
}

impl<'a> Experiment<'a> {
    /// A recording of one arm, as it is shown when it ends.
    pub fn recording(dir: &'a str, plan: &'a Plan, trials: &'a [Trial]) -> Self {
        Self {
            dir,
            plan,
            trials,
            comparisons: &[],
            explanations: &[],
            host: None,
            same: None,
            series: &[],
            confirmed: &[],
            notes: &[],
            apart: true,
        }
    }
}

/// A recording of one arm: its numbers.
pub fn recording(experiment: &Experiment) -> Vec<Block> {
    let mut blocks = vec![arms_table(experiment)];
    failures(experiment, &mut blocks);
    blocks
}

/// `zenkai.recording/1`: the numbers of one arm.
pub fn recording_json(experiment: &Experiment) -> Value {
    let mut value = side_json(experiment, 0);
    value["schema"] = json!("zenkai.recording/1");
    value["zenkai"] = json!(env!("CARGO_PKG_VERSION"));
    value["directory"] = json!(experiment.dir);
    value["metric"] = json!(experiment.plan.metric);
    value["better"] = json!(experiment.plan.rule.better);
    value["workload"] = json!(experiment.plan.workload);
    value
}

fn side_json(experiment: &Experiment, arm: usize) -> Value {
    let of_arm = experiment.of_arm(arm);
    json!({
        "runs": of_arm.trials,
        "failed": of_arm.failed,
        "discarded": of_arm.discarded,
        "median": of_arm.median(),
        "p95": of_arm.quantile(0.95),
    })
}

/// The report as text.
pub fn before_after(report: &BeforeAfter, detail: Detail) -> Vec<Block> {
    let experiment = &report.experiment;
    let sentence = experiment.comparisons.first().map(|found| words::sentence(experiment, found));
    let verdict = (Mark::Plain, "undecided".to_owned(), sentence.unwrap_or_default());
    let mut blocks = vec![Block::Verdicts(vec![verdict])];
    blocks.extend(report.reading().map(Block::Text));
    blocks.push(Block::Text(String::new()));
    blocks.push(Block::Table(report.rows()));
    blocks.push(arms_table(experiment));
    let note = |note: &String| Block::Text(format!("Note: {}.", note.trim_end_matches('.')));
    blocks.extend(report.warnings.iter().map(note));
    let said = report.said();
    blocks.push(Block::Heading("What this shows, and what it cannot".to_owned()));
    blocks.push(Block::Item { title: "It shows".to_owned(), lines: vec![said.shows] });
    let cannot = said.cannot.map(str::to_owned).to_vec();
    blocks.push(Block::Item { title: "It cannot show".to_owned(), lines: cannot });
    for explanation in experiment.explanations {
        explained(experiment, explanation, &mut blocks);
        if !explanation.metrics.is_empty() {
            secondary(experiment, explanation, &mut blocks);
        }
    }
    if let Some(states) = report.states {
        blocks.push(Block::Heading("What differs between the two states of the machine".to_owned()));
        // Its first block says which machines these are, which stands above.
        blocks.extend(crate::difference(states.facts, states.comparison, 0, detail).into_iter().skip(1));
    }
    if !said.next.is_empty() {
        blocks.push(Block::Heading("Which difference is it?".to_owned()));
        for (sentence, command) in said.next {
            blocks.push(Block::Text(sentence));
            blocks.extend(command.map(|command| Block::Verbatim(format!("  {command}"))));
        }
    }
    if !experiment.notes.is_empty() {
        blocks.push(Block::Text(String::new()));
        blocks.extend(experiment.notes.iter().map(note));
    }
    blocks
}

/// `zenkai.before-after/1`: the verdict is always "undecided", `proof` always false.
pub fn before_after_json(report: &BeforeAfter) -> serde_json::Result<Value> {
    let experiment = &report.experiment;
    let look = report.look();
    let change = look.and_then(|look| look.change);
    let said = report.said();
    let sides: Vec<Value> = (0..2)
        .map(|side| {
            let mut value = side_json(experiment, side);
            value["name"] = json!(report.names[side]);
            value["laid_down_unix_s"] = json!(report.laid_down[side]);
            value
        })
        .collect();
    let sentence = |found: &Comparison| words::sentence(experiment, found);
    let differences = report.states.map(|states| crate::difference_json(states.comparison)).transpose()?;
    Ok(json!({
        "schema": "zenkai.before-after/1",
        "zenkai": env!("CARGO_PKG_VERSION"),
        "verdict": "undecided",
        "proof": false,
        "sentence": experiment.comparisons.first().map(sentence),
        "shows": said.shows,
        "cannot_show": said.cannot,
        "effect": change.map(|change| change.percent),
        "interval": change.map(|change| [change.low, change.high]),
        "p": look.map(|look| look.p),
        "metric": experiment.plan.metric,
        "better": experiment.plan.rule.better,
        "workload": experiment.plan.workload,
        "before": sides[0],
        "after": sides[1],
        "explanation": serde_json::to_value(experiment.explanations.first())?,
        "diff": differences,
        "toggles": report.states.map(|states| states.carried),
        "next": said.next.iter().filter_map(|(_, command)| command.as_ref()).collect::<Vec<_>>(),
        "notes": report.warnings.iter().chain(experiment.notes).collect::<Vec<_>>(),
    }))
}
