//! Two machines side by side, as a report.

use serde::Serialize;
use serde_json::Value;
use zenkai_diagnose::difference::{
    Changeable, Comparison, Difference, NotCompared, Reading, Slower, Suspicion, Which,
};
use zenkai_facts::Facts;

use crate::experiment::words::{beginning, counted, shell};
use crate::{Block, Detail, Field};

/// So many differences are shown unless all are asked for.
const SHOWN: usize = 10;
/// So many facts behind a finding are shown unless all are asked for.
const FACTS: usize = 4;
/// A longer value is cut in the short report.
const VALUE: usize = 60;

/// The report of a comparison. `carried` is how many values `zenkai settings` could set.
pub fn difference(facts: [&Facts; 2], comparison: &Comparison, carried: usize, detail: Detail) -> Vec<Block> {
    let named = [("A", &comparison.a, facts[0]), ("B", &comparison.b, facts[1])];
    let head = named
        .map(|(letter, name, facts)| vec![letter.to_owned(), name.clone(), crate::facts::headline(facts)]);
    let mut blocks = vec![Block::Table(head.to_vec())];
    blocks.extend(comparison.notes.iter().map(|note| Block::Text(format!("Note: {note}."))));
    blocks.push(Block::Heading(count(comparison)));
    let limit = if detail == Detail::Everything { usize::MAX } else { SHOWN };
    let shown: Vec<&Difference> = comparison.differences.iter().take(limit).collect();
    let is_finding = |difference: &&&Difference| difference.slower.is_some();
    blocks.extend(shown.iter().filter(is_finding).map(|found| finding(found, detail)));
    for (heading, suspicion) in CLASSES {
        let rows: Vec<Vec<String>> = shown
            .iter()
            .filter(|difference| difference.slower.is_none() && difference.suspicion == suspicion)
            .map(|difference| row(difference, detail))
            .collect();
        if !rows.is_empty() {
            blocks.push(Block::Heading(heading.to_owned()));
            blocks.push(Block::Table(rows));
        }
    }
    if detail == Detail::Everything {
        not_compared(comparison, &mut blocks);
    }
    blocks.push(Block::Text(String::new()));
    rest(comparison, shown.len(), detail, &mut blocks);
    if carried > 0 {
        let Like { sentence, command } = like(comparison, carried);
        blocks.push(Block::Text(format!("{sentence}: `{command}` writes a profile.")));
    }
    blocks
}

/// How to make the second machine like the first one.
pub(crate) struct Like {
    pub(crate) sentence: String,
    pub(crate) command: String,
}

pub(crate) fn like(comparison: &Comparison, carried: usize) -> Like {
    let mut words = ["zenkai", "settings", "--from", &comparison.a].map(str::to_owned).to_vec();
    if comparison.b != "now" {
        words.extend(["--to".to_owned(), comparison.b.clone()]);
    }
    Like {
        sentence: format!(
            "To make B like A as far as that can be done now ({})",
            counted(carried, "setting")
        ),
        command: shell(&words),
    }
}

pub(crate) const CLASSES: [(&str, Suspicion); 4] = [
    ("What checks look at, without a fault on one side only", Suspicion::Known),
    ("Other settings that can be changed now", Suspicion::Setting),
    ("Other differences", Suspicion::Other),
    ("What follows from the above or does not apply on one side", Suspicion::Derived),
];

pub(crate) fn count(comparison: &Comparison) -> String {
    let values = comparison.compared;
    match comparison.differences.len() {
        0 => format!("No differences in {values} values"),
        1 => format!("1 difference in {values} values"),
        count => format!("{count} differences in {values} values, most suspicious first"),
    }
}

fn finding(difference: &Difference, detail: Detail) -> Block {
    let Some(slower) = &difference.slower else { return Block::Text(String::new()) };
    let here = if slower.side == Which::A { "A" } else { "B" };
    let mut fields = vec![Field { label: "slower", lines: vec![likely(difference, slower)] }];
    if !difference.facts.is_empty() {
        let line = |fact: &Difference| format!("{}: {}", named(fact), values(fact, detail));
        let limit = if detail == Detail::Everything { usize::MAX } else { FACTS };
        let mut lines: Vec<String> = difference.facts.iter().take(limit).map(line).collect();
        if difference.facts.len() > limit {
            lines.push(format!("and {} more", difference.facts.len() - limit));
        }
        fields.push(Field { label: "differs", lines });
    }
    fields.push(Field { label: "effect", lines: vec![slower.effect.to_owned()] });
    let how = how_to_change(difference.changeable).to_owned();
    let change = std::iter::once(how).chain(slower.remedy.iter().cloned());
    fields.push(Field { label: "change", lines: change.collect() });
    let subject =
        if difference.subject.is_empty() { String::new() } else { format!(" · {}", difference.subject) };
    Block::Finding {
        impact: slower.impact,
        title: format!("{}{subject} · only on {here}", slower.check),
        what: slower.why.clone(),
        fields,
    }
}

