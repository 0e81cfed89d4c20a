//! A diagnosis as a report.

use std::collections::BTreeMap;

use zenkai_diagnose::{Diagnosis, Evidence, Finding, Remedy, Reported, Unjudged, UnjudgedCheck};
use zenkai_facts::Facts;

use crate::{Block, Field, Mark};

/// How much of a diagnosis to show.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Detail {
    /// Findings, and a count of the rest.
    Findings,
    /// Every check, also those that passed.
    Everything,
}

/// More settings than this are counted instead of listed: 256 CPUs make 256 of them.
const SETTINGS_SHOWN: usize = 4;

/// The report of a diagnosis: the verdicts, the findings worst first, and what could not be judged.
pub fn doctor(facts: &Facts, diagnosis: &Diagnosis, detail: Detail) -> Vec<Block> {
    let mut blocks = vec![Block::Text(crate::facts::headline(facts)), Block::Text(String::new())];
    blocks.push(verdicts(diagnosis));
    blocks.extend(crate::probe::probe(facts));
    blocks.push(Block::Heading(count(diagnosis)));
    blocks.extend(diagnosis.findings.iter().map(finding));
    if !diagnosis.accepted.is_empty() {
        blocks.push(Block::Heading("Accepted by this site's policy".to_owned()));
        let rows =
            diagnosis.accepted.iter().map(|exempt| vec![exempt.check.to_owned(), exempt.reason.clone()]);
        blocks.push(Block::Table(rows.collect()));
    }
    unjudged(diagnosis, &mut blocks);
    rest(diagnosis, detail, &mut blocks);
    blocks
}

fn count(diagnosis: &Diagnosis) -> String {
    let found = match diagnosis.findings.len() {
        0 => "No findings".to_owned(),
        1 => "1 finding".to_owned(),
        count => format!("{count} findings, worst first"),
    };
    match diagnosis.left_out {
        0 => found,
        smaller => format!("{found} ({smaller} smaller not shown)"),
    }
}

fn verdicts(diagnosis: &Diagnosis) -> Block {
    let rows = diagnosis.verdicts.iter().map(|verdict| {
        let (name, sentence) = verdict.sentence.split_once(": ").unwrap_or(("", &verdict.sentence));
        let mark = match (verdict.worst, verdict.judged) {
            (Some(impact), _) => Mark::Bad(impact),
            (None, 0) => Mark::Plain,
            (None, _) => Mark::Good,
        };
        (mark, name.to_owned(), sentence.to_owned())
    });
    Block::Verdicts(rows.collect())
}

fn finding(reported: &Reported) -> Block {
    let Reported { check, finding, impact, effect, risk, source, .. } = reported;
    let mut fields = vec![Field { label: "evidence", lines: evidence(finding) }];
    fields.push(Field { label: "effect", lines: vec![(*effect).to_owned()] });
    if finding.remedy != Remedy::None {
        fields.push(Field { label: "fix", lines: remedy(check, &finding.remedy) });
        fields.push(Field { label: "risk", lines: vec![(*risk).to_owned()] });
    }
    fields.push(Field { label: "source", lines: vec![(*source).to_owned()] });
    Block::Finding {
        impact: *impact,
        title: format!("{check} · {}", finding.subject),
        what: finding.what.clone(),
        fields,
    }
}

fn evidence(finding: &Finding) -> Vec<String> {
    let line = |Evidence { source, value, expected, .. }: &Evidence| match expected {
        Some(expected) => format!("{source} = {value}, expected {expected}"),
        None => format!("{source} = {value}"),
    };
    let mut lines: Vec<String> = finding.evidence.iter().map(line).collect();
    if finding.others > 0 {
        lines.push(format!("and {} more alike", finding.others));
    }
    lines
}

fn remedy(check: &str, remedy: &Remedy) -> Vec<String> {
    match remedy {
        Remedy::Set(settings) => {
            let mut lines: Vec<String> =
                settings.iter().take(SETTINGS_SHOWN).map(ToString::to_string).collect();
            if settings.len() > SETTINGS_SHOWN {
                lines.push(format!("and {} more alike", settings.len() - SETTINGS_SHOWN));
            }
            lines.push(format!("or: zenkai doctor --fix {check}"));
            lines
        }
        Remedy::Do(text) => vec![text.clone()],
        Remedy::Firmware(text) => vec![format!("in the firmware: {text}")],
        Remedy::Hardware(text) => vec![format!("hardware: {text}")],
        Remedy::Hypervisor(text) => vec![format!("on the hypervisor: {text}")],
        Remedy::None => Vec::new(),
    }
}

/// Tells a missing thing once, with all the checks that wanted it.
fn unjudged(diagnosis: &Diagnosis, blocks: &mut Vec<Block>) {
    let mut missing: Vec<(&Unjudged, Vec<&str>)> = Vec::new();
    let mut places = BTreeMap::new();
    for UnjudgedCheck { check, missing: wanted } in &diagnosis.unjudged {
        let place = *places.entry(wanted).or_insert(missing.len());
        match missing.get_mut(place) {
            Some((_, checks)) => checks.push(check),
            None => missing.push((wanted, vec![check])),
        }
    }
    let (not_asked, missing): (Vec<_>, Vec<_>) =
        missing.into_iter().partition(|(wanted, _)| wanted.is_not_asked());
    if !missing.is_empty() {
        blocks.push(Block::Heading("Could not be judged".to_owned()));
    }
    for (Unjudged { source, reason, remedy, .. }, checks) in missing {
        let lines = vec![format!("to judge it: {remedy}"), format!("wanted by {}", checks.join(", "))];
        blocks.push(Block::Item { title: format!("{source}: {reason}"), lines });
    }
    if !not_asked.is_empty() {
        blocks.push(Block::Heading("Not asked for".to_owned()));
    }
    for (Unjudged { reason, .. }, checks) in not_asked {
        let lines = vec![format!("{} checks wait for it: {}", checks.len(), checks.join(", "))];
        blocks.push(Block::Item { title: reason.clone(), lines });
    }
}

fn rest(diagnosis: &Diagnosis, detail: Detail, blocks: &mut Vec<Block>) {
    let (passed, exempt) = (diagnosis.passed.len(), diagnosis.not_applicable.len());
    if detail == Detail::Findings {
        blocks.push(Block::Text(String::new()));
        blocks.push(Block::Text(format!(
            "{passed} checks passed, {exempt} do not apply here (--all lists them). \
             `zenkai explain CHECK` tells more about one."
        )));
        return;
    }
    blocks.push(Block::Heading(format!("Passed ({passed})")));
    blocks.push(Block::Text(diagnosis.passed.join(", ")));
    blocks.push(Block::Heading(format!("Does not apply here ({exempt})")));
    let rows =
        diagnosis.not_applicable.iter().map(|exempt| vec![exempt.check.to_owned(), exempt.reason.clone()]);
    blocks.push(Block::Table(rows.collect()));
}
