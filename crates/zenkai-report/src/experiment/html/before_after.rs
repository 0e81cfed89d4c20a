//! Two recordings on one axis: the page of `zenkai report --before A --after B`.

use super::super::words;
use super::super::{BeforeAfter, Experiment};
use super::page::{Page, legend};
use super::{difference, distribution, document, intervals, section, sections, sequence, series};

/// The report as a page.
pub fn before_after_html(report: &BeforeAfter) -> String {
    let title = format!("undecided: {} against {} · zenkai", report.names[1], report.names[0]);
    document(&title, |page| body(page, report))
}

fn body(page: &mut Page, report: &BeforeAfter) {
    let experiment = &report.experiment;
    let said = report.said();
    page.el("header", &[], |page| header(page, report));
    section(page, "proof", "What this shows, and what it cannot", |page| {
        page.leaf("p", &[], &format!("It shows: {}", said.shows));
        page.leaf("p", &[], "It cannot show:");
        page.el("ul", &[], |page| {
            for text in said.cannot {
                page.leaf("li", &[], text);
            }
        });
    });
    if !said.next.is_empty() {
        section(page, "next", "Which difference is it?", |page| {
            for (sentence, command) in &said.next {
                page.leaf("p", &[], sentence);
                if let Some(command) = command {
                    page.leaf("pre", &[], command);
                }
            }
        });
    }
    section(page, "effect", "The change", |page| {
        page.leaf(
            "p",
            &[("class", "quiet")],
            "The mark is the best estimate, the line its 95 % interval if each run stood alone. Inside the grey zone a \
             difference does not matter.",
        );
        page.el("div", &[("class", "draw")], |page| intervals::intervals(page, experiment));
    });
    section(page, "distribution", "The runs", |page| {
        page.el("div", &[("class", "draw")], |page| distribution::distribution(page, experiment));
        sections::arms(page, experiment);
    });
    section(page, "sequence", "In the order in which they ran", |page| {
        legend(page, &experiment.names());
        page.el("div", &[("class", "draw")], |page| sequence::sequence(page, experiment));
        page.leaf(
            "p",
            &[("class", "quiet")],
            "Dashed: the median of each recording. Shaded: the recording after. What lies between the two is not drawn.",
        );
        sections::failures(page, experiment);
    });
    section(page, "channels", "What the machine did meanwhile", |page| {
        series::series(page, experiment);
        for note in experiment.notes {
            page.leaf("p", &[("class", "quiet")], note);
        }
    });
    if let Some(states) = report.states {
        section(page, "differences", "What differs between the two states of the machine", |page| {
            difference::difference(page, &states);
        });
    }
    explanations(page, experiment);
    section(page, "repeat", "Where this comes from", |page| {
        let words = ["zenkai", "report", "--before", report.names[0], "--after", report.names[1]];
        page.leaf("pre", &[], &words::shell(&words.map(str::to_owned)));
        page.leaf(
            "p",
            &[("class", "quiet")],
            "Each recording is a directory: plan, trials, samples and a capture.",
        );
    });
}

fn header(page: &mut Page, report: &BeforeAfter) {
    let experiment = &report.experiment;
    page.el("div", &[("class", "verdict neutral undecided"), ("data-verdict", "undecided")], |page| {
        page.leaf("span", &[("class", "word")], "undecided");
        for found in experiment.comparisons {
            page.leaf("p", &[("class", "sentence")], &words::sentence(experiment, found));
        }
        if let Some(reading) = report.reading() {
            page.leaf("p", &[("class", "quiet")], &reading);
        }
    });
    page.el("p", &[("class", "quiet")], |page| {
        page.leaf("code", &[], &words::shell(&experiment.plan.workload));
    });
    let head = [
        ("", false),
        ("", false),
        ("recording", false),
        ("laid down", false),
        ("", true),
        ("machine", false),
    ];
    sections::table(page, &head, report.rows());
    for warning in report.warnings {
        page.leaf("p", &[("class", "warning")], &format!("{}.", warning.trim_end_matches('.')));
    }
}

fn explanations(page: &mut Page, experiment: &Experiment) {
    for explanation in experiment.explanations {
        section(page, "explanation", "What goes with it", |page| {
            page.leaf(
                "p",
                &[("class", "quiet")],
                "An explanation, not proof: everything that changed between the two recordings changed together.",
            );
            sections::explanation(page, experiment, explanation);
        });
        if !explanation.metrics.is_empty() {
            section(page, "secondary", "The other numbers", |page| {
                sections::secondary(page, experiment, explanation);
            });
        }
    }
}
