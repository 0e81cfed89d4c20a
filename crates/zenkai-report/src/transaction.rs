//! What was changed, as a report.

use serde_json::{Value as Json, json};
use zenkai_host::Value;
use zenkai_tune::{
    Plan, State,
    transaction::{End, Fate, Kind, LogEntry, Report, Row},
};

use crate::Block;

/// What was done, worst first.
pub fn transaction(report: &Report, plan: Option<&Plan>) -> Vec<Block> {
    let mut blocks = vec![Block::Text(headline(report))];
    let worse = |row: &&Row| !matches!(row.fate, Fate::Set | Fate::Restored);
    let line = |row: &Row| vec![row.what.clone(), fate(row, &report.end)];
    let trouble: Vec<Vec<String>> = report.rows.iter().filter(worse).map(line).collect();
    if !trouble.is_empty() {
        blocks.push(Block::Heading("Not as asked".to_owned()));
        blocks.push(Block::Table(trouble));
    }
    let good: Vec<Vec<String>> = report.rows.iter().filter(|row| !worse(row)).map(line).collect();
    if !good.is_empty() {
        blocks.push(Block::Table(good));
    }
    if let Some(held) = plan.map(held).filter(|count| *count > 0) {
        blocks.push(Block::Text(format!(
            "{held} of the profile's wishes need a living process; `zenkai profile plan` names them"
        )));
    }
    if let Some(id) = report.id.filter(|_| matches!(report.end, End::Done | End::Partly)) {
        blocks.push(Block::Text(format!("undo: zenkai undo {id}")));
    }
    blocks
}

fn held(plan: &Plan) -> usize {
    plan.steps.iter().filter(|step| matches!(step.state, State::Hold)).count()
}

fn headline(report: &Report) -> String {
    let count = |wanted: fn(&Fate) -> bool| report.rows.iter().filter(|row| wanted(&row.fate)).count();
    let set = count(|fate| matches!(fate, Fate::Set | Fate::Adjusted { .. }));
    let restored = count(|fate| matches!(fate, Fate::Restored));
    match (&report.end, report.id) {
        (_, None) => "nothing to change".to_owned(),
        (End::Done, _) if set == 0 && restored == 0 => "done; nothing had to be changed".to_owned(),
        (End::Done, _) => {
            let parts = [(set, "set"), (restored, "put back")];
            let said: Vec<String> = parts
                .iter()
                .filter(|(count, _)| *count > 0)
                .map(|(count, word)| format!("{count} {word}"))
                .collect();
            format!("done: {}", said.join(", "))
        }
        (End::Partly, _) => format!("done in part: {set} set, {restored} put back"),
        (End::RolledBack { why }, _) => format!("nothing was changed: {why}"),
        (End::NeedsAttention { .. }, _) => {
            "something could not be put back; see below, then `zenkai undo`".to_owned()
        }
        (End::Lost, _) => "cut short by a reboot".to_owned(),
    }
}

/// What became of a knob in a transaction that ended so, in a few words.
pub fn fate(row: &Row, end: &End) -> String {
    let (from, to) = (short(&row.from), short(&row.to));
    match &row.fate {
        Fate::Set => format!("{from} -> {to}"),
        Fate::Adjusted { shows } => format!("{from} -> {}, asked for {to}", short(shows)),
        Fate::Refused { why } => format!("refused {to}: {why}"),
        Fate::Skipped { why } => format!("left out: {why}"),
        // What was attempted is put back to what was before; an undo that worked ends where it wanted to.
        Fate::Restored if matches!(end, End::RolledBack { .. }) => format!("again {from}"),
        Fate::Restored => format!("{from} -> {to}, as it was"),
        Fate::NotRestored { why } => format!("could not be put back: {why}"),
        Fate::Kept { shows } => {
            format!("kept at {}, which somebody set since", short(shows))
        }
    }
}

/// The first line of a value.
fn short(value: &Value) -> String {
    let text = value.to_string();
    let first = text.lines().next().unwrap_or_default();
    match (text.trim().is_empty(), first.len() == text.len()) {
        (true, _) => "(empty)".to_owned(),
        (false, true) => text,
        (false, false) => format!("{first} …"),
    }
}

fn fate_word(fate: &Fate) -> &'static str {
    match fate {
        Fate::Set => "set",
        Fate::Adjusted { .. } => "adjusted",
        Fate::Refused { .. } => "refused",
        Fate::Skipped { .. } => "skipped",
        Fate::Restored => "restored",
        Fate::NotRestored { .. } => "not-restored",
        Fate::Kept { .. } => "kept",
    }
}

