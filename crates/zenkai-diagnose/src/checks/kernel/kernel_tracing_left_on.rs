//! A tracer or trace events that somebody forgot.

use zenkai_facts::Facts;
use zenkai_tune::Setting;

use crate::{
    Check, Context, Evidence, Finding, Impact, Judgement, Outcome, Remedy, Subject, Subsystem, need,
};

/// See the explanation.
pub(super) static CHECK: Check = Check {
    id: "kernel-tracing-left-on",
    subsystem: Subsystem::Kernel,
    summary: "kernel tracing was left on",
    impact: Impact::Moderate,
    effect: "a function tracer slows all kernel code by a factor, an event costs a fraction of a microsecond each time (estimate)",
    risk: "whoever uses the trace loses it",
    source: "https://docs.kernel.org/trace/ftrace.html",
    explanation: include_str!("kernel_tracing_left_on.md"),
    run,
};

/// Events that fire only when hardware fails; `rasdaemon` and its like keep them on.
const RARE: [&str; 4] = ["ras:", "mce:", "cxl:", "devlink:"];

fn run(facts: &Facts, _context: Context) -> Judgement {
    judge(facts).into()
}

fn judge(facts: &Facts) -> Result<Option<Finding>, Outcome> {
    let tracing = &facts.kernel.tracing;
    let tracer = need(&tracing.current_tracer)?;
    let recording = *need(&tracing.on)?;
    let events = need(&tracing.events)?;
    let costly: Vec<&str> = events
        .iter()
        .map(String::as_str)
        .filter(|name| !RARE.iter().any(|rare| name.starts_with(rare)))
        .collect();
    let busy = tracer != "nop";
    if !recording || (!busy && costly.is_empty()) {
        return Ok(None);
    }
    let dir = tracing.on.source().trim_end_matches("/tracing_on").to_owned();
    let shown = format!("{} of them, such as {}", costly.len(), costly.first().unwrap_or(&"none"));
    let (what, evidence, setting, impact) = if busy {
        (
            format!("the kernel tracer {tracer} is recording"),
            Evidence::of(&tracing.current_tracer).expected("nop"),
            Setting::attribute(tracing.current_tracer.source(), "nop"),
            if tracer.starts_with("function") { Impact::Large } else { Impact::Moderate },
        )
    } else {
        (
            "kernel trace events are recorded".to_owned(),
            Evidence::derived(tracing.events.source(), shown).expected("none"),
            Setting::attribute(format!("{dir}/events/enable"), "0"),
            Impact::Small,
        )
    };
    Ok(Some(
        Finding::new(Subject::Machine, what)
            .with(evidence)
            .with(Evidence::of_switch(&tracing.on))
            .remedy(Remedy::Set(vec![setting]))
            .impact(impact)
            .because("kernel tracing was left on"),
    ))
}

#[cfg(test)]
mod tests {
    use crate::checks::testing::findings;

    fn impact(tracer: &str, on: &str, events: &str) -> Option<crate::Impact> {
        let enable = if events.is_empty() { "0" } else { "X" };
        let files = [
            ("current_tracer", tracer),
            ("tracing_on", on),
            ("events/enable", enable),
            ("set_event", events),
        ];
        let files = files.map(|(name, value)| (format!("/sys/kernel/tracing/{name}"), format!("{value}\n")));
        findings(&super::CHECK, &files).first().and_then(|finding| finding.impact)
    }

    #[test]
    fn only_what_records() {
        assert_eq!(impact("function", "1", ""), Some(crate::Impact::Large));
        assert_eq!(impact("nop", "1", "sched:sched_switch"), Some(crate::Impact::Small));
        assert_eq!(impact("nop", "1", ""), None);
        assert_eq!(impact("function", "0", ""), None);
        assert_eq!(impact("nop", "1", "ras:mc_event"), None);
    }
}
