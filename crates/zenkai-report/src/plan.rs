//! A plan as a report: what would change, what is right already, what cannot act here.

use serde::Serialize;
use serde_json::Value as Json;
use zenkai_host::Value;
use zenkai_tune::{Fault, Hold, Plan, State, Step, Want, When};

use crate::Block;

/// How many devices or files of one kind are named before the rest is counted.
const NAMES_SHOWN: usize = 3;

/// Whether a step in this state is listed under a heading.
type Belongs = fn(&State) -> bool;

/// The report of a plan. Steps that say the same of several knobs are one line.
pub fn plan(title: &str, plan: &Plan) -> Vec<Block> {
    let mut blocks = vec![Block::Text(title.to_owned()), Block::Text(overview(plan))];
    let groups: [(&str, Belongs); 5] = [
        ("To change", |state| matches!(state, State::Change { .. })),
        ("To run", |state| matches!(state, State::Run | State::RunAgain)),
        ("Needs a living process; applying alone does not do it", |state| matches!(state, State::Hold)),
        ("Wrong in the profile", |state| matches!(state, State::Cannot { fault: Fault::Profile, .. })),
        ("Cannot act here", |state| {
            matches!(state, State::Cannot { fault: Fault::Machine | Fault::Reading, .. })
        }),
    ];
    for (heading, belongs) in groups {
        let items = fold(plan.steps.iter().filter(|step| belongs(&step.state)));
        if !items.is_empty() {
            blocks.push(Block::Heading(heading.to_owned()));
            blocks.extend(items);
        }
    }
    blocks
}

/// How a machine compares with what was asked for: only what differs, and why the rest cannot be told.
pub fn verify(title: &str, plan: &Plan) -> Vec<Block> {
    let mut blocks = vec![Block::Text(title.to_owned()), Block::Text(verdicts(plan))];
    for verdict in [Verdict::Differs, Verdict::PendingReboot, Verdict::Unknown, Verdict::NotAvailable] {
        let items = fold(plan.steps.iter().filter(|step| Verdict::of(step) == Some(verdict)));
        if !items.is_empty() {
            blocks.push(Block::Heading(verdict.heading().to_owned()));
            blocks.extend(items);
        }
    }
    blocks
}

/// How one knob compares with what was asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// It is as asked.
    Same,
    /// It shows something else.
    Differs,
    /// It will be as asked after the next boot, or is still to be prepared for it.
    PendingReboot,
    /// This machine does not have it.
    NotAvailable,
    /// It could not be read, or only a living process or a script could tell.
    Unknown,
}

impl Verdict {
    /// The verdict on a step; none where there is nothing to compare.
    pub fn of(step: &Step) -> Option<Self> {
        Some(match &step.state {
            State::Same { .. } => Self::Same,
            State::Change { when: When::Now, .. } | State::Cannot { fault: Fault::Profile, .. } => {
                Self::Differs
            }
            State::Change { when: When::AfterReboot, .. } => Self::PendingReboot,
            State::Cannot { fault: Fault::Machine, .. } => Self::NotAvailable,
            State::Cannot { fault: Fault::Reading, .. } | State::Hold => Self::Unknown,
            State::Run | State::RunAgain => match step.wish.want {
                Want::Run { verify: None, .. } => return None,
                _ => Self::Unknown,
            },
            State::Leave(_) | State::Overruled { .. } => return None,
        })
    }

    fn heading(self) -> &'static str {
        match self {
            Self::Same => "As asked",
            Self::Differs => "Differs",
            Self::PendingReboot => "After the next boot",
            Self::NotAvailable => "Not available here",
            Self::Unknown => "Cannot be told",
        }
    }
}

fn overview(plan: &Plan) -> String {
    let count = |belongs: Belongs| plan.steps.iter().filter(|step| belongs(&step.state)).count();
    let now = count(|state| matches!(state, State::Change { when: When::Now, .. }));
    let later = count(|state| matches!(state, State::Change { when: When::AfterReboot, .. }));
    let right = count(|state| matches!(state, State::Same { .. } | State::Leave(_)));
    let run = count(|state| matches!(state, State::Run));
    let again = count(|state| matches!(state, State::RunAgain));
    let hold = count(|state| matches!(state, State::Hold));
    let wrong = plan.mistakes().count();
    let cannot = count(|state| matches!(state, State::Cannot { .. })) - wrong;
    let parts = [
        (now, "to change now"),
        (later, "to change for the next boot"),
        (run, "to run"),
        (again, "to run again"),
        (hold, "need a living process"),
        (right, "right already"),
        (cannot, "cannot act here"),
        (wrong, "wrong in the profile"),
    ];
    sentence(&parts, "nothing is asked for")
}

fn verdicts(plan: &Plan) -> String {
    let count = |verdict| plan.steps.iter().filter(|step| Verdict::of(step) == Some(verdict)).count();
    let parts = [
        (count(Verdict::Differs), if count(Verdict::Differs) == 1 { "differs" } else { "differ" }),
        (count(Verdict::PendingReboot), "wait for the next boot"),
        (count(Verdict::Unknown), "cannot be told"),
        (
            count(Verdict::NotAvailable),
            if count(Verdict::NotAvailable) == 1 {
                "is not available here"
            } else {
                "are not available here"
            },
        ),
        (count(Verdict::Same), if count(Verdict::Same) == 1 { "is as asked" } else { "are as asked" }),
    ];
    sentence(&parts, "there is nothing to compare")
}