/// The same as JSON, schema `zenkai.transaction/1`.
pub fn transaction_json(report: &Report, plan: Option<&Plan>) -> serde_json::Result<Json> {
    let rows: Vec<Json> = report
        .rows
        .iter()
        .map(|row| {
            Ok(json!({
                "what": row.what,
                "knob": serde_json::to_value(&row.knob)?,
                "from": serde_json::to_value(&row.from)?,
                "to": serde_json::to_value(&row.to)?,
                "fate": fate_word(&row.fate),
                "detail": fate(row, &report.end),
            }))
        })
        .collect::<serde_json::Result<_>>()?;
    Ok(json!({
        "schema": "zenkai.transaction/1",
        "id": report.id,
        "end": serde_json::to_value(&report.end)?,
        "changes": rows,
        "needs_living_process": plan.map(held),
    }))
}

/// All transactions, newest first.
pub fn log(entries: &[LogEntry]) -> Vec<Block> {
    if entries.is_empty() {
        return vec![Block::Text("zenkai has changed nothing here".to_owned())];
    }
    let row = |entry: &LogEntry| {
        let mut end = match &entry.end {
            Some(End::Done) => "done".to_owned(),
            Some(End::Partly) => "done in part".to_owned(),
            Some(End::RolledBack { .. }) => "put back".to_owned(),
            Some(End::NeedsAttention { .. }) => "needs attention".to_owned(),
            Some(End::Lost) => "cut short by a reboot".to_owned(),
            None => "cut short".to_owned(),
        };
        if let Some(by) = entry.undone_by {
            end.push_str(&format!(", undone by {by}"));
        }
        if entry.active {
            end.push_str(", in force");
        }
        let label = match entry.kind {
            Kind::Undo { of } => format!("undo {of}"),
            _ => entry.label.clone(),
        };
        vec![entry.id.to_string(), utc(entry.time), label, format!("{} changes", entry.changes), end]
    };
    vec![Block::Table(entries.iter().map(row).collect())]
}

/// The same as JSON, schema `zenkai.log/1`.
pub fn log_json(entries: &[LogEntry]) -> serde_json::Result<Json> {
    let rows: Vec<Json> = entries
        .iter()
        .map(|entry| {
            Ok(json!({
                "id": entry.id,
                "time": entry.time,
                "kind": serde_json::to_value(entry.kind)?,
                "label": entry.label,
                "end": serde_json::to_value(&entry.end)?,
                "changes": entry.changes,
                "undone_by": entry.undone_by,
                "active": entry.active,
            }))
        })
        .collect::<serde_json::Result<_>>()?;
    Ok(json!({ "schema": "zenkai.log/1", "transactions": rows }))
}

/// `2026-01-31 23:59 UTC` for seconds since 1970. Days become a date by Howard Hinnant's `civil_from_days`.
pub fn utc(seconds: u64) -> String {
    let (days, rest) = (seconds / 86_400, seconds % 86_400);
    let shifted = days + 719_468;
    let (era, day_of_era) = (shifted / 146_097, shifted % 146_097);
    let year_of_era = (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted_month = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * shifted_month + 2) / 5 + 1;
    let month = if shifted_month < 10 { shifted_month + 3 } else { shifted_month - 9 };
    let year = year_of_era + era * 400 + u64::from(month <= 2);
    format!("{year:04}-{month:02}-{day:02} {:02}:{:02} UTC", rest / 3_600, rest % 3_600 / 60)
}

#[cfg(test)]
mod tests {
    use zenkai_host::{Knob, Value};
    use zenkai_tune::transaction::{End, Fate, Row};

    use super::{fate, utc};

    #[test]
    fn an_empty_value_can_be_seen() {
        let row = |from: Value, to: Value, fated| {
            let knob = Some(Knob::File("/etc/modprobe.d/x.conf".into()));
            fate(&Row { what: "x".into(), knob, from, to, fate: fated }, &End::Done)
        };
        assert_eq!(row("a\nb".into(), "".into(), Fate::Restored), "a … -> (empty), as it was");
        assert_eq!(row(Value::Absent, "\n".into(), Fate::Set), "(none) -> (empty)");
    }

    #[test]
    fn dates() {
        assert_eq!(utc(0), "1970-01-01 00:00 UTC");
        assert_eq!(utc(951_782_399), "2000-02-28 23:59 UTC");
        assert_eq!(utc(951_782_400), "2000-02-29 00:00 UTC");
        assert_eq!(utc(1_798_761_599), "2026-12-31 23:59 UTC");
    }
}
