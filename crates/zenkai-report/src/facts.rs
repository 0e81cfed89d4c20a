//! Facts as a report.

use std::fmt::Write as _;

use serde_json::Value;
use zenkai_facts::Facts;

use crate::Block;

/// Short lists are written in one line up to this many columns.
const INLINE_COLUMNS: usize = 90;

/// One line that says what machine this is.
pub(crate) fn headline(facts: &Facts) -> String {
    let cpus = facts.cpu.online.get().map_or("an unknown number of".to_owned(), |set| set.len().to_string());
    format!("{cpus} CPUs")
}

/// A facts value (all of them, or one subsystem) as an indented list.
pub fn facts(value: &Value) -> Vec<Block> {
    let mut out = String::new();
    write_value(&mut out, value, 0);
    vec![Block::Verbatim(out)]
}

fn write_value(out: &mut String, value: &Value, depth: usize) {
    match value {
        Value::Object(map) => {
            for (name, value) in map {
                write_entry(out, name, value, depth);
            }
        }
        Value::Array(items) => {
            for (index, item) in items.iter().enumerate() {
                write_entry(out, &format!("- {index}"), item, depth);
            }
        }
        scalar => write_entry(out, "value", scalar, depth),
    }
}

fn write_entry(out: &mut String, name: &str, value: &Value, depth: usize) {
    let indent = "  ".repeat(depth);
    // Writing to a String cannot fail.
    if let Some(line) = inline(value) {
        let _ = writeln!(out, "{indent}{name}: {line}");
    } else {
        let _ = writeln!(out, "{indent}{name}:");
        write_value(out, value, depth + 1);
    }
}

/// The value in one line, when it fits: a scalar, an absent value with its reason, a short list of scalars.
fn inline(value: &Value) -> Option<String> {
    match value {
        Value::Null => Some("-".to_owned()),
        Value::Bool(flag) => Some(if *flag { "yes" } else { "no" }.to_owned()),
        Value::Number(number) => Some(number.to_string()),
        Value::String(text) => Some(text.clone()),
        Value::Array(items) => {
            let words: Option<Vec<String>> = items.iter().map(scalar).collect();
            let line = words?.join(", ");
            (line.len() <= INLINE_COLUMNS).then(|| if line.is_empty() { "none".to_owned() } else { line })
        }
        Value::Object(map) => {
            let word = map.get("unavailable")?.as_str()?;
            let source = map.get("source").and_then(Value::as_str).unwrap_or("?");
            let detail = map.get("detail").and_then(Value::as_str).map(|text| format!(": {text}"));
            Some(format!("- ({word}{}) {source}", detail.unwrap_or_default()))
        }
    }
}

fn scalar(value: &Value) -> Option<String> {
    match value {
        Value::Array(_) | Value::Object(_) => None,
        other => inline(other),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Style, render};

    #[test]
    fn absence_is_shown_with_its_reason() {
        let value = serde_json::json!({
            "online": "0-1",
            "governor": { "unavailable": "denied", "source": "/sys/x" },
            "policies": [{ "number": 0, "list": ["a", "b"] }],
            "none": [],
        });
        let text = render(&facts(&value), Style::default());
        assert_eq!(
            text,
            "online: 0-1\ngovernor: - (denied) /sys/x\npolicies:\n  - 0:\n    number: 0\n    list: a, b\nnone: none\n"
        );
    }
}
