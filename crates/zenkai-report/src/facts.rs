//! Facts as a report.

use std::fmt::Write as _;

use serde_json::Value;
use zenkai_facts::Facts;

use crate::Block;

/// Short lists are written in one line up to this many columns.
const INLINE_COLUMNS: usize = 90;

/// One line that says what machine this is: what is not known is left out.
pub(crate) fn headline(facts: &Facts) -> String {
    let firmware = &facts.firmware;
    let parts = [
        joined(firmware.vendor.text(), firmware.product.text()),
        facts
            .virtualisation
            .kind
            .get()
            .filter(|kind| kind.is_guest() || kind.is_xen())
            .map(ToString::to_string),
        (facts.virtualisation.is_container() == Some(true)).then(|| "in a container".to_owned()),
        facts.cpu.model_name.text().map(str::to_owned),
        facts.cpu.online.get().map(|online| counted(facts, online.len())),
        facts.memory.info.get().map(|info| gibibytes(info.total_kb)),
        facts.kernel.release.text().map(|release| format!("Linux {release}")),
    ];
    let known: Vec<String> = parts.into_iter().flatten().collect();
    if known.is_empty() { "a machine that tells nothing of itself".to_owned() } else { known.join(" · ") }
}

fn joined(left: Option<&str>, right: Option<&str>) -> Option<String> {
    let words: Vec<&str> = left.into_iter().chain(right).collect();
    (!words.is_empty()).then(|| words.join(" "))
}

fn counted(facts: &Facts, cpus: usize) -> String {
    let noun = if cpus == 1 { "CPU" } else { "CPUs" };
    match facts.cpu.topology.sockets.value() {
        Some(sockets) if sockets > 1 => format!("{cpus} {noun} in {sockets} sockets"),
        _ => format!("{cpus} {noun}"),
    }
}

fn gibibytes(kb: u64) -> String {
    let tenths = kb.saturating_mul(10) >> 20;
    format!("{}.{} GiB", tenths / 10, tenths % 10)
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
