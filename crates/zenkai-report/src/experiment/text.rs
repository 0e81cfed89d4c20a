//! An experiment as text: the verdict first.

use std::collections::{BTreeMap, BTreeSet};

use zenkai_diagnose::Impact;
use zenkai_measure::experiment::{Arm, Comparison, Status, Trial};
use zenkai_measure::explain::{Explanation, Missing, Role};
use zenkai_measure::statistics::verdict::{Better, Look, Verdict};

use super::words::{self, interval, p_value, quantity, signed};
use super::{Experiment, rows};
use crate::{Block, Mark};

/// Channels listed in text; JSON and HTML have all.
const CHANNELS_SHOWN: usize = 12;
/// Trials without a number that are listed in text; JSON and HTML have all.
const FAILURES_SHOWN: usize = 12;

/// The whole report of an experiment.
pub fn experiment(experiment: &Experiment) -> Vec<Block> {
    let mut blocks = verdicts(experiment);
    blocks.push(Block::Text(planned(experiment)));
    blocks.push(arms_table(experiment));
    for comparison in experiment.comparisons {
        if let Some(explanation) = experiment.explanation(comparison.arm) {
            secondary(experiment, explanation, &mut blocks);
            explained(experiment, explanation, &mut blocks);
        }
    }
    settings(experiment, &mut blocks);
    failures(experiment, &mut blocks);
    blocks.push(Block::Heading("How far to trust it".to_owned()));
    blocks.push(Block::Text(words::same(experiment)));
    blocks.extend(words::spent(experiment).map(Block::Text));
    blocks.push(Block::Heading("How to repeat".to_owned()));
    blocks.push(Block::Verbatim(format!("  {}", words::repeat(experiment.plan))));
    blocks.push(Block::Verbatim(format!(
        "  {}",
        words::shell(&["zenkai".into(), "analyze".into(), experiment.dir.into()])
    )));
    blocks.extend(experiment.notes.iter().map(|note| Block::Text(format!("Note: {note}"))));
    blocks
}

/// What `zenkai analyze` says: the verdicts, and every look at the trials.
pub fn analysis(experiment: &Experiment) -> Vec<Block> {
    let mut blocks = verdicts(experiment);
    for comparison in experiment.comparisons {
        blocks.push(Block::Heading(format!(
            "Looks: {} against {}",
            experiment.arm(comparison.arm),
            experiment.arm(0)
        )));
        let head = ["pairs", "p", "level", "change", "interval %", "says"].map(str::to_owned).to_vec();
        let rows = comparison.judgement.looks.iter().map(look_row);
        blocks.push(Block::Table(std::iter::once(head).chain(rows).collect()));
    }
    blocks.push(Block::Text(String::new()));
    blocks.push(Block::Text(format!(
        "Recomputed from the plan and {} trials of {}; nothing else was read.",
        experiment.trials.len(),
        experiment.dir
    )));
    blocks
}

fn look_row(look: &Look) -> Vec<String> {
    let change = look.change;
    vec![
        look.pairs.to_string(),
        p_value(look.p),
        format!("{:.4}", look.level),
        change.map_or("–".to_owned(), |change| signed(change.percent)),
        change.map_or("–".to_owned(), |change| interval(change.low, change.high)),
        words::word(look.verdict).to_owned(),
    ]
}

