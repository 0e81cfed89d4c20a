//! What differs between two machines, or two states of one: a section, and the page of `zenkai diff`.

use zenkai_diagnose::Impact;
use zenkai_diagnose::difference::{Difference, Slower, Which};

use super::super::States;
use super::super::words::{beginning, counted};
use super::page::Page;
use super::sections::{folded, table};
use super::{document, section};
use crate::difference::{CLASSES, changeable, count, how_to_change, likely, named, side};

/// Rows drawn of one class; the rest is in the text and the JSON.
const MOST_ROWS: usize = 400;
/// Rows of a class that are open from the start.
const OPEN: usize = 15;
/// A longer value is cut.
const LONGEST: usize = 400;

/// `zenkai diff` as a page.
pub fn difference_html(states: &States) -> String {
    let comparison = states.comparison;
    let title = format!("{} against {} · zenkai", comparison.b, comparison.a);
    document(&title, |page| {
        section(page, "differences", "What differs", |page| {
            let row = |side: usize, letter: &str, name: &str| {
                [letter.to_owned(), name.to_owned(), crate::facts::headline(states.facts[side])]
            };
            let rows = [row(0, "A", &comparison.a), row(1, "B", &comparison.b)];
            table(page, &[("", false), ("", false), ("machine", false)], rows);
            difference(page, states);
            if states.carried > 0 {
                let like = crate::difference::like(comparison, states.carried);
                page.leaf("p", &[], &format!("{}, this writes a profile:", like.sentence));
                page.leaf("pre", &[], &like.command);
            }
        });
    })
}

/// The section's body: findings, then tables, most suspicious first.
pub(super) fn difference(page: &mut Page, states: &States) {
    let comparison = states.comparison;
    for note in &comparison.notes {
        page.leaf("p", &[("class", "warning")], &format!("{note}."));
    }
    page.leaf("p", &[], &format!("{}.", count(comparison)));
    let all = &comparison.differences;
    let found = all.iter().filter_map(|difference| Some((difference, difference.slower.as_ref()?)));
    for (difference, slower) in found.take(MOST_ROWS) {
        finding(page, difference, slower);
    }
    for (heading, suspicion) in CLASSES {
        let of_class: Vec<&Difference> = all
            .iter()
            .filter(|difference| difference.slower.is_none() && difference.suspicion == suspicion)
            .collect();
        class(page, heading, &of_class);
    }
    not_compared(page, states);
    page.leaf("p", &[("class", "quiet")], &crate::difference::compared(comparison));
}

fn finding(page: &mut Page, difference: &Difference, slower: &Slower) {
    let tone = match slower.impact {
        Impact::Large => "finding bad",
        Impact::Moderate => "finding warn",
        Impact::Small | Impact::Depends => "finding neutral",
    };
    let here = if slower.side == Which::A { "A" } else { "B" };
    page.el("div", &[("class", tone), ("data-check", slower.check)], |page| {
        page.leaf("span", &[("class", "word")], &format!("{} · only on {here}", slower.impact));
        let subject =
            if difference.subject.is_empty() { String::new() } else { format!(" · {}", difference.subject) };
        page.leaf("h3", &[], &format!("{}{subject}", slower.check));
        page.leaf("p", &[], &cut(&slower.why));
        let likely = likely(difference, slower);
        page.leaf("p", &[("class", "quiet")], &format!("Slower: {likely}. Effect: {}.", slower.effect));
        if !difference.facts.is_empty() {
            rows(page, &difference.facts.iter().take(MOST_ROWS).collect::<Vec<_>>());
        }
        page.leaf("p", &[], &format!("Change: {}.", how_to_change(difference.changeable)));
        // One each, so that a command can be copied as it is.
        for line in &slower.remedy {
            page.leaf("pre", &[], &cut(line));
        }
    });
}

fn class(page: &mut Page, heading: &str, differences: &[&Difference]) {
    if differences.is_empty() {
        return;
    }
    page.leaf("h3", &[], heading);
    let shown = &differences[..differences.len().min(MOST_ROWS)];
    let (open, more) = shown.split_at(shown.len().min(OPEN));
    rows(page, open);
    if !more.is_empty() {
        folded(page, &format!("{} more", more.len()), |page| rows(page, more));
    }
    if differences.len() > shown.len() {
        let text = format!("{} more are in `zenkai diff --all`.", differences.len() - shown.len());
        page.leaf("p", &[("class", "quiet")], &text);
    }
}

fn rows(page: &mut Page, differences: &[&Difference]) {
    let row = |difference: &&Difference| {
        [
            difference.group.clone(),
            cut(&named(difference)),
            cut(&side(&difference.a)),
            cut(&side(&difference.b)),
            changeable(difference.changeable).to_owned(),
        ]
    };
    let head = [("part", false), ("what", false), ("A", false), ("B", false), ("change", false)];
    page.el("div", &[("class", "differences")], |page| {
        table(page, &head, differences.iter().map(row));
    });
}

fn not_compared(page: &mut Page, states: &States) {
    let gaps = &states.comparison.not_compared;
    if gaps.is_empty() {
        return;
    }
    let total: usize = gaps.iter().map(|gap| gap.paths.len()).sum();
    let row = |gap: &zenkai_diagnose::difference::NotCompared| {
        let letter = if gap.side == Which::A { "A" } else { "B" };
        let paths: Vec<&str> = gap.paths.iter().take(MOST_ROWS).map(String::as_str).collect();
        let more = gap.paths.len() - paths.len();
        let more = if more > 0 { format!(", and {more} more") } else { String::new() };
        [letter.to_owned(), cut(&gap.reason), format!("{}{more}", paths.join(", "))]
    };
    folded(page, &format!("{} that only one side tells", counted(total, "value")), |page| {
        page.el("div", &[("class", "missing")], |page| {
            let head = [("not on", false), ("why", false), ("values", false)];
            table(page, &head, gaps.iter().take(MOST_ROWS).map(row));
        });
    });
}

fn cut(text: &str) -> String {
    beginning(text, LONGEST)
}