/// Which side is the slower one, as far as checks can say.
pub(crate) fn likely(difference: &Difference, slower: &Slower) -> String {
    let (here, there) = match slower.side {
        Which::A => ("A", "B"),
        Which::B => ("B", "A"),
    };
    let word = if difference.suspicion == Suspicion::FindingUnjudged { "perhaps" } else { "likely" };
    format!("{word} {here}; {there}: {}", slower.other)
}

fn row(difference: &Difference, detail: Detail) -> Vec<String> {
    let line = format!(
        "{}: {} ({})",
        named(difference),
        values(difference, detail),
        changeable(difference.changeable)
    );
    vec![difference.group.clone(), line]
}

/// What it is, and whose.
pub(crate) fn named(difference: &Difference) -> String {
    match difference.subject.as_str() {
        "" => difference.what.clone(),
        subject => format!("{}, {subject}", difference.what),
    }
}

fn values(difference: &Difference, detail: Detail) -> String {
    format!("{} ↔ {}", cut(&side(&difference.a), detail), cut(&side(&difference.b), detail))
}

/// A value, or why there is none.
pub(crate) fn side(reading: &Reading) -> String {
    let text = reading.value.as_ref().or(reading.unavailable.as_ref());
    text.map_or("none".to_owned(), Clone::clone)
}

fn cut(text: &str, detail: Detail) -> String {
    if detail == Detail::Everything { text.to_owned() } else { beginning(text, VALUE) }
}

/// How it can be changed, in a few words.
pub(crate) fn changeable(how: Changeable) -> &'static str {
    match how {
        Changeable::Now => "now",
        Changeable::Reboot => "at the next boot",
        Changeable::Firmware => "firmware",
        Changeable::Software => "other software",
        Changeable::Hypervisor => "hypervisor",
        Changeable::Hardware => "hardware",
    }
}

/// The same as it stands before a remedy.
pub(crate) fn how_to_change(how: Changeable) -> &'static str {
    if how == Changeable::Now { "can be changed now" } else { changeable(how) }
}

fn not_compared(comparison: &Comparison, blocks: &mut Vec<Block>) {
    if comparison.not_compared.is_empty() {
        return;
    }
    blocks.push(Block::Heading("Could not be compared".to_owned()));
    for NotCompared { side, reason, paths } in &comparison.not_compared {
        let letter = if *side == Which::A { "A" } else { "B" };
        blocks.push(Block::Item { title: format!("on {letter}: {reason}"), lines: vec![paths.join(", ")] });
    }
}

fn rest(comparison: &Comparison, shown: usize, detail: Detail, blocks: &mut Vec<Block>) {
    let mut sentences = Vec::new();
    let more = comparison.differences.len() - shown;
    if more > 0 {
        sentences.push(counted(more, "more difference"));
    }
    let missing: usize = comparison.not_compared.iter().map(|gap| gap.paths.len()).sum();
    if missing > 0 && detail == Detail::Findings {
        sentences.push(format!("{} that only one side tells", counted(missing, "value")));
    }
    if !sentences.is_empty() {
        blocks.push(Block::Text(format!("{}: --all lists them.", sentences.join(" and "))));
    }
    blocks.push(Block::Text(compared(comparison)));
}

/// What was looked at.
pub(crate) fn compared(comparison: &Comparison) -> String {
    format!(
        "Compared are what zenkai knows of both and the {} sysctls that were read on both; what changes by itself \
         (counters, load, temperatures, free memory) is left out.",
        comparison.sysctls
    )
}

#[derive(Serialize)]
struct DiffJson<'c> {
    schema: &'static str,
    zenkai: &'static str,
    #[serde(flatten)]
    comparison: &'c Comparison,
}

/// `zenkai.diff/1`.
pub fn difference_json(comparison: &Comparison) -> serde_json::Result<Value> {
    serde_json::to_value(DiffJson { schema: "zenkai.diff/1", zenkai: env!("CARGO_PKG_VERSION"), comparison })
}
