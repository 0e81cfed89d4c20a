//! One line for each number (RFC 4180): experiment, slot, block, arm, status, metric, value, unit.

use super::{FormatError, Imported, Run, Runs, arm_name, numbers, program};
use crate::experiment::{Plan, Status, Trial};
use crate::statistics::verdict::Better;

const HEAD: &str = "experiment,slot,block,arm,status,metric,value,unit,better";

pub(super) fn write(plan: &Plan, trials: &[&Trial]) -> String {
    let mut out = format!("{HEAD}\r\n");
    for (slot, trial) in trials.iter().enumerate() {
        let status = match trial.status {
            Status::Ok => "ok",
            Status::Failed => "failed",
            Status::Timeout => "timeout",
            Status::Discarded => "discarded",
        };
        let mut line = |metric: &str, value: String, unit: &str, better: &str| {
            let (slot, block) = (slot.to_string(), trial.block.to_string());
            let cells = [
                program(plan),
                &slot,
                &block,
                arm_name(plan, trial.arm),
                status,
                metric,
                &value,
                unit,
                better,
            ];
            out.push_str(&cells.map(quoted).join(","));
            out.push_str("\r\n");
        };
        if trial.value.is_none() {
            line(&plan.metric.name, String::new(), &plan.metric.unit, word(Some(plan.rule.better)));
        }
        for (name, unit, better, value) in numbers(plan, trial) {
            line(name, value.to_string(), unit, word(better));
        }
    }
    out
}

fn word(better: Option<Better>) -> &'static str {
    match better {
        Some(Better::Lower) => "lower",
        Some(Better::Higher) => "higher",
        None => "",
    }
}

fn quoted(cell: &str) -> String {
    if cell.contains(['"', ',', '\n', '\r']) {
        format!("\"{}\"", cell.replace('"', "\"\""))
    } else {
        cell.to_owned()
    }
}

pub(super) fn read(text: &str) -> Result<Imported, FormatError> {
    let rows = rows(text)?;
    let mut rows = rows.into_iter();
    let (line, head) = rows.next().ok_or(FormatError::Empty)?;
    let column = |name: &str| head.iter().position(|cell| cell == name);
    let needed = |name: &str| {
        column(name)
            .ok_or_else(|| FormatError::Content { line, what: format!("there is no column `{name}`") })
    };
    let (arm, value) = (needed("arm")?, needed("value")?);
    let [experiment, metric, unit, better] = ["experiment", "metric", "unit", "better"].map(column);
    let mut runs = Runs::default();
    for (line, row) in rows {
        let cell =
            |column: Option<usize>| column.and_then(|column| row.get(column)).map_or("", String::as_str);
        let text = cell(Some(value));
        let number = match text.parse::<f64>() {
            Ok(number) => Some(number),
            Err(_) if text.is_empty() => None,
            Err(_) => return Err(FormatError::Content { line, what: format!("`{text}` is no number") }),
        };
        let metric = cell(metric);
        let run = Run {
            benchmark: cell(experiment).to_owned(),
            arm: cell(Some(arm)).to_owned(),
            metric: if metric.is_empty() { "value" } else { metric }.to_owned(),
            unit: cell(unit).to_owned(),
            better: match cell(better) {
                "lower" => Some(Better::Lower),
                "higher" => Some(Better::Higher),
                _ => None,
            },
            value: number,
        };
        runs.push(line, run)?;
    }
    Ok(Imported { runs: runs.list, ordered: column("slot").is_some(), first: None })
}

/// A row and the line on which it begins.
type Row = (usize, Vec<String>);

fn rows(text: &str) -> Result<Vec<Row>, FormatError> {
    let mut rows = Vec::new();
    let (mut row, mut cell, mut inside) = (Vec::new(), String::new(), false);
    let (mut line, mut begun) = (1, 1);
    let mut letters = text.chars().peekable();
    while let Some(letter) = letters.next() {
        line += usize::from(letter == '\n');
        match (letter, inside) {
            ('"', true) if letters.peek() == Some(&'"') => {
                letters.next();
                cell.push('"');
            }
            ('"', _) => inside = !inside,
            (',', false) => row.push(std::mem::take(&mut cell)),
            ('\r', false) => {}
            ('\n', false) => {
                row.push(std::mem::take(&mut cell));
                let whole = std::mem::take(&mut row);
                if whole.iter().any(|cell| !cell.is_empty()) {
                    rows.push((begun, whole));
                }
                begun = line;
            }
            _ => cell.push(letter),
        }
    }
    if inside {
        return Err(FormatError::Content { line: begun, what: "a quotation mark is not closed".to_owned() });
    }
    row.push(cell);
    if row.iter().any(|cell| !cell.is_empty()) {
        rows.push((begun, row));
    }
    Ok(rows)
}
