//! The sections of the page that are words and tables.

use serde_json::Value;
use zenkai_measure::experiment::{Comparison, Trial};
use zenkai_measure::explain::{ChannelShift, Explanation, Role};
use zenkai_measure::statistics::verdict::Verdict;

use super::super::words::{self, of_channel, p_value, quantity, shell, signed};
use super::super::{Experiment, rows};
use super::page::{Page, colour};

/// More trials without a number than these are folded.
const FAILURES_OPEN: usize = 12;
/// Host facts are cut after this many lines; the file has all.
const MOST_FACTS: usize = 400;

pub(super) fn verdicts(page: &mut Page, experiment: &Experiment) {
    for comparison in experiment.comparisons {
        let word = words::word(comparison.judgement.verdict);
        let class = format!("verdict {} {}", tone(experiment, comparison), word);
        page.el("div", &[("class", &class), ("data-verdict", word)], |page| {
            page.leaf("span", &[("class", "word")], word);
            page.leaf("p", &[("class", "sentence")], &words::sentence(experiment, comparison));
            let more = [words::reading(experiment, comparison), words::energy(experiment, comparison.arm)];
            for text in more.into_iter().flatten() {
                page.leaf("p", &[("class", "quiet")], &text);
            }
        });
    }
    for arm in experiment.plan.arms.iter().filter(|arm| arm.is_idle() && !experiment.plan.aa) {
        let text = format!("{} {}.", arm.name, super::super::IDLE_ARM);
        page.leaf("p", &[("class", "warning")], &text);
    }
    for confirmed in super::super::confirmed(experiment).iter().chain(experiment.confirmed) {
        page.leaf("p", &[("class", "confirmed")], &format!("{}.", confirmed.sentence.trim_end_matches('.')));
    }
    if experiment.plan.aa {
        page.leaf(
            "p",
            &[],
            "Both arms are the same on purpose: anything but “different” is as it should be.",
        );
    }
}

fn tone(experiment: &Experiment, comparison: &Comparison) -> &'static str {
    if comparison.judgement.verdict != Verdict::Different {
        return "neutral";
    }
    let change = comparison.judgement.looks.last().and_then(|look| look.change);
    let better = change.is_some_and(|change| experiment.plan.rule.better.percent(1.0) * change.percent < 0.0);
    if better { "good" } else { "bad" }
}

/// A table with a heading row; columns of numbers are aligned right.
pub(super) fn table<R: AsRef<[String]>>(
    page: &mut Page,
    head: &[(&str, bool)],
    rows: impl IntoIterator<Item = R>,
) {
    let class = |number: bool| if number { "number" } else { "" };
    page.el("div", &[("class", "scroll")], |page| {
        page.el("table", &[], |page| {
            page.el("thead", &[], |page| {
                page.el("tr", &[], |page| {
                    for (name, number) in head {
                        page.leaf("th", &[("class", class(*number)), ("scope", "col")], name);
                    }
                });
            });
            page.el("tbody", &[], |page| {
                for row in rows {
                    page.el("tr", &[], |page| {
                        for (cell, (_, number)) in row.as_ref().iter().zip(head) {
                            page.leaf("td", &[("class", class(*number))], cell);
                        }
                    });
                }
            });
        });
    });
}

pub(super) fn arms(page: &mut Page, experiment: &Experiment) {
    let unit = &experiment.plan.metric.unit;
    let number = |value: Option<f64>| value.map_or("–".to_owned(), |value| quantity(value, unit));
    let rows = (0..experiment.plan.arms.len()).map(|arm| {
        let of_arm = experiment.of_arm(arm);
        [
            experiment.short(arm),
            number(of_arm.median()),
            number(of_arm.quantile(0.95)),
            number(of_arm.values.first().copied()),
            number(of_arm.values.last().copied()),
            of_arm.trials.to_string(),
            of_arm.failed.to_string(),
        ]
    });
    let head = [
        ("arm", false),
        ("median", true),
        ("95th percentile", true),
        ("least", true),
        ("most", true),
        ("trials", true),
        ("failed", true),
    ];
    table(page, &head, rows);
}

