//! Two made-up recordings on one page, and the differences of two made-up machines.

#![expect(clippy::disallowed_methods, reason = "the test makes files for the browser")]

use serde_json::json;
use zenkai_diagnose::Impact;
use zenkai_diagnose::difference::{
    Changeable, Comparison, Difference, NotCompared, Reading, Slower, Suspicion, Which,
};
use zenkai_facts::{Facts, observe};
use zenkai_host::FakeHost;
use zenkai_measure::experiment::made_up::Recipe;

use super::super::tests::MadeUp;
use super::super::{BeforeAfter, States, before_after, before_after_json};
use super::{before_after_html, browser, difference_html, tests::balanced};
use crate::{Detail, Style, render};

const HOSTILE: &str =
    "</title></script><script>alert(1)</script><img src=x onerror=\"alert(2)\"> & \u{202e}'\"";

fn reading(value: &str) -> Reading {
    Reading { value: Some(value.to_owned()), unavailable: None, source: "/proc/sys/vm/made_up".to_owned() }
}

fn difference(suspicion: Suspicion, text: &str, changeable: Changeable) -> Difference {
    Difference {
        suspicion,
        group: "memory".to_owned(),
        subject: text.to_owned(),
        what: format!("vm.made_up {text}"),
        path: "memory.made_up".to_owned(),
        a: reading(text),
        b: reading(&format!("{text} too")),
        count: 1,
        slower: None,
        check: None,
        changeable,
        facts: Vec::new(),
        places: Vec::new(),
    }
}

fn comparison(text: &str) -> Comparison {
    let mut finding = difference(Suspicion::Finding, text, Changeable::Now);
    finding.facts.push(difference(Suspicion::Known, text, Changeable::Now));
    finding.slower = Some(Slower {
        side: Which::B,
        check: "made-up-check",
        why: format!("{text} is slow"),
        impact: Impact::Large,
        effect: "a made-up effect",
        other: format!("{text} is fine"),
        remedy: vec![text.to_owned()],
    });
    let others = (0..30).map(|_| difference(Suspicion::Other, text, Changeable::Software));
    let paths = vec![text.to_owned(); 3];
    Comparison {
        a: text.to_owned(),
        b: format!("{text} b"),
        notes: vec![text.to_owned()],
        differences: std::iter::once(finding).chain(others).collect(),
        not_compared: vec![NotCompared { side: Which::A, reason: text.to_owned(), paths }],
        compared: 500,
        sysctls: 90,
    }
}

/// Everything that a report needs.
struct Made {
    trials: MadeUp,
    facts: Facts,
    comparison: Comparison,
    names: [String; 2],
    warnings: Vec<String>,
}

impl Made {
    fn new(recipe: &Recipe, text: &str) -> Self {
        let facts = observe(&FakeHost::new(&[("/proc/sys/kernel/osrelease", "6.1.0-made-up\n")]));
        let names = [text.to_owned(), format!("{text} b")];
        let (trials, comparison) = (MadeUp::apart(recipe), comparison(text));
        Self { trials, facts, comparison, names, warnings: vec![text.to_owned()] }
    }

    fn report(&self, carried: usize) -> BeforeAfter<'_> {
        BeforeAfter {
            experiment: self.trials.shown(),
            names: [&self.names[0], &self.names[1]],
            laid_down: [1_700_000_000, 1_700_500_000],
            warnings: &self.warnings,
            states: Some(self.states(carried)),
        }
    }

    fn states(&self, carried: usize) -> States<'_> {
        States { facts: [&self.facts, &self.facts], comparison: &self.comparison, carried }
    }
}

fn text(report: &BeforeAfter) -> String {
    render(&before_after(report, Detail::Findings), Style { width: 1000, colour: false })
}

#[test]
fn a_clear_change_is_never_called_proof() {
    let made = Made::new(&Recipe { effect: 0.1, noise: 0.005, ..Recipe::default() }, "old");
    let report = made.report(1);
    let said = text(&report);
    let first = said.lines().next().unwrap();
    assert!(
        first.starts_with("  undecided  after is 9.") || first.starts_with("  undecided  after is 10."),
        "{said}"
    );
    assert!(
        said.contains("slower than before [") && said.contains("why, two recordings cannot tell"),
        "{said}"
    );
    for wanted in [
        "It cannot show",
        "as if each run stood alone",
        "clock explains",
        "Of what differs, 1 setting can be changed",
        "  zenkai bisect --from old -- made-up-workload --size 'big one'",
        "30 differences cannot be changed while the machine runs.",
        "  zenkai record --runs 20 --label old-again -- made-up-workload",
        "made-up-check",
        "31 differences in 500 values",
    ] {
        assert!(said.contains(wanted), "{wanted}:\n{said}");
    }
    for never in ["pairs", ": different", ": equal", "at most one in ten"] {
        assert!(!said.contains(never), "{never}:\n{said}");
    }
    let json = before_after_json(&report).unwrap();
    assert_eq!((&json["verdict"], &json["proof"]), (&json!("undecided"), &json!(false)));
    assert_eq!(json["schema"], "zenkai.before-after/1");
    assert!(json["effect"].as_f64().unwrap() > 8.0 && json["before"]["runs"] == 20, "{json}");
    assert_eq!(json["diff"]["differences"].as_array().unwrap().len(), 31);
    assert_eq!(json["next"].as_array().unwrap().len(), 2);
}