fn verdicts(experiment: &Experiment) -> Vec<Block> {
    let mark = |comparison: &Comparison| match comparison.judgement.verdict {
        Verdict::Undecided => Mark::Plain,
        Verdict::Equal => Mark::Good,
        Verdict::Different => {
            let worse = comparison
                .judgement
                .looks
                .last()
                .and_then(|look| look.change)
                .is_none_or(|change| experiment.plan.rule.better.percent(1.0) * change.percent > 0.0);
            if worse { Mark::Bad(Impact::Moderate) } else { Mark::Good }
        }
    };
    let row = |comparison: &Comparison| {
        let word = words::word(comparison.judgement.verdict).to_owned();
        (mark(comparison), word, words::sentence(experiment, comparison))
    };
    let mut blocks = vec![Block::Verdicts(experiment.comparisons.iter().map(row).collect())];
    let idle = experiment.plan.arms.iter().filter(|arm| arm.is_idle() && !experiment.plan.aa);
    blocks.extend(idle.map(|arm| Block::Text(format!("Warning: {} {}.", arm.name, super::IDLE_ARM))));
    let own = super::confirmed(experiment);
    let sentences = own.iter().chain(experiment.confirmed).map(|confirmed| confirmed.sentence.clone());
    blocks.extend(sentences.map(Block::Text));
    if experiment.plan.aa {
        blocks.push(Block::Text(
            "Both arms are the same on purpose: anything but \"different\" is as it should be.".to_owned(),
        ));
    }
    blocks.extend(
        experiment
            .comparisons
            .iter()
            .filter_map(|comparison| words::reading(experiment, comparison))
            .map(Block::Text),
    );
    let pairs = experiment.comparisons.iter().filter_map(|found| words::energy(experiment, found.arm));
    blocks.extend(pairs.map(Block::Text));
    blocks
}

/// What was laid down before the first trial, in a sentence.
fn planned(experiment: &Experiment) -> String {
    let plan = experiment.plan;
    let better = match plan.rule.better {
        Better::Lower => "lower",
        Better::Higher => "higher",
    };
    format!(
        "Metric {}, {better} is better; laid down {} with at most {} pairs of trials, seed {}.",
        super::cut(&plan.metric.name),
        crate::utc(plan.created_unix_s),
        plan.rule.looks.last().copied().unwrap_or(0),
        plan.order_seed,
    )
}

pub(super) fn arms_table(experiment: &Experiment) -> Block {
    let unit = &experiment.plan.metric.unit;
    let head = ["arm", "trials", "failed", "median", "p95", "spread"].map(str::to_owned).to_vec();
    let row = |(index, _): (usize, &Arm)| {
        let of_arm = experiment.of_arm(index);
        let number = |value: Option<f64>| value.map_or("–".to_owned(), |value| quantity(value, unit));
        let spread = of_arm.quantile(0.75).zip(of_arm.quantile(0.25)).zip(of_arm.median());
        let spread = spread.filter(|(_, middle)| *middle > 0.0);
        let spread = spread.map_or("–".to_owned(), |((upper, lower), middle)| {
            format!("{:.1} %", 100.0 * (upper - lower) / middle)
        });
        vec![
            experiment.short(index),
            of_arm.trials.to_string(),
            of_arm.failed.to_string(),
            number(of_arm.median()),
            number(of_arm.quantile(0.95)),
            spread,
        ]
    };
    let rows = experiment.plan.arms.iter().enumerate().map(row);
    Block::Table(std::iter::once(vec![String::new()]).chain(std::iter::once(head)).chain(rows).collect())
}

pub(super) fn secondary(experiment: &Experiment, explanation: &Explanation, blocks: &mut Vec<Block>) {
    let name = experiment.short(explanation.arm);
    let heading =
        if experiment.apart { "The other numbers".to_owned() } else { format!("{name}: the other numbers") };
    blocks.push(Block::Heading(heading));
    let row = |[name, _, change, limits, p]: [String; 5]| vec![name, change, limits, format!("p = {p}")];
    blocks.push(Block::Table(rows::numbers(explanation).into_iter().map(row).collect()));
    blocks.extend(rows::carries_over(explanation).map(|text| Block::Text(format!("Warning: {text}"))));
}

