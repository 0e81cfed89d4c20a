//! What `doctor --fix` says of each check before it tells what was changed.

use serde_json::{Value as Json, json};

use crate::Block;

/// A check that was to be fixed, or one of its findings.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FixNote {
    /// The check.
    pub check: String,
    /// What it found, or why it found nothing.
    pub what: String,
    /// What can be done about it.
    pub outcome: FixOutcome,
}

/// What can be done about a finding.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FixOutcome {
    /// zenkai can set it.
    Settable,
    /// It is left to a person, who does this.
    ByHand(String),
    /// There is nothing to fix.
    NotNeeded,
    /// Whether there is something to fix could not be told.
    NotJudged,
}

/// What is not told by the plan or the transaction.
pub fn fix_notes(notes: &[FixNote]) -> Vec<Block> {
    let item = |note: &FixNote| {
        let lines = match &note.outcome {
            FixOutcome::Settable => return None,
            FixOutcome::ByHand(text) => {
                vec!["zenkai cannot set this; it is left to you:".to_owned(), text.clone()]
            }
            FixOutcome::NotNeeded | FixOutcome::NotJudged => Vec::new(),
        };
        Some(Block::Item { title: format!("{}: {}", note.check, note.what), lines })
    };
    notes.iter().filter_map(item).collect()
}

/// Adds a list `checks` to a plan or a transaction in JSON.
pub fn fix_json(notes: &[FixNote], mut json: Json) -> Json {
    let row = |note: &FixNote| {
        let (outcome, left) = match &note.outcome {
            FixOutcome::Settable => ("settable", None),
            FixOutcome::ByHand(text) => ("left-to-you", Some(text)),
            FixOutcome::NotNeeded => ("nothing-to-fix", None),
            FixOutcome::NotJudged => ("not-judged", None),
        };
        json!({ "check": note.check, "what": note.what, "outcome": outcome, "left_to_you": left })
    };
    let rows: Vec<Json> = notes.iter().map(row).collect();
    if let Some(fields) = json.as_object_mut() {
        fields.insert("checks".to_owned(), rows.into());
    }
    json
}
