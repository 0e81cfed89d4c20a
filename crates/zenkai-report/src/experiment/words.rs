//! Numbers and verdicts in words.

use serde_json::Value;
use zenkai_measure::experiment::{Comparison, Plan, Trial};
pub(crate) use zenkai_measure::quantity::{
    of_channel, percents, plus, prefix, quantity, shown_as, signed, unit_with,
};
use zenkai_measure::sampler::Energy;
use zenkai_measure::statistics::verdict::{Better, Change, Look, Verdict};
use zenkai_measure::workload::prepare;

use super::{Experiment, cut};

/// `[−6.3, −4.1]`, with `…` where the interval has no end.
pub(super) fn interval(low: Option<f64>, high: Option<f64>) -> String {
    if low.is_none() && high.is_none() {
        return "(no limits)".to_owned();
    }
    let limit = |limit: Option<f64>| {
        limit.map_or("…".to_owned(), |limit| format!("{}{}", plus(limit), percents(limit, 1)))
    };
    format!("[{}, {}]", limit(low), limit(high))
}

/// Failed trials of both arms, where there are any.
fn failed(what: &str, [of_a, of_b]: [usize; 2]) -> String {
    if of_a + of_b == 0 { String::new() } else { format!(" (failed {what}: {of_b} against {of_a})") }
}

/// A p-value: as many digits as it is worth, and never zero, which none is.
pub(crate) fn p_value(p: f64) -> String {
    if p < 0.001 { format!("{:.4}", p.max(0.0001)) } else { format!("{p:.3}") }
}

/// Whether a metric is spoken of as speed.
fn is_speed(plan: &Plan) -> bool {
    matches!(plan.metric.unit.as_str(), "s" | "1/s" | "/s" | "B/s" | "bit/s" | "Hz")
}

/// "faster", "lower throughput" … for a change of the metric in per cent.
fn direction(plan: &Plan, percent: f64) -> String {
    let better = (percent < 0.0) == (plan.rule.better == Better::Lower);
    match (is_speed(plan), better) {
        (true, true) => "faster".to_owned(),
        (true, false) => "slower".to_owned(),
        (false, _) => {
            format!("{} in {}", if percent < 0.0 { "lower" } else { "higher" }, cut(&plan.metric.name))
        }
    }
}

/// The verdict on one arm in one sentence.
pub fn sentence(experiment: &Experiment, comparison: &Comparison) -> String {
    let plan = experiment.plan;
    let (a, b) = (experiment.short(0), experiment.short(comparison.arm));
    let (a, b) = (a.as_str(), b.as_str());
    if experiment.apart {
        return apart(experiment, comparison, [a, b]);
    }
    let Some(look) = comparison.judgement.looks.last() else {
        let first = plan.rule.looks.first().copied().unwrap_or(0);
        return format!("No verdict yet on {b}: it is first looked at after {first} pairs of trials");
    };
    let rho = digits_short(100.0 * plan.rule.rho);
    match (comparison.judgement.verdict, look.change) {
        (Verdict::Different, Some(change)) => different(plan, [a, b], change, look),
        (Verdict::Different, None) => format!(
            "{b} differs from {a}: {} of its {} trials failed, against {}: different",
            look.failed[1], look.pairs, look.failed[0]
        ),
        (Verdict::Equal, change) => {
            let found =
                change.map_or(String::new(), |change| format!(" {}", interval(change.low, change.high)));
            format!("{b} and {a} are equal within {rho} %{found}: equal")
        }
        (Verdict::Undecided, change) => undecided(plan, comparison, [a, b], change, look),
    }
}

