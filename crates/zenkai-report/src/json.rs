//! Reports for programs. The shape is versioned; fields are added, never renamed within a version.

use serde::Serialize;
use serde_json::Value;
use zenkai_diagnose::{Check, Context, Diagnosis, Impact, Subsystem, checks::CHECKS};
use zenkai_facts::Facts;
use zenkai_host::probe::Probe;

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