pub(super) fn explained(experiment: &Experiment, explanation: &Explanation, blocks: &mut Vec<Block>) {
    let name = experiment.short(explanation.arm);
    let heading = if experiment.apart {
        "What goes with it (an explanation, not proof)".to_owned()
    } else {
        format!("{name}: what explains it (an explanation, not proof)")
    };
    blocks.push(Block::Heading(heading));
    blocks.extend(explanation.sentences.iter().cloned().map(Block::Text));
    let changed = explanation.channels.iter().filter(|channel| channel.role != Role::NotChanged);
    let rows: Vec<Vec<String>> = changed
        .take(CHANNELS_SHOWN)
        .map(|channel| {
            let show = |value: f64| words::of_channel(&channel.name, &channel.about.unit, value);
            vec![
                channel.name.clone(),
                format!("{} → {}", show(channel.a), show(channel.b)),
                channel.percent.map_or(String::new(), signed),
                format!("p = {} (BH)", p_value(channel.corrected)),
                if channel.role == Role::Explains { "explains" } else { "also changed" }.to_owned(),
            ]
        })
        .collect();
    if !rows.is_empty() {
        blocks.push(Block::Table(rows));
    }
    blocks.extend(rows::no_channels(explanation).map(|text| Block::Text(text.to_owned())));
    if !explanation.missing.is_empty() {
        blocks.push(Block::Text(not_judged(&explanation.missing)));
    }
}

/// How many channels of which groups; each with its reason is in JSON and HTML.
fn not_judged(missing: &[Missing]) -> String {
    if let [Missing { name, reason }] = missing {
        return format!("Could not be judged: {name} ({reason}).");
    }
    let mut groups: BTreeMap<&str, usize> = BTreeMap::new();
    for name in missing.iter().map(|missing| missing.name.as_str()) {
        *groups.entry(name.split('.').next().unwrap_or(name)).or_default() += 1;
    }
    let groups: Vec<String> = groups.into_iter().map(|(group, count)| format!("{group} {count}")).collect();
    format!(
        "{} channels could not be judged: {} (the page and the JSON say why).",
        missing.len(),
        groups.join(", ")
    )
}

fn settings(experiment: &Experiment, blocks: &mut Vec<Block>) {
    blocks.push(Block::Heading("What each arm sets".to_owned()));
    for arm in &experiment.plan.arms {
        let set = rows::settings(arm).into_iter().map(|[what, from, to]| format!("{what}: {from} → {to}"));
        let mut lines: Vec<String> = set.chain(rows::sets_nothing(arm).map(str::to_owned)).collect();
        if !arm.command.is_empty() {
            lines.push(format!("runs {}", words::shell(&arm.command)));
        }
        blocks.push(Block::Item { title: rows::called(arm), lines });
    }
}

pub(super) fn failures(experiment: &Experiment, blocks: &mut Vec<Block>) {
    let without = rows::without_number(experiment);
    let count = without.len();
    let row = |(number, trial, what): (usize, &Trial, &str)| {
        let reason = trial.reason.as_deref().and_then(|reason| reason.lines().next()).unwrap_or_default();
        vec![format!("trial {number}"), experiment.short(trial.arm), what.to_owned(), reason.to_owned()]
    };
    let rows: Vec<Vec<String>> = without.into_iter().take(FAILURES_SHOWN).map(row).collect();
    if !rows.is_empty() {
        blocks.push(Block::Heading(
            "Trials that gave no number (a failed one counts as the worst of all)".to_owned(),
        ));
        blocks.push(Block::Table(rows));
        if count > FAILURES_SHOWN {
            blocks.push(Block::Text(format!("… and {} more.", count - FAILURES_SHOWN)));
        }
    }
    let spoilt: BTreeSet<(u32, u32)> = experiment
        .trials
        .iter()
        .filter(|trial| trial.status == Status::Discarded)
        .map(|trial| (trial.block, trial.attempt))
        .collect();
    if !spoilt.is_empty() {
        blocks.push(Block::Text(format!(
            "{} blocks of trials were spoilt from outside and drawn again; nothing of them counts.",
            spoilt.len()
        )));
    }
}
