//! `zenkai analyze` and `zenkai report` on stored experiments, made up by a seeded generator, and on damaged ones.

use std::fs;
use std::path::Path;

use serde_json::Value;
use zenkai::cli::Exit;
use zenkai_measure::experiment::made_up::Recipe;
use zenkai_measure::experiment::{Store, analyze};

use crate::zenkai;

/// Writes the made-up experiment of `recipe` into `dir`.
fn store(recipe: &Recipe, dir: &Path) -> Store {
    let plan = recipe.plan();
    let trials = recipe.trials(&plan);
    let mut store = Store::create(dir, plan).unwrap();
    for trial in trials {
        store.append(trial).unwrap();
    }
    store
}

#[test]
fn analyze_recomputes_the_verdict_to_the_last_bit() {
    let dir = tempfile::tempdir().unwrap();
    let store = store(&Recipe::default(), dir.path());
    let called = zenkai(&["analyze", "--json", dir.path().to_str().unwrap()]);
    assert_eq!(called.exit, Exit::Fine, "{}", called.err);
    let found = analyze(&store.plan, &store.trials).unwrap();
    let look = found[0].judgement.looks.last().unwrap();
    let json: Value = serde_json::from_str(&called.out).unwrap();
    assert_eq!(json["verdict"], "different");
    assert_eq!(json["p"].as_f64().map(f64::to_bits), Some(look.p.to_bits()));
    assert_eq!(json["effect"].as_f64().map(f64::to_bits), look.change.map(|change| change.percent.to_bits()));
    let again = zenkai(&["analyze", "--json", dir.path().to_str().unwrap()]);
    assert_eq!(again.out, called.out);
    let text = zenkai(&["analyze", dir.path().to_str().unwrap()]).out;
    assert!(text.starts_with("  different  performance is"), "{text}");
}

#[test]
fn report_writes_all_three_formats() {
    let dir = tempfile::tempdir().unwrap();
    drop(store(&Recipe::default(), dir.path()));
    fs::write(dir.path().join("host.json"), "{\"cpu\": {\"model_name\": \"Some CPU\"}}").unwrap();
    let name = dir.path().to_str().unwrap();
    let text = zenkai(&["report", name]);
    assert_eq!(text.exit, Exit::Fine, "{}", text.err);
    assert!(text.out.contains("clock explains"), "{}", text.out);
    let json: Value = serde_json::from_str(&zenkai(&["report", name, "--format", "json"]).out).unwrap();
    assert_eq!(json["comparisons"][0]["explanation"]["splits"][0]["of"], "cpu");
    let page = dir.path().join("report.html");
    let called = zenkai(&["report", name, "-o", page.to_str().unwrap()]);
    assert_eq!((called.exit, called.out.as_str()), (Exit::Fine, ""), "{}", called.err);
    let html = fs::read_to_string(page).unwrap();
    assert!(html.starts_with("<!DOCTYPE html>") && html.trim_end().ends_with("</html>"));
}

#[test]
fn what_is_no_experiment_is_said_with_file_and_remedy() {
    let dir = tempfile::tempdir().unwrap();
    let name = dir.path().to_str().unwrap().to_owned();
    let fails = |wanted: &str| {
        for command in ["analyze", "report"] {
            let called = zenkai(&[command, &name]);
            assert_eq!(called.exit, Exit::Usage, "{}", called.out);
            assert!(called.err.contains(wanted), "{wanted}: {}", called.err);
        }
    };
    fails("holds no experiment");
    drop(store(&Recipe::default(), dir.path()));
    let trials = dir.path().join("trials.jsonl");
    let good = fs::read_to_string(&trials).unwrap();

    fs::write(&trials, good.replacen("\"arm\":0", "\"arm\":1", 1)).unwrap();
    fails("not what the plan's seed says");
    fs::write(&trials, good.replacen("\"block\":1,", "\"block\":7,", 1)).unwrap();
    fails("experiment");
    fs::write(&trials, good.replacen("\"value\":", "\"value\":no", 1)).unwrap();
    fails("trials.jsonl, line 1");
    fs::remove_file(&trials).unwrap();
    fails("trials.jsonl");
    fs::write(&trials, &good).unwrap();
    let plan = dir.path().join("experiment.json");
    let whole = fs::read_to_string(&plan).unwrap();
    fs::write(&plan, whole.replacen("\"draws\": ", "\"draws\": 99999999999999", 1)).unwrap();
    fails("draws are more than");
    for looks in ["8, 8,", "5000,", &"1, ".repeat(200)] {
        fs::write(&plan, whole.replacen("\"looks\": [", &format!("\"looks\": [{looks}"), 1)).unwrap();
        fails("the looks are not");
    }
    let arm = r#"{"name": "a", "spec": "now"},"#;
    fs::write(&plan, whole.replacen("\"arms\": [", &format!("\"arms\": [{}", arm.repeat(2_000)), 1)).unwrap();
    fails("arms are more than");
    fs::write(&plan, "[]").unwrap();
    fails("experiment.json, line 1");
}