/// What two recordings look like that were not interleaved: never a verdict.
fn apart(experiment: &Experiment, comparison: &Comparison, [a, b]: [&str; 2]) -> String {
    let plan = experiment.plan;
    let Some(look) = comparison.judgement.looks.last() else {
        return format!("Undecided: there are no runs of {b} and {a}");
    };
    let failed = failed("runs", look.failed);
    match look.change {
        Some(change) if look.p <= look.level => format!(
            "{b} is {} % {} than {a} {}; why, two recordings cannot tell: undecided{failed}",
            percents(change.percent.abs(), 1),
            direction(plan, change.percent),
            size(change),
        ),
        Some(change) => format!(
            "{b} and {a} cannot be told apart by these runs: {} changes by {} {}: undecided{failed}",
            cut(&plan.metric.name),
            signed(change.percent),
            interval(change.low, change.high),
        ),
        None => format!("{b} and {a} cannot be compared in {}: undecided{failed}", cut(&plan.metric.name)),
    }
}

/// The interval of a change whose direction is said in words.
fn size(change: Change) -> String {
    let (near, far) =
        if change.percent < 0.0 { (change.high, change.low) } else { (change.low, change.high) };
    let sign = if change.percent < 0.0 { -1.0 } else { 1.0 };
    let limit = |limit: Option<f64>| limit.map_or("…".to_owned(), |limit| percents(limit * sign, 1));
    format!("[{}, {}]", limit(near), limit(far))
}

fn different(plan: &Plan, [a, b]: [&str; 2], change: Change, look: &Look) -> String {
    format!(
        "{b} is {} % {} than {a} {}: different{}",
        percents(change.percent.abs(), 1),
        direction(plan, change.percent),
        size(change),
        failed("trials", look.failed),
    )
}

fn undecided(
    plan: &Plan,
    comparison: &Comparison,
    [a, b]: [&str; 2],
    change: Option<Change>,
    look: &Look,
) -> String {
    let may = |change: Change| {
        let name = cut(&plan.metric.name);
        match (change.low, change.high) {
            (Some(low), Some(high)) => {
                format!("with {b}, {name} may be between {} and {} against {a}", signed(low), signed(high))
            }
            (Some(low), None) => format!("with {b}, {name} may be {} or more against {a}", signed(low)),
            (None, Some(high)) => format!("with {b}, {name} may be {} or less against {a}", signed(high)),
            (None, None) => format!("too few to say how {b} compares with {a}"),
        }
    };
    let found =
        change.map_or_else(|| format!("{b} and {a} cannot be compared in {}", cut(&plan.metric.name)), may);
    // What could have been seen is worth nothing to those who have no numbers.
    let could = look.detectable.filter(|_| change.is_some());
    let could = could.map_or(String::new(), |least| format!("; could have seen ≥ {} %", percents(least, 1)));
    let state = if comparison.judgement.finished { "Undecided" } else { "Undecided so far" };
    format!("{state} after {} pairs: {found}{could}{}", look.pairs, failed("trials", look.failed))
}

