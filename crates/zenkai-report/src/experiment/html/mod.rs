//! One file that needs nothing else: no network, no script to be complete, light and dark, on paper too.
//!
//! The policy in its head lets the browser load nothing at all and run only this script, known by its hash: whatever
//! an arm, a command or a machine is called, it stays text.

mod axis;
mod before_after;
mod difference;
mod distribution;
mod intervals;
mod page;
mod recorded;
mod sections;
mod sequence;
mod series;
mod split;

use super::Experiment;
use super::words;
use page::{Page, legend};

const STYLE: &str = include_str!("style.css");
const SCRIPT: &str = include_str!("script.js");
/// SHA-256 of style sheet and script, base64, as the policy wants them; a test computes them again.
const STYLE_HASH: &str = "Lp5XxpgHtm5R4ENDUpGxWRuIyeFhAfKrjW/ad8FXbE8=";
const SCRIPT_HASH: &str = "C9PH2rEQFmTmOzaFaWhxm35a+LoyIbGBl6nk1sTmlDc=";

pub use before_after::before_after_html;
pub use difference::difference_html;
pub use recorded::recorded_html;

/// An experiment as a page.
pub fn experiment_html(experiment: &Experiment) -> String {
    document(&title(experiment), |page| body(page, experiment))
}

/// A page with head, style and script around what `body` writes.
fn document(title: &str, body: impl FnOnce(&mut Page)) -> String {
    let mut page = Page::default();
    page.fixed("<!DOCTYPE html>\n");
    page.el("html", &[("lang", "en")], |page| {
        head(page, title);
        page.el("body", &[], |page| {
            page.el("main", &[], body);
            page.el("script", &[], |page| page.fixed(SCRIPT));
        });
    });
    page.fixed("\n");
    page.finish()
}

fn head(page: &mut Page, title: &str) {
    let policy = format!(
        "default-src 'none'; style-src 'sha256-{STYLE_HASH}'; script-src 'sha256-{SCRIPT_HASH}'; base-uri 'none'; \
         form-action 'none'"
    );
    page.el("head", &[], |page| {
        page.void("meta", &[("charset", "utf-8")]);
        page.void("meta", &[("http-equiv", "Content-Security-Policy"), ("content", &policy)]);
        page.void("meta", &[("name", "viewport"), ("content", "width=device-width, initial-scale=1")]);
        page.void("meta", &[("name", "color-scheme"), ("content", "light dark")]);
        page.void("meta", &[("name", "referrer"), ("content", "no-referrer")]);
        page.leaf("title", &[], title);
        page.el("style", &[], |page| page.fixed(STYLE));
    });
    page.fixed("\n");
}

fn title(experiment: &Experiment) -> String {
    let verdict = words::word(words::overall(experiment.comparisons));
    format!("{verdict}: {} · zenkai", experiment.names().join(" against "))
}

fn section(page: &mut Page, id: &str, title: &str, body: impl FnOnce(&mut Page)) {
    page.el("section", &[("id", id)], |page| {
        page.leaf("h2", &[], title);
        body(page);
    });
}

fn body(page: &mut Page, experiment: &Experiment) {
    page.el("header", &[], |page| {
        sections::verdicts(page, experiment);
        let trials = experiment.trials.len();
        let laid_down = crate::utc(experiment.plan.created_unix_s);
        page.el("p", &[("class", "quiet")], |page| {
            if experiment.plan.workload.is_empty() {
                page.text("each arm runs its own command");
            } else {
                page.leaf("code", &[], &words::shell(&experiment.plan.workload));
            }
            page.text(&format!(" · {trials} trials · {laid_down}"));
        });
    });
    section(page, "effect", "The effect", |page| {
        page.leaf(
            "p",
            &[("class", "quiet")],
            "The mark is the best estimate, the line the interval that holds the truth with the stated confidence. \
             Inside the grey zone a difference does not matter.",
        );
        page.el("div", &[("class", "draw")], |page| intervals::intervals(page, experiment));
    });
    section(page, "distribution", "The trials of each arm", |page| {
        page.el("div", &[("class", "draw")], |page| distribution::distribution(page, experiment));
        sections::arms(page, experiment);
    });
    section(page, "sequence", "In the order in which they ran", |page| {
        legend(page, &experiment.names());
        page.el("div", &[("class", "draw")], |page| sequence::sequence(page, experiment));
        page.leaf(
            "p",
            &[("class", "quiet")],
            "Dashed: the median of each arm. Shaded: every second block; the order inside a block was drawn at random.",
        );
        sections::failures(page, experiment);
    });
    why(page, experiment);
    section(page, "channels", "What the machine did meanwhile", |page| {
        series::series(page, experiment);
        for note in experiment.notes {
            page.leaf("p", &[("class", "quiet")], note);
        }
    });
    section(page, "settings", "What each arm sets", |page| sections::settings(page, experiment));
    section(page, "host", "The machine", |page| sections::host(page, experiment));
    section(page, "same", "How far to trust it", |page| sections::same(page, experiment));
    section(page, "repeat", "How to repeat", |page| sections::repeat(page, experiment));
}

fn why(page: &mut Page, experiment: &Experiment) {
    if experiment.explanations.is_empty() {
        return;
    }
    section(page, "explanation", "What explains it", |page| {
        page.leaf(
            "p",
            &[("class", "quiet")],
            "An explanation, not proof: what changes together need not cause each other. To prove one setting, compare \
             with that setting alone put back.",
        );
        for explanation in experiment.explanations {
            if experiment.explanations.len() > 1 {
                page.leaf("h3", &[], &experiment.short(explanation.arm));
            }
            sections::explanation(page, experiment, explanation);
        }
    });
    section(page, "secondary", "The other numbers", |page| {
        for explanation in experiment.explanations {
            sections::secondary(page, experiment, explanation);
        }
    });
}

#[cfg(test)]
mod beside;
#[cfg(test)]
mod browser;
#[cfg(test)]
mod tests;
