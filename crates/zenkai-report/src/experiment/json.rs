//! An experiment for programs.

use serde_json::{Value, json};
use zenkai_measure::experiment::Comparison;

use super::Experiment;
use super::words;

/// `zenkai.experiment/1`. The fields at the top are those of the first comparison, the only one with two arms; `verdict`
/// is "different" if any arm is, "equal" if all are, else "undecided".
pub fn experiment_json(experiment: &Experiment) -> serde_json::Result<Value> {
    let first = experiment.comparisons.first().and_then(|comparison| comparison.judgement.looks.last());
    let change = first.and_then(|look| look.change);
    let comparisons: Vec<Value> =
        experiment.comparisons.iter().map(|found| comparison(experiment, found)).collect::<Result<_, _>>()?;
    let arms = experiment.plan.arms.iter().enumerate().map(|(index, arm)| {
        let of_arm = experiment.of_arm(index);
        json!({
            "name": arm.name,
            "spec": arm.spec,
            "settings": arm.settings,
            "command": arm.command,
            "trials": of_arm.trials,
            "failed": of_arm.failed,
            "discarded": of_arm.discarded,
            "median": of_arm.median(),
            "p95": of_arm.quantile(0.95),
        })
    });
    Ok(json!({
        "schema": "zenkai.experiment/1",
        "zenkai": env!("CARGO_PKG_VERSION"),
        "directory": experiment.dir,
        "proof": true,
        "aa": experiment.plan.aa,
        "verdict": words::word(words::overall(experiment.comparisons)),
        "finished": experiment.comparisons.iter().all(|comparison| comparison.judgement.finished),
        "effect": change.map(|change| change.percent),
        "interval": change.map(|change| [change.low, change.high]),
        "p": first.map(|look| look.p),
        "pairs": first.map_or(0, |look| look.pairs),
        "metric": experiment.plan.metric,
        "better": experiment.plan.rule.better,
        "seed": experiment.plan.order_seed,
        "equal_within": 100.0 * experiment.plan.rule.rho,
        "arms": arms.collect::<Vec<Value>>(),
        "comparisons": comparisons,
        "confirms": experiment.plan.confirms,
        "confirmed": super::confirmed(experiment).iter().chain(experiment.confirmed).collect::<Vec<_>>(),
        "workload": experiment.plan.workload,
        "repeat": words::repeat(experiment.plan),
        "notes": experiment.notes,
    }))
}

fn comparison(experiment: &Experiment, found: &Comparison) -> serde_json::Result<Value> {
    let look = found.judgement.looks.last();
    let change = look.and_then(|look| look.change);
    Ok(json!({
        "a": experiment.arm(0),
        "b": experiment.arm(found.arm),
        "verdict": words::word(found.judgement.verdict),
        "sentence": words::sentence(experiment, found),
        "finished": found.judgement.finished,
        "decided_at": found.judgement.decided_at,
        "effect": change.map(|change| change.percent),
        "interval": change.map(|change| [change.low, change.high]),
        "p": look.map(|look| look.p),
        "level": look.map(|look| look.level),
        "exact": look.map(|look| look.exact),
        "pairs": look.map_or(0, |look| look.pairs),
        "detectable": look.and_then(|look| look.detectable),
        "failed": look.map(|look| look.failed),
        "looks": serde_json::to_value(&found.judgement.looks)?,
        "explanation": serde_json::to_value(experiment.explanation(found.arm))?,
    }))
}