/// A round number without needless zeros.
pub(super) fn digits_short(value: f64) -> String {
    let text = format!("{value:.2}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

/// One digit behind the point, none when it is zero.
fn one_decimal(value: f64) -> String {
    let text = format!("{value:.1}");
    text.strip_suffix(".0").unwrap_or(&text).to_owned()
}

/// The verdict as one word.
pub(super) fn word(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Different => "different",
        Verdict::Equal => "equal",
        Verdict::Undecided => "undecided",
    }
}

/// What the interval of a look means, for those who do not read intervals every day.
pub(super) fn reading(experiment: &Experiment, comparison: &Comparison) -> Option<String> {
    let look = comparison.judgement.looks.last()?;
    let change = look.change?;
    let b = experiment.short(comparison.arm);
    let name = cut(&experiment.plan.metric.name);
    Some(format!(
        "With {b}, {name} changes by {} ({}), from {} pairs of trials; p = {}.",
        signed(change.percent),
        confidence("pairs", 1.0 - look.level, change),
        look.pairs,
        p_value(look.p),
    ))
}

/// An interval with its confidence, or that there are too few pairs or runs for one.
pub(super) fn confidence(what: &str, share: f64, change: Change) -> String {
    let share = one_decimal(100.0 * share);
    match (change.low, change.high) {
        (None, None) => format!("too few {what} for a {share} % interval"),
        (low, high) => format!("{share} % interval {} %", interval(low, high)),
    }
}

/// The overall verdict over all arms: different if one is, equal if all are.
pub(super) fn overall(comparisons: &[Comparison]) -> Verdict {
    let of = |wanted: Verdict| move |found: &Comparison| found.judgement.verdict == wanted;
    if comparisons.iter().any(of(Verdict::Different)) {
        Verdict::Different
    } else if !comparisons.is_empty() && comparisons.iter().all(of(Verdict::Equal)) {
        Verdict::Equal
    } else {
        Verdict::Undecided
    }
}

/// A text, or its beginning where it has more than `most` letters.
pub(crate) fn beginning(text: &str, most: usize) -> String {
    match text.char_indices().nth(most) {
        Some((at, _)) => format!("{}…", &text[..at]),
        None => text.to_owned(),
    }
}

/// `1 channel`, `2 channels`.
pub(crate) fn counted(count: usize, noun: &str) -> String {
    format!("{count} {noun}{}", if count == 1 { "" } else { "s" })
}

/// A command as it can be given to a shell again.
pub fn shell(words: &[String]) -> String {
    let plain = |word: &String| {
        !word.is_empty()
            && word.chars().all(|letter| letter.is_ascii_alphanumeric() || "-_./:=,+@%".contains(letter))
    };
    let quoted = words
        .iter()
        .map(|word| if plain(word) { word.clone() } else { format!("'{}'", word.replace('\'', "'\\''")) });
    quoted.collect::<Vec<_>>().join(" ")
}

/// The command that runs the experiment again, with every option that is not the default.
pub(super) fn repeat(plan: &Plan) -> String {
    let mut words = vec!["zenkai".to_owned(), "compare".to_owned()];
    let arms = if plan.aa { plan.arms.get(..1).unwrap_or_default() } else { &plan.arms };
    if plan.aa {
        words.push("--aa".to_owned());
    }
    for arm in arms {
        if arm.parts.is_empty() {
            words.push(arm.spec.clone());
        } else {
            words.extend(arm.parts.iter().cloned());
        }
    }
    words.extend(options(plan));
    if !plan.workload.is_empty() {
        words.push("--".to_owned());
        words.extend(plan.workload.iter().cloned());
    }
    shell(&words)
}

/// The options of a plan that the recommended one would not have.
fn options(plan: &Plan) -> Vec<String> {
    let rule = &plan.rule;
    let most = rule.looks.last().copied().unwrap_or(0);
    let usual =
        Plan::new(plan.arms.clone(), Vec::new(), plan.metric.clone(), rule.better, plan.order_seed, most);
    let mut found = metric_options(plan);
    let mut option = |name: &str, value: String| found.extend([name.to_owned(), value]);
    let percent = |share: f64| format!("{}%", digits_short(100.0 * share));
    if (rule.rho - usual.rule.rho).abs() > 1e-12 {
        option("--rho", percent(rule.rho));
    }
    if let Some(precision) = rule.precision {
        option("--precision", percent(precision));
    }
    if let Some(timeout_s) = plan.timeout_s {
        option("--timeout", format!("{timeout_s}s"));
    }
    let (settle, default) = (plan.settle, usual.settle);
    // Without a switch there is nothing to settle.
    if settle != default && settle.at_most_s > 0.0 {
        option("--settle", format!("{}s..{}s", settle.at_least_s, settle.at_most_s));
    }
    if let Some(sample_s) = plan.sample_s.filter(|sample_s| (sample_s - SAMPLE_S).abs() > 1e-12) {
        option("--interval", format!("{}ms", (1000.0 * sample_s).round()));
    }
    option("--pairs", most.to_string());
    option("--seed", plan.order_seed.to_string());
    if rule.looks.len() == 1 && usual.rule.looks.len() > 1 {
        found.push("--fixed".to_owned());
    }
    if plan.sample_s.is_none() {
        found.push("--no-sample".to_owned());
    }
    found
}

/// The options that ask for the metric of a plan.
pub(super) fn metric_options(plan: &Plan) -> Vec<String> {
    let mut found = Vec::new();
    let mut option = |name: &str, value: &str| found.extend([name.to_owned(), value.to_owned()]);
    let metric = plan.metric.pattern.as_ref().unwrap_or(&plan.metric.name);
    // A tool's own number would be taken where none is named.
    if metric != "time" || prepare(&plan.workload).primary() != "time" {
        option("--metric", metric);
    }
    // The direction of a number that was found in the output is for the user to say.
    if plan.metric.pattern.is_some() {
        option("--better", if plan.rule.better == Better::Lower { "lower" } else { "higher" });
    }
    found
}

/// Seconds from one sample to the next, unless the user says otherwise.
const SAMPLE_S: f64 = 0.25;

/// Time and energy as a pair: never one without the other where energy was measured. `None` where it was not.
pub(super) fn energy(experiment: &Experiment, arm: usize) -> Option<String> {
    let domain = experiment.trials.iter().find_map(Trial::energy_domain)?;
    let explanation = experiment.explanation(arm)?;
    let comparison = experiment.comparisons.iter().find(|comparison| comparison.arm == arm)?;
    let of = |name: &str| {
        if experiment.plan.metric.name == name {
            let change = comparison.judgement.looks.last()?.change?;
            return Some((change.percent, [change.low, change.high]));
        }
        let metric = explanation.metrics.iter().find(|metric| metric.name == name)?;
        Some((metric.percent?, metric.interval))
    };
    let show = |(percent, [low, high]): (f64, [Option<f64>; 2])| {
        format!("{} {} %", signed(percent), interval(low, high))
    };
    let (time, energy) = (of("time")?, of("joules")?);
    let domain = Energy::words(domain);
    Some(format!("Time {}, energy {} (measured: {domain}).", show(time), show(energy)))
}

/// What all of it took: the first trial's start to the last one's end, and the parts of that.
pub(super) fn spent(experiment: &Experiment) -> Option<String> {
    let begun = experiment.trials.iter().map(|trial| trial.started_unix_s).fold(f64::INFINITY, f64::min);
    let ended = experiment.trials.iter().map(|trial| trial.started_unix_s + trial.elapsed_s);
    let whole = ended.fold(f64::NEG_INFINITY, f64::max) - begun;
    let running: f64 = experiment.trials.iter().map(|trial| trial.elapsed_s).sum();
    let settling: f64 = experiment.trials.iter().map(|trial| trial.settled_s).sum();
    // A clock that was set meanwhile, or a file that somebody wrote.
    let is_sane = begun > 0.0 && [whole, running, settling].iter().all(|time| (0.0..1e10).contains(time));
    is_sane.then(|| {
        format!(
            "It took {} in all: {} in the trials, {} in settling.",
            clock(whole),
            clock(running),
            clock(settling)
        )
    })
}

/// Seconds as people read them: `42 s`, `3:07`, `1:02:03`.
pub(super) fn clock(seconds: f64) -> String {
    if seconds < 60.0 {
        return format!("{seconds:.1} s");
    }
    let (minutes, rest) = ((seconds / 60.0).floor(), seconds % 60.0);
    let (hours, minutes) = ((minutes / 60.0).floor(), minutes % 60.0);
    if hours > 0.0 {
        format!("{hours}:{minutes:02}:{:02}", rest.floor())
    } else {
        format!("{minutes}:{:02}", rest.floor())
    }
}

/// The A/A result: how this machine behaves when nothing differs.
pub(super) fn same(experiment: &Experiment) -> String {
    match experiment.same {
        _ if experiment.plan.aa => {
            "This experiment is itself one in which both arms are the same.".to_owned()
        }
        Some(same) => {
            let sentence = same.pointer("/comparisons/0/sentence").and_then(Value::as_str);
            format!("When both arms were the same here: {}", sentence.unwrap_or("the result could not be read"))
        }
        None => "No run with both arms the same is stored beside this experiment. `zenkai compare --aa` makes one: it \
                 shows how often this machine would call equal things different."
            .to_owned(),
    }
}