fn sentence(parts: &[(usize, &str)], otherwise: &str) -> String {
    let told: Vec<String> =
        parts.iter().filter(|(count, _)| *count > 0).map(|(count, what)| format!("{count} {what}")).collect();
    if told.is_empty() { otherwise.to_owned() } else { told.join(", ") }
}

/// One line for all steps that come from one option and say the same.
fn fold<'p>(steps: impl Iterator<Item = &'p Step>) -> Vec<Block> {
    let mut groups: Vec<(&Step, String, Vec<String>)> = Vec::new();
    for step in steps {
        let what = what(step);
        let name = name(step);
        match groups.iter_mut().rev().find(|(first, said, _)| {
            first.wish.origin == step.wish.origin && first.wish.option == step.wish.option && *said == what
        }) {
            Some((_, _, names)) => names.push(name),
            None => groups.push((step, what, vec![name])),
        }
    }
    groups.into_iter().map(|(step, what, names)| item(step, &what, &names)).collect()
}

fn item(step: &Step, what: &str, names: &[String]) -> Block {
    let shown = names.iter().take(NAMES_SHOWN).cloned().collect::<Vec<_>>().join(", ");
    let shown = match names.len() {
        0..=NAMES_SHOWN => shown,
        more => format!("{shown} and {} more", more - NAMES_SHOWN),
    };
    let mut lines = vec![format!("from {}", step.wish.origin)];
    if let State::Change { when: When::AfterReboot, .. } = step.state {
        lines.push("acts after the next boot".to_owned());
    }
    if let Some(risk) = &step.wish.risk {
        lines.push(format!("risk: {risk}"));
    }
    let title = if what.is_empty() { shown } else { format!("{shown}: {what}") };
    Block::Item { title, lines }
}

/// What a step is about: the knob, what is run, or the option.
fn name(step: &Step) -> String {
    let wish = &step.wish;
    if let Some(knob) = wish.knob() {
        return knob.to_string();
    }
    match (&wish.want, wish.option.as_str(), &wish.device) {
        (Want::Run { act, .. }, _, _) => act.to_string(),
        (_, "", _) => format!("[{}]", wish.unit),
        (_, option, Some(device)) => format!("{option} of {device}"),
        (_, option, None) => option.to_owned(),
    }
}

fn what(step: &Step) -> String {
    match &step.state {
        State::Same { value } => format!("{} already", short(value)),
        State::Change { from, to, .. } => format!("{} → {}", short(from), short(to)),
        State::Run => String::new(),
        State::RunAgain => "has run already, and runs again when applied".to_owned(),
        State::Hold => hold(step),
        State::Leave(why) | State::Cannot { why, .. } => why.clone(),
        State::Overruled { by } => format!("overruled by {by}"),
    }
}

/// A value in a line: a whole file is only counted, and what one line shows stays as it is.
fn short(value: &Value) -> String {
    match value.text().map(|text| text.trim_end().lines().count()) {
        Some(lines) if lines > 1 => format!("a text of {lines} lines"),
        _ => value.to_string(),
    }
}

fn hold(step: &Step) -> String {
    match &step.wish.want {
        Want::Hold(Hold::CpuDmaLatency { latency_us }) => {
            format!("wake-up latency of at most {latency_us} µs")
        }
        Want::Hold(Hold::Timestamping) => "a time-stamping socket kept open".to_owned(),
        Want::Hold(Hold::Scheduler) => "new tasks are scheduled as asked".to_owned(),
        Want::Hold(Hold::Dynamic) => "changes with the load".to_owned(),
        Want::Hold(Hold::HotPlug) => "devices that appear later".to_owned(),
        _ => String::new(),
    }
}

/// `zenkai.plan/1`.
pub fn plan_json(names: &[String], plan: &Plan) -> serde_json::Result<Json> {
    Ok(serde_json::json!({
        "schema": "zenkai.plan/1",
        "zenkai": env!("CARGO_PKG_VERSION"),
        "names": names,
        "changes": !plan.is_empty(),
        "steps": serde_json::to_value(&plan.steps)?,
    }))
}

/// `zenkai.verify/1`: every step with its verdict.
pub fn verify_json(names: &[String], plan: &Plan) -> serde_json::Result<Json> {
    let mut steps = Vec::new();
    for step in &plan.steps {
        let mut value = serde_json::to_value(step)?;
        if let Some(map) = value.as_object_mut() {
            map.insert("verdict".to_owned(), serde_json::to_value(Verdict::of(step))?);
        }
        steps.push(value);
    }
    Ok(serde_json::json!({
        "schema": "zenkai.verify/1",
        "zenkai": env!("CARGO_PKG_VERSION"),
        "names": names,
        "steps": steps,
    }))
}
