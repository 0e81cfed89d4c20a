//! An explanation in sentences.

use super::{ChannelShift, Explanation, Role, Split};
use crate::experiment::{Comparison, Plan};
use crate::quantity::{of_channel, signed};
use crate::statistics::verdict::Better;

/// Factors and channels named in sentences; the tables have the others.
const NAMED: usize = 3;
/// A factor is named from this share of the effect on.
const WORTH_NAMING: f64 = 0.1;
/// Beyond twice or half the metric (in log units) factors are told as such, and not as points of per cent.
const LARGE: f64 = std::f64::consts::LN_2;

pub(super) fn sentences(plan: &Plan, comparison: &Comparison, explanation: &Explanation) -> Vec<String> {
    let mut sentences = effect(plan, explanation);
    let more = "More pairs would tell more (--fixed --pairs 20)";
    sentences.extend(channels(explanation, "changed (at most one in ten of these by chance)", more));
    if let Some(lines) = &explanation.lines
        && lines.spread.p <= 0.01
        && let Some(ratio) = lines.spread.ratio
    {
        let word = if ratio > 1.0 { "more" } else { "less" };
        sentences.push(format!(
            "`{}` varies {word} from trial to trial: {ratio:.1} times the spread.",
            arm(plan, comparison)
        ));
    }
    sentences
}

/// The same where nobody drew the order: a channel that differs may do so for any reason.
pub(super) fn sentences_apart(plan: &Plan, explanation: &Explanation) -> Vec<String> {
    let mut sentences = effect(plan, explanation);
    let more = "More runs on each side would tell more";
    sentences.extend(channels(explanation, "are not the same before and after, for whatever reason", more));
    sentences
}

/// What accounts for a change of the metric, if it is one.
fn effect(plan: &Plan, explanation: &Explanation) -> Vec<String> {
    if !explanation.is_change {
        return Vec::new();
    }
    let mut sentences: Vec<String> =
        explanation.splits.iter().filter_map(|split| factors(plan, split)).collect();
    let explains: Vec<String> = of(explanation, Role::Explains).take(NAMED).map(change).collect();
    if !explains.is_empty() {
        sentences.push(format!("Goes with it from trial to trial too: {}.", explains.join(", ")));
    }
    sentences
}

fn arm<'p>(plan: &'p Plan, comparison: &Comparison) -> &'p str {
    plan.arms.get(comparison.arm).map_or("B", |arm| &arm.name)
}

/// "9.0 % less time: the clock explains 8.1 of it, CPU share 0.6; the rest is 0.3."
fn factors(plan: &Plan, split: &Split) -> Option<String> {
    let total = plan.rule.better.percent(split.theta);
    if split.theta.abs() > LARGE {
        return times(plan, split);
    }
    let direction = match (plan.rule.better, total < 0.0) {
        (Better::Lower, true) => "less",
        (_, false) => "more",
        (Better::Higher, true) => "fewer",
    };
    let (rest, terms) = split.terms.split_last()?;
    let named: Vec<String> = terms
        .iter()
        .filter(|term| term.share.is_some_and(|share| share.abs() >= WORTH_NAMING))
        .take(NAMED)
        .filter_map(|term| Some(format!("{} explains {:.1}", term.name, term.share? * total.abs())))
        .collect();
    if named.is_empty() {
        return None;
    }
    Some(format!(
        "Of {:.1} % {direction} {}, {}, the rest {:.1} (points of per cent). {}.",
        total.abs(),
        plan.metric.name,
        named.join(", "),
        rest.share? * total.abs() + 0.0,
        capital(split.identity),
    ))
}

/// "Time is 8.3 times what it was: requests needed × 53, latency × 0.15; the rest × 1.0.": points of per cent of a large
/// change mislead, since factors multiply.
fn times(plan: &Plan, split: &Split) -> Option<String> {
    let ratio = |theta: f64| {
        let ratio = 1.0 + plan.rule.better.percent(theta) / 100.0;
        if ratio < 0.1 { format!("{ratio:.3}") } else { format!("{ratio:.1}") }
    };
    let (rest, terms) = split.terms.split_last()?;
    let named = terms.iter().filter(|term| term.share.is_some_and(|share| share.abs() >= WORTH_NAMING));
    let named: Vec<String> =
        named.take(NAMED).map(|term| format!("{} × {}", term.name, ratio(term.theta))).collect();
    if named.is_empty() {
        return None;
    }
    Some(format!(
        "{} is {} times what it was: {}, the rest × {}. {}.",
        capital(&plan.metric.name),
        ratio(split.theta),
        named.join(", "),
        ratio(rest.theta),
        capital(split.identity),
    ))
}

fn capital(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map_or_else(String::new, |first| first.to_uppercase().chain(letters).collect())
}

fn of(explanation: &Explanation, role: Role) -> impl Iterator<Item = &ChannelShift> {
    explanation.channels.iter().filter(move |channel| channel.role == role)
}

fn change(channel: &ChannelShift) -> String {
    let name = if channel.about.words.is_empty() { &channel.name } else { &channel.about.words };
    let show = |value| of_channel(&channel.name, &channel.about.unit, value);
    let change = channel.percent.map_or_else(|| format!("{} → {}", show(channel.a), show(channel.b)), signed);
    format!("{name} ({change})")
}

/// How many channels `changed`, in these words.
fn channels(explanation: &Explanation, changed: &str, more: &str) -> Option<String> {
    let tested = explanation.channels.len();
    let count = of(explanation, Role::AlsoChanged).count() + of(explanation, Role::Explains).count();
    match (tested, count) {
        (0, _) => None,
        (_, 0) if explanation.blind => Some(format!(
            "With {} pairs, none of {tested} channels can be told from chance. {more}.",
            explanation.pairs
        )),
        (_, 0) => Some(format!("Nothing says that any of {tested} channels changed.")),
        _ => {
            let also: Vec<String> = of(explanation, Role::AlsoChanged).take(NAMED).map(change).collect();
            let also = if also.is_empty() { String::new() } else { format!("; also: {}", also.join(", ")) };
            Some(format!("{count} of {tested} channels {changed}{also}."))
        }
    }
}
