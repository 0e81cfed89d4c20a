//! The JSON of `hyperfine --export-json`: one result for each arm. The order of the runs is lost.

use serde_json::{Value, json};

use super::{FormatError, Imported, Run, Runs, arm_name, json_error};
use crate::experiment::{Plan, Trial};
use crate::statistics::verdict::Better;
use crate::statistics::{median, real};

pub(super) fn write(plan: &Plan, trials: &[&Trial]) -> Result<String, FormatError> {
    if plan.metric.unit != "s" {
        let what = format!(
            "hyperfine knows times only, and the metric is {} in {}",
            plan.metric.name, plan.metric.unit
        );
        return Err(FormatError::Unfit(what));
    }
    let results: Vec<Value> = (0..plan.arms.len())
        .filter_map(|arm| {
            let of_arm: Vec<&Trial> = trials.iter().copied().filter(|trial| trial.arm == arm).collect();
            result(plan, arm, &of_arm)
        })
        .collect();
    serde_json::to_string_pretty(&json!({ "results": results })).map_err(|error| json_error(&error))
}

/// `None` when the arm has no time: hyperfine's file has no place for that.
fn result(plan: &Plan, arm: usize, trials: &[&Trial]) -> Option<Value> {
    let good: Vec<&Trial> = trials.iter().copied().filter(|trial| trial.value.is_some()).collect();
    let times: Vec<f64> = good.iter().filter_map(|trial| trial.value).collect();
    let middle = median(&mut times.clone())?;
    let mean = |values: &[f64]| values.iter().sum::<f64>() / real(values.len().max(1));
    let average = mean(&times);
    let squares: f64 = times.iter().map(|time| (time - average) * (time - average)).sum();
    let deviation = (times.len() > 1).then(|| (squares / real(times.len() - 1)).sqrt());
    let metric = |name: &str| -> Vec<f64> {
        good.iter().filter_map(|trial| trial.metrics.get(name)).map(|measure| measure.value).collect()
    };
    let mut result = json!({
        "command": arm_name(plan, arm),
        "mean": average,
        "stddev": deviation,
        "median": middle,
        "user": mean(&metric("user")),
        "system": mean(&metric("sys")),
        "min": times.iter().copied().fold(f64::INFINITY, f64::min),
        "max": times.iter().copied().fold(f64::NEG_INFINITY, f64::max),
        "times": times,
        "exit_codes": good.iter().map(|trial| trial.exit_code).collect::<Vec<_>>(),
        "parameters": { "arm": arm_name(plan, arm) },
    });
    let memory = metric("maxrss");
    if memory.len() == good.len() {
        result["memory_usage_byte"] = json!(memory);
    }
    Some(result)
}

pub(super) fn read(text: &str) -> Result<Imported, FormatError> {
    let value: Value = serde_json::from_str(text).map_err(|error| json_error(&error))?;
    let unfit = |what: &str| FormatError::Content { line: 1, what: what.to_owned() };
    let results =
        value.get("results").and_then(Value::as_array).ok_or_else(|| unfit("there is no list `results`"))?;
    let mut runs = Runs::default();
    for result in results {
        let arm = result
            .get("command")
            .and_then(Value::as_str)
            .ok_or_else(|| unfit("a result has no `command`"))?;
        let times = result.get("times").and_then(Value::as_array).ok_or_else(|| {
            unfit("a result has no `times`: export it with --export-json and without --style")
        })?;
        for (index, time) in times.iter().enumerate() {
            let failed = result
                .pointer(&format!("/exit_codes/{index}"))
                .and_then(Value::as_i64)
                .is_some_and(|code| code != 0);
            let run = Run {
                benchmark: String::new(),
                arm: arm.to_owned(),
                metric: "time".to_owned(),
                unit: "s".to_owned(),
                better: Some(Better::Lower),
                value: time.as_f64().filter(|_| !failed),
            };
            runs.push(1, run)?;
        }
    }
    Ok(Imported { runs: runs.list, ordered: false, first: None })
}
