//! An explanation in sentences.

use super::{Explanation, Role, Split};
use crate::experiment::{Comparison, Plan};
use crate::statistics::verdict::{Better, Verdict};

/// Factors and channels named in sentences; the tables have the others.
const NAMED: usize = 3;
/// A factor is named from this share of the effect on.
const WORTH_NAMING: f64 = 0.1;

pub(super) fn sentences(plan: &Plan, comparison: &Comparison, explanation: &Explanation) -> Vec<String> {
    let mut sentences = Vec::new();
    if comparison.judgement.verdict == Verdict::Different {
        sentences.extend(explanation.splits.iter().filter_map(|split| factors(plan, split)));
    }
    sentences.extend(together(explanation, comparison.judgement.verdict));
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

fn arm<'p>(plan: &'p Plan, comparison: &Comparison) -> &'p str {
    plan.arms.get(comparison.arm).map_or("B", |arm| &arm.name)
}

/// "9.0 % less time: the clock explains 8.1 of it, CPU share 0.6; the rest is 0.3."
fn factors(plan: &Plan, split: &Split) -> Option<String> {
    let total = plan.rule.better.percent(split.theta);
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

fn capital(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map_or_else(String::new, |first| first.to_uppercase().chain(letters).collect())
}

fn together(explanation: &Explanation, verdict: Verdict) -> Vec<String> {
    let of = |role: Role| explanation.channels.iter().filter(move |channel| channel.role == role);
    let change = |channel: &super::ChannelShift| {
        let name = if channel.about.words.is_empty() { &channel.name } else { &channel.about.words };
        match channel.percent {
            Some(percent) => format!("{name} ({percent:+.1} %)"),
            None => format!("{name} ({:.3} → {:.3} {})", channel.a, channel.b, channel.about.unit),
        }
    };
    let mut sentences = Vec::new();
    let explains: Vec<String> = of(Role::Explains).take(NAMED).map(change).collect();
    if !explains.is_empty() && verdict == Verdict::Different {
        sentences.push(format!("Goes with it from trial to trial too: {}.", explains.join(", ")));
    }
    let tested = explanation.channels.len();
    let changed = of(Role::AlsoChanged).count() + of(Role::Explains).count();
    match (tested, changed) {
        (0, _) => {}
        (_, 0) if explanation.blind => sentences.push(format!(
            "With {} pairs, none of {tested} channels can be told from chance. More pairs would tell more \
             (--fixed --pairs 20).",
            explanation.pairs
        )),
        (_, 0) => sentences.push(format!("Nothing says that any of {tested} channels changed.")),
        _ => {
            let also: Vec<String> = of(Role::AlsoChanged).take(NAMED).map(change).collect();
            let also = if also.is_empty() { String::new() } else { format!("; also: {}", also.join(", ")) };
            sentences.push(format!(
                "{changed} of {tested} channels changed (at most one in ten of these by chance){also}."
            ));
        }
    }
    sentences
}
