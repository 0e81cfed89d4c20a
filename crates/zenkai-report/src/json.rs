//! Reports for programs. The shape is versioned; fields are added, never renamed within a version.

use serde::Serialize;
use serde_json::Value;
use zenkai_diagnose::{Check, Context, Diagnosis, Impact, Subsystem, checks::CHECKS};
use zenkai_facts::Facts;
use zenkai_host::{is_hidden, probe::Probe};

/// A value as indented JSON in which every character that a terminal would act on is escaped: JSON itself asks
/// that of the first 32 only, and DEL, the second set of control characters and the bidirectional overrides would
/// go through to whoever prints a report.
pub fn json_text(value: &impl Serialize) -> serde_json::Result<String> {
    let text = serde_json::to_string_pretty(value)?;
    let mut out = String::with_capacity(text.len());
    for letter in text.chars() {
        // Outside of strings there are none of them but the line feeds.
        if letter != '\n' && is_hidden(letter) {
            for unit in letter.encode_utf16(&mut [0; 2]) {
                out.push_str(&format!("\\u{unit:04x}"));
            }
        } else {
            out.push(letter);
        }
    }
    Ok(out)
}

#[derive(Serialize)]
struct DoctorJson<'d> {
    schema: &'static str,
    zenkai: &'static str,
    #[serde(flatten)]
    context: Context,
    #[serde(flatten)]
    diagnosis: &'d Diagnosis,
    /// What was measured, when a probe was run.
    #[serde(skip_serializing_if = "Option::is_none")]
    probe: Option<&'d Probe>,
}

/// `zenkai.doctor/1`.
pub fn doctor_json(facts: &Facts, diagnosis: &Diagnosis, context: Context) -> serde_json::Result<Value> {
    serde_json::to_value(DoctorJson {
        schema: "zenkai.doctor/1",
        zenkai: env!("CARGO_PKG_VERSION"),
        context,
        diagnosis,
        probe: facts.probe.get(),
    })
}

#[derive(Serialize)]
struct CheckJson {
    id: &'static str,
    subsystem: Subsystem,
    summary: &'static str,
    impact: Impact,
    effect: &'static str,
    risk: &'static str,
    source: &'static str,
    explanation: &'static str,
}

/// `zenkai.checks/1`: every check with its page.
pub fn checks_json() -> serde_json::Result<Value> {
    let describe = |check: &&Check| CheckJson {
        id: check.id,
        subsystem: check.subsystem,
        summary: check.summary,
        impact: check.impact,
        effect: check.effect,
        risk: check.risk,
        source: check.source,
        explanation: check.explanation,
    };
    let checks: Vec<CheckJson> = CHECKS.iter().map(describe).collect();
    Ok(serde_json::json!({ "schema": "zenkai.checks/1", "checks": serde_json::to_value(checks)? }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn data_cannot_steer_the_terminal() {
        let hostile = "a\x1bb\u{9b}c\u{202e}d\x7fe\nf\u{e0041}";
        let text = json_text(&[hostile]).unwrap();
        assert_eq!(text, "[\n  \"a\\u001bb\\u009bc\\u202ed\\u007fe\\nf\\udb40\\udc41\"\n]");
        assert_eq!(serde_json::from_str::<Vec<String>>(&text).unwrap(), [hostile], "nothing is lost");
    }
}