#[test]
fn a_trial_cut_off_by_a_crash_and_unreadable_extras_do_not_hide_the_verdict() {
    let dir = tempfile::tempdir().unwrap();
    drop(store(&Recipe::default(), dir.path()));
    let trials = dir.path().join("trials.jsonl");
    let mut text = fs::read_to_string(&trials).unwrap();
    text.push_str("{\"block\":99,\"att");
    fs::write(&trials, text).unwrap();
    fs::write(dir.path().join("host.json"), "{\"cpu\": ").unwrap();
    let called = zenkai(&["report", dir.path().to_str().unwrap()]);
    assert_eq!(called.exit, Exit::Fine, "{}", called.err);
    assert!(called.out.contains("different") && called.out.contains("host.json: EOF"), "{}", called.out);
}

#[test]
fn export_and_import_go_round_and_never_prove() {
    let dir = tempfile::tempdir().unwrap();
    drop(store(&Recipe { fixed: true, ..Recipe::default() }, dir.path()));
    let name = dir.path().to_str().unwrap();
    for format in ["go", "hyperfine", "pyperf", "phoronix", "csv"] {
        let file = dir.path().join(format);
        let file = file.to_str().unwrap();
        let called = zenkai(&["export", name, "--to", format, "-o", file]);
        assert_eq!(called.exit, Exit::Fine, "{}", called.err);
        let text = fs::read_to_string(file).unwrap();
        assert_eq!(zenkai(&["export", name, "--to", format]).out, text);
        // Trials run in random order, so the first line of a table need not be the first arm.
        let first = if format == "csv" { vec!["--first", "balanced (made up)"] } else { Vec::new() };
        let json = zenkai(&[vec!["import", file, "--from", format, "--json"], first].concat()).out;
        let json: Value = serde_json::from_str(&json).unwrap();
        assert_eq!((&json["verdict"], &json["proof"]), (&Value::from("undecided"), &Value::from(false)));
        let percent = json["comparisons"][0]["percent"].as_f64().unwrap();
        assert!((percent + 8.0).abs() < 1.5, "{format}: {percent}");
        let text = zenkai(&["import", file, "--from", format]).out;
        assert!(text.starts_with("Undecided: ") && text.contains("not proof"), "{text}");
    }
    let called = zenkai(&["import", "/etc/hostname", "--from", "hyperfine"]);
    assert_eq!(called.exit, Exit::Usage, "{}", called.out);
    assert!(called.err.contains("/etc/hostname: line 1") && called.err.contains("--from"), "{}", called.err);
}

/// What `program ARGS…` prints, if it is installed.
fn printed(program: &str, args: &[&str]) -> Option<String> {
    let Ok(output) = std::process::Command::new(program).args(args).output() else {
        eprintln!("skipped: no {program} here");
        return None;
    };
    assert!(output.status.success(), "{program}: {}", String::from_utf8_lossy(&output.stderr));
    Some(String::from_utf8(output.stdout).unwrap())
}

#[test]
fn other_programs_read_what_we_write_and_we_read_theirs() {
    let dir = tempfile::tempdir().unwrap();
    drop(store(&Recipe { fixed: true, ..Recipe::default() }, dir.path()));
    let name = dir.path().to_str().unwrap();
    let file = |name: &str| dir.path().join(name).to_str().unwrap().to_owned();
    for format in ["go", "pyperf"] {
        assert_eq!(zenkai(&["export", name, "--to", format, "-o", &file(format)]).exit, Exit::Fine);
    }
    if let Some(table) = printed("benchstat", &["-col", "/arm", &file("go")]) {
        assert!(table.contains("balanced_(made_up)") && table.contains("performance"), "{table}");
        assert!(table.contains("(p=0.000 n=20)"), "{table}");
    }
    if let Some(shown) = printed("pyperf", &["show", &file("pyperf")]) {
        assert!(shown.contains("made-up-workload: performance"), "{shown}");
    }
    let theirs = file("hyperfine");
    let commands = ["--runs", "3", "--warmup", "0", "--export-json", &theirs, "true", "sleep 0.01"];
    if printed("hyperfine", &commands).is_some() {
        let called = zenkai(&["import", &theirs, "--from", "hyperfine"]);
        assert!(
            called.out.contains("sleep 0.01") && called.out.contains("3 and 3"),
            "{}{}",
            called.out,
            called.err
        );
    }
}