#[test]
fn what_cannot_be_told_is_said() {
    let made = Made::new(&Recipe { effect: 0.0, pairs: 6, noise: 0.08, ..Recipe::default() }, "old");
    let said = text(&made.report(0));
    assert!(said.contains("after and before cannot be told apart by these runs: time changes by"), "{said}");
    assert!(said.contains("Nothing of what differs can be turned back and forth"), "{said}");
    assert!(!said.contains("zenkai bisect") && !said.contains("explains"), "{said}");
    let few = Made::new(&Recipe { pairs: 2, ..Recipe::default() }, "old");
    assert!(text(&few.report(0)).contains("too few runs"), "{}", text(&few.report(0)));
    let failing = Made::new(&Recipe { fail_every: 1, ..Recipe::default() }, "old");
    let said = text(&failing.report(0));
    assert!(said.contains("cannot be compared in time: undecided (failed runs: 20 against 20)"), "{said}");
    let mut without = made.report(0);
    without.states = None;
    assert!(!text(&without).contains("What differs"));
    balanced(&before_after_html(&without));
}

#[test]
fn hostile_names_stay_text_on_both_pages() {
    let mut made = Made::new(&Recipe { fail_every: 7, ..Recipe::default() }, HOSTILE);
    made.trials.plan.workload = vec![HOSTILE.into()];
    made.trials.plan.metric.name = HOSTILE.into();
    for page in [before_after_html(&made.report(2)), difference_html(&made.states(2))] {
        assert_eq!((page.matches("<script").count(), page.matches("</script").count()), (1, 1));
        assert!(!page.contains("<img") && !page.contains('\u{202e}'));
        assert!(page.contains("&lt;script&gt;alert(1)"), "it is shown, as text");
        assert!(!page.contains("NaN") && !page.contains("inf\""));
        balanced(&page);
    }
}

#[test]
fn remedies_can_be_copied_one_by_one() {
    let mut made = Made::new(&Recipe::default(), "old");
    let slower = made.comparison.differences.iter_mut().find_map(|difference| difference.slower.as_mut());
    slower.unwrap().remedy = vec!["echo 1 > /sys/a".to_owned(), "echo 1 > /sys/b".to_owned()];
    let page = difference_html(&made.states(0));
    assert!(page.contains("<pre>echo 1 &gt; /sys/a</pre>") && page.contains("<pre>echo 1 &gt; /sys/b</pre>"));
}

#[test]
fn a_hundred_thousand_differences_stay_a_page() {
    let mut made = Made::new(&Recipe::default(), &"long".repeat(300));
    let one = made.comparison.differences[1].clone();
    made.comparison.differences.extend(std::iter::repeat_n(one, 100_000));
    let page = difference_html(&made.states(0));
    assert!(page.len() < 2_000_000, "{} bytes", page.len());
    assert!(page.contains("99630 more are in"), "the rest is counted");
}

#[test]
fn a_browser_shows_both_recordings_and_the_differences() {
    let Some(program) = browser::browser() else { return };
    let recipe = Recipe { effect: 0.1, fail_every: 13, noise: 0.02, idle_channels: 30, ..Recipe::default() };
    let made = Made::new(&recipe, "old");
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("report.html"), before_after_html(&made.report(1))).unwrap();
    let found = browser::harness(program, dir.path(), "1000");
    assert_eq!(found["errors"], json!([]), "{found}");
    assert_eq!((&found["script"], &found["verdict"]), (&json!("on"), &json!("undecided")));
    assert!(found["sentenceTop"].as_f64().unwrap() < 200.0, "{found}");
    assert_eq!((&found["titles"], &found["marks"]), (&json!(0), &json!(40)), "{found}");
    assert_eq!((&found["findings"], &found["differences"]), (&json!(1), &json!(31)), "{found}");
    assert_eq!(found["commands"][0], "zenkai bisect --from old -- made-up-workload --size 'big one'");
    assert_eq!(
        found["headings"],
        json!(["cpu.usr", "clock.mean", "context.switches"]),
        "vmstat first, in our order"
    );
    assert!(found["tip"].as_str().unwrap().starts_with("run 1, before: "), "{found}");
    assert_eq!((found["zoomed"].as_bool(), found["whole"].as_bool()), (Some(true), Some(true)));
    let narrow = browser::harness(program, dir.path(), "380");
    assert_eq!(narrow["overflow"], 0, "a telephone does not scroll sideways: {narrow}");
    // Long names, hostile ones too, do not push the page wider than the window.
    let long = format!("/var/lib/{}{HOSTILE}", "a-very-long-name/".repeat(20));
    let made = Made::new(&recipe, &long);
    std::fs::write(dir.path().join("report.html"), before_after_html(&made.report(3))).unwrap();
    let narrow = browser::harness(program, dir.path(), "380");
    assert_eq!((&narrow["overflow"], &narrow["errors"]), (&json!(0), &json!([])), "{narrow}");
    browser::screenshots("before-after-long-", &before_after_html(&made.report(3)));
    browser::screenshots("diff-", &difference_html(&Made::new(&recipe, "old").states(3)));
}
