//! The JSON of pyperf 1.0: a benchmark for each arm, a run for each trial.

use serde_json::{Value, json};

use super::{FormatError, Imported, Run, Runs, arm_name, json_error, program};
use crate::experiment::{Plan, Trial};
use crate::statistics::verdict::Better;

pub(super) fn write(plan: &Plan, trials: &[&Trial]) -> Result<String, FormatError> {
    let unit = match plan.metric.unit.as_str() {
        "s" => "second",
        "B" => "byte",
        other => {
            return Err(FormatError::Unfit(format!(
                "pyperf knows seconds and bytes, and the metric is {} in {other}",
                plan.metric.name
            )));
        }
    };
    let benchmarks: Vec<Value> = (0..plan.arms.len())
        .filter_map(|arm| {
            let of_arm = trials.iter().filter(|trial| trial.arm == arm);
            let runs: Vec<Value> = of_arm.filter_map(|trial| Some(run(trial, trial.value?))).collect();
            let name = format!("{}: {}", program(plan), arm_name(plan, arm));
            (!runs.is_empty())
                .then(|| json!({ "metadata": { "name": name, "unit": unit, "loops": 1 }, "runs": runs }))
        })
        .collect();
    let suite = json!({ "version": "1.0", "metadata": {}, "benchmarks": benchmarks });
    serde_json::to_string_pretty(&suite).map_err(|error| json_error(&error))
}

fn run(trial: &Trial, value: f64) -> Value {
    json!({
        "metadata": { "duration": trial.elapsed_s, "zenkai_started_unix_s": trial.started_unix_s },
        "values": [value],
    })
}

pub(super) fn read(text: &str) -> Result<Imported, FormatError> {
    let value: Value = serde_json::from_str(text).map_err(|error| json_error(&error))?;
    let wrong = |what: &str| FormatError::Content { line: 1, what: what.to_owned() };
    let benchmarks = value
        .get("benchmarks")
        .and_then(Value::as_array)
        .ok_or_else(|| wrong("there is no list `benchmarks`"))?;
    let mut runs = Runs::default();
    for benchmark in benchmarks {
        // What all benchmarks share is written once, above them.
        let about = |name: &str| {
            let own = benchmark.pointer(&format!("/metadata/{name}"));
            own.or_else(|| value.pointer(&format!("/metadata/{name}"))).and_then(Value::as_str)
        };
        let arm = about("name").unwrap_or("unnamed");
        let unit = match about("unit").unwrap_or("second") {
            "second" => "s",
            "byte" => "B",
            _ => "",
        };
        let all = benchmark
            .get("runs")
            .and_then(Value::as_array)
            .ok_or_else(|| wrong("a benchmark has no `runs`"))?;
        for number in all.iter().filter_map(|run| run.get("values").and_then(Value::as_array)).flatten() {
            let run = Run {
                benchmark: String::new(),
                arm: arm.to_owned(),
                metric: if unit == "s" { "time" } else { "value" }.to_owned(),
                unit: unit.to_owned(),
                better: Some(Better::Lower),
                value: number.as_f64(),
            };
            runs.push(1, run)?;
        }
    }
    Ok(Imported { runs: runs.list, ordered: false, first: None })
}