pub(super) fn secondary(page: &mut Page, experiment: &Experiment, explanation: &Explanation) {
    let name = format!("{} against {}", experiment.short(explanation.arm), experiment.short(0));
    page.leaf("h3", &[], &name);
    let head = [
        ("number", false),
        ("first → this arm", true),
        ("change", true),
        ("95 % interval", true),
        ("p", true),
    ];
    table(page, &head, rows::numbers(explanation));
    if let Some(warning) = rows::carries_over(explanation) {
        page.leaf("p", &[("class", "warning")], warning);
    }
}

pub(super) fn explanation(page: &mut Page, experiment: &Experiment, explanation: &Explanation) {
    for sentence in &explanation.sentences {
        page.leaf("p", &[], sentence);
    }
    let draw = |page: &mut Page| {
        for split in &explanation.splits {
            page.el("div", &[("class", "draw")], |page| {
                super::split::split(page, experiment, explanation.arm, split);
            });
        }
    };
    if explanation.is_change {
        draw(page);
    } else if !explanation.splits.is_empty() {
        folded(page, "The factors of a difference that may be chance", draw);
    }
    let (changed, same): (Vec<&ChannelShift>, Vec<&ChannelShift>) =
        explanation.channels.iter().partition(|channel| channel.role != Role::NotChanged);
    let head = [
        ("channel", false),
        ("first arm", true),
        ("this arm", true),
        ("change", true),
        ("p (corrected)", true),
        ("follows", true),
        ("role", false),
    ];
    if !changed.is_empty() {
        table(page, &head, changed.into_iter().map(channel_row));
    }
    if !same.is_empty() {
        let summary = format!("{} that may not have changed", words::counted(same.len(), "channel"));
        folded(page, &summary, |page| table(page, &head, same.into_iter().map(channel_row)));
    }
    if let Some(text) = rows::no_channels(explanation) {
        page.leaf("p", &[("class", "quiet")], text);
    }
    if !explanation.missing.is_empty() {
        let rows = explanation.missing.iter().map(|missing| [missing.name.clone(), missing.reason.clone()]);
        let summary = format!("{} could not be judged", words::counted(rows.len(), "channel"));
        folded(page, &summary, |page| table(page, &[("channel", false), ("why", false)], rows));
    }
}

fn channel_row(channel: &ChannelShift) -> Vec<String> {
    let about = &channel.about;
    let show = |value: f64| of_channel(&channel.name, &about.unit, value);
    let role = match channel.role {
        Role::Explains => "explains",
        Role::AlsoChanged => "also changed",
        Role::NotChanged => "",
    };
    let name = if about.words.is_empty() {
        channel.name.clone()
    } else {
        format!("{} ({})", about.words, channel.name)
    };
    vec![
        name,
        show(channel.a),
        show(channel.b),
        channel.percent.map_or("–".to_owned(), signed),
        p_value(channel.corrected),
        channel.follows.map_or("–".to_owned(), |follows| format!("{follows:+.2}").replace('-', "−")),
        role.to_owned(),
    ]
}

pub(super) fn settings(page: &mut Page, experiment: &Experiment) {
    for (index, arm) in experiment.plan.arms.iter().enumerate() {
        page.leaf("h3", &[("class", &format!("{} arm", colour(index)))], &rows::called(arm));
        if !arm.command.is_empty() {
            page.leaf("pre", &[], &shell(&arm.command));
        }
        if let Some(text) = rows::sets_nothing(arm) {
            page.leaf("p", &[("class", "quiet")], text);
        }
        if !arm.settings.is_empty() {
            let head = [("what", false), ("before", false), ("under this arm", false)];
            table(page, &head, rows::settings(arm));
        }
    }
}

pub(super) fn failures(page: &mut Page, experiment: &Experiment) {
    let row = |(number, trial, what): (usize, &Trial, &str)| {
        [
            number.to_string(),
            experiment.short(trial.arm),
            what.to_owned(),
            trial.exit_code.map_or("–".to_owned(), |code| code.to_string()),
            trial.reason.clone().unwrap_or_default(),
        ]
    };
    let rows: Vec<[String; 5]> = rows::without_number(experiment).into_iter().map(row).collect();
    if rows.is_empty() {
        return;
    }
    let head = [("trial", true), ("arm", false), ("what", false), ("exit code", true), ("why", false)];
    if rows.len() > FAILURES_OPEN {
        folded(page, &format!("{} trials gave no number", rows.len()), |page| table(page, &head, rows));
    } else {
        page.leaf("h3", &[], "Trials that gave no number");
        table(page, &head, rows);
    }
}

