//! The Go benchmark format (golang.org/design/14313-benchmark-format): one line for each trial, the arm as `/arm=`, so
//! that `benchstat -col /arm` compares them at once.

use std::collections::BTreeMap;

use super::{FormatError, Imported, Run, Runs, arm_name, numbers, program};
use crate::experiment::{Plan, Trial};
use crate::statistics::verdict::Better;

/// Names the arm that the others are compared with: the order of the trials is random, so the first line does not.
const FIRST: &str = "zenkai-first-arm:";

pub(super) fn write(plan: &Plan, trials: &[&Trial]) -> String {
    let mut out =
        format!("zenkai-metric: {}\nzenkai-seed: {}\n", one_line(&plan.metric.name), plan.order_seed);
    out.push_str(&format!("{FIRST} {}\n", arm_label(plan, 0)));
    let mut units: BTreeMap<String, Better> = BTreeMap::new();
    for trial in trials {
        for (name, unit, better, _) in numbers(plan, trial) {
            if let Some(better) = better {
                units.insert(unit_of(plan, name, unit), better);
            }
        }
    }
    for (unit, better) in units {
        let word = if better == Better::Lower { "lower" } else { "higher" };
        out.push_str(&format!("Unit {unit} better={word}\n"));
    }
    let benchmark = capital(&label(program(plan)));
    for (number, trial) in (1..).zip(trials) {
        let numbers = numbers(plan, trial);
        let arm = arm_label(plan, trial.arm);
        if numbers.is_empty() || trial.value.is_none() {
            let reason = trial.reason.as_deref().unwrap_or("no reason given");
            out.push_str(&format!("--- FAIL: {benchmark}/arm={arm} trial {number}: {}\n", one_line(reason)));
            continue;
        }
        out.push_str(&format!("Benchmark{benchmark}/arm={arm} 1"));
        for (name, unit, _, value) in numbers {
            out.push_str(&format!(" {value} {}", unit_of(plan, name, unit)));
        }
        out.push('\n');
    }
    out
}

/// Seconds of the primary metric are `sec/op`, as Go's tools call them; other numbers carry their name.
fn unit_of(plan: &Plan, name: &str, unit: &str) -> String {
    let unit = match unit {
        "s" => "sec/op",
        "1/s" => "op/s",
        "" => "count",
        other => other,
    };
    if name == plan.metric.name && unit == "sec/op" {
        unit.to_owned()
    } else {
        label(&format!("{name}-{unit}"))
    }
}

/// Names are unique in the plan; they stay so when letters that the format lacks are replaced.
fn arm_label(plan: &Plan, arm: usize) -> String {
    let wanted = label(arm_name(plan, arm)).replace('/', "_");
    let taken = (0..arm).filter(|other| label(arm_name(plan, *other)).replace('/', "_") == wanted).count();
    // A number after a hyphen at the end would be read as the count of CPUs.
    let safe =
        wanted.rsplit_once('-').is_some_and(|(_, end)| end.chars().all(|letter| letter.is_ascii_digit()));
    let wanted = if safe { format!("{wanted}_") } else { wanted };
    if taken == 0 { wanted } else { format!("{wanted}#{taken}") }
}

fn label(text: &str) -> String {
    text.chars()
        .map(|letter| if letter.is_whitespace() || letter.is_control() { '_' } else { letter })
        .collect()
}

fn one_line(text: &str) -> String {
    text.replace(|letter: char| letter.is_control(), " ")
}

fn capital(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map_or_else(String::new, |first| first.to_uppercase().chain(letters).collect())
}

pub(super) fn read(text: &str) -> Result<Imported, FormatError> {
    let mut better: BTreeMap<&str, Better> = BTreeMap::new();
    let (mut runs, mut first) = (Runs::default(), None);
    for (line, content) in (1..).zip(text.lines()) {
        let mut words = content.split_whitespace();
        let Some(word) = words.next() else { continue };
        if word == "Unit" {
            let unit = words.next().unwrap_or_default();
            for word in words {
                match word {
                    "better=lower" => _ = better.insert(unit, Better::Lower),
                    "better=higher" => _ = better.insert(unit, Better::Higher),
                    _ => {}
                }
            }
            continue;
        }
        if word == FIRST {
            first = words.next().map(str::to_owned);
            continue;
        }
        let Some(name) = word.strip_prefix("Benchmark") else { continue };
        // The name alone is printed before a benchmark runs.
        let Some(count) = words.next() else { continue };
        if count.parse::<u64>().is_err() {
            continue;
        }
        let (benchmark, arm) = names(name);
        let rest: Vec<&str> = words.collect();
        for pair in rest.chunks(2) {
            let [value, unit] = pair else {
                return Err(FormatError::Content { line, what: "a number without its unit".to_owned() });
            };
            let value: f64 = value
                .parse()
                .map_err(|_| FormatError::Content { line, what: format!("`{value}` is no number") })?;
            runs.push(line, run(&benchmark, &arm, value, unit, &better))?;
        }
    }
    Ok(Imported { runs: runs.list, ordered: true, first })
}

/// The benchmark and its arm: `/arm=` where there is one, else the last part of the name.
fn names(name: &str) -> (String, String) {
    let bare = match name.rsplit_once('-') {
        Some((bare, cpus)) if !cpus.is_empty() && cpus.chars().all(|letter| letter.is_ascii_digit()) => bare,
        _ => name,
    };
    let is_arm = |part: &&str| part.starts_with("arm=");
    match bare.split('/').find(is_arm) {
        Some(arm) => {
            let rest: Vec<&str> = bare.split('/').filter(|part| !is_arm(part)).collect();
            (rest.join("/"), arm.trim_start_matches("arm=").to_owned())
        }
        None => bare.rsplit_once('/').map_or_else(
            || (String::new(), bare.to_owned()),
            |(benchmark, arm)| (benchmark.to_owned(), arm.to_owned()),
        ),
    }
}

fn run(benchmark: &str, arm: &str, value: f64, unit: &str, better: &BTreeMap<&str, Better>) -> Run {
    // What go test writes itself; lower is better for all of it but MB/s.
    let (metric, base, factor, usual) = match unit {
        "ns/op" => ("time", "s", 1e-9, Some(Better::Lower)),
        "sec/op" => ("time", "s", 1.0, Some(Better::Lower)),
        "MB/s" => ("throughput", "B/s", 1e6, Some(Better::Higher)),
        "B/op" | "allocs/op" => (unit, unit, 1.0, Some(Better::Lower)),
        other => (other, other, 1.0, None),
    };
    Run {
        benchmark: benchmark.to_owned(),
        arm: arm.to_owned(),
        metric: metric.to_owned(),
        unit: base.to_owned(),
        better: better.get(unit).copied().or(usual),
        value: Some(value * factor),
    }
}