/// What is shown when the reader asks for it.
pub(super) fn folded(page: &mut Page, summary: &str, body: impl FnOnce(&mut Page)) {
    page.el("details", &[], |page| {
        page.leaf("summary", &[], summary);
        body(page);
    });
}

/// The A/A result: how this machine behaves when nothing differs.
pub(super) fn same(page: &mut Page, experiment: &Experiment) {
    page.leaf("p", &[], &words::same(experiment));
    if let Some(spent) = words::spent(experiment) {
        page.leaf("p", &[], &spent);
    }
}

pub(super) fn repeat(page: &mut Page, experiment: &Experiment) {
    let plan = experiment.plan;
    page.leaf("p", &[], "Run it again, in the same order:");
    page.leaf("pre", &[], &words::repeat(plan));
    page.leaf("p", &[], "Compute the verdict again from what is stored, to the last bit:");
    page.leaf("pre", &[], &shell(&["zenkai".into(), "analyze".into(), experiment.dir.into()]));
    let looks: Vec<String> = plan.rule.looks.iter().map(ToString::to_string).collect();
    let rows = [
        ("laid down", crate::utc(plan.created_unix_s)),
        ("metric", format!("{} ({}), {}", plan.metric.name, plan.metric.unit, better(experiment))),
        ("seed of the order", plan.order_seed.to_string()),
        ("judged after", format!("{} pairs", looks.join(", "))),
        ("chance of a false “different”", format!("{} %", words::digits_short(100.0 * plan.rule.alpha))),
        ("does not matter", format!("differences within {} %", words::digits_short(100.0 * plan.rule.rho))),
        ("settling", format!("{} to {} s before each trial", plan.settle.at_least_s, plan.settle.at_most_s)),
    ];
    let rows = rows.into_iter().map(|(name, value)| [name.to_owned(), value]);
    table(page, &[("plan", false), ("", false)], rows);
}

fn better(experiment: &Experiment) -> &'static str {
    if experiment.plan.rule.better.percent(1.0) > 0.0 { "lower is better" } else { "higher is better" }
}

/// The machine's facts, flattened to one line each; a value that could not be read is left to the file.
pub(super) fn host(page: &mut Page, experiment: &Experiment) {
    let Some(host) = experiment.host else {
        page.leaf("p", &[("class", "quiet")], "The machine's facts are not stored with this experiment.");
        return;
    };
    let mut rows = Vec::new();
    flatten(host, &mut Vec::new(), &mut rows);
    let headline = ["firmware.product", "cpu.model_name", "kernel.release", "virtualisation.kind"];
    let said: Vec<&str> = headline
        .iter()
        .filter_map(|name| rows.iter().find(|row| row[0] == *name).map(|row| row[1].as_str()))
        .collect();
    if !said.is_empty() {
        page.leaf("p", &[], &said.join(" · "));
    }
    let count = rows.len();
    rows.truncate(MOST_FACTS);
    let shown =
        if count > MOST_FACTS { format!("{MOST_FACTS} of {count} facts") } else { format!("{count} facts") };
    folded(page, &shown, |page| table(page, &[("fact", false), ("value", false)], rows));
}

/// Depth to which facts are followed; those of a machine are far shallower.
const DEEPEST: usize = 12;

fn flatten(value: &Value, path: &mut Vec<String>, rows: &mut Vec<Vec<String>>) {
    if path.len() > DEEPEST || rows.len() > 20 * MOST_FACTS {
        return;
    }
    // What could not be read is an object that says why.
    if value.get("unavailable").is_some() {
        return;
    }
    match value {
        Value::Object(map) => {
            for (name, inner) in map {
                path.push(name.clone());
                flatten(inner, path, rows);
                path.pop();
            }
        }
        Value::Array(list) if list.iter().any(|inner| inner.is_object() || inner.is_array()) => {
            for (index, inner) in list.iter().enumerate() {
                path.push(index.to_string());
                flatten(inner, path, rows);
                path.pop();
            }
        }
        Value::Array(list) => {
            let text: Vec<String> = list.iter().map(plain).collect();
            rows.push(vec![path.join("."), text.join(", ")]);
        }
        Value::Null => {}
        _ => rows.push(vec![path.join("."), plain(value)]),
    }
}

fn plain(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}
