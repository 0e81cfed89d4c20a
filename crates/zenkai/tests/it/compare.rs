//! `zenkai compare` with arms that change nothing: verdicts, bad input, signals. Those that change this machine are in
//! `compare_live`.

use std::{
    fs,
    os::unix::process::CommandExt as _,
    path::Path,
    process::{Child, Command, Output, Stdio},
    thread,
    time::{Duration, Instant},
};

use serde_json::Value;

use crate::real_tuned::zenkai as program;

/// The shortest experiment: six pairs.
pub(crate) const SHORT: [&str; 4] = ["compare", "--no-sample", "--pairs", "6"];

pub(crate) fn text(path: &Path) -> &str {
    path.to_str().unwrap()
}

pub(crate) fn said(output: &Output) -> String {
    [&output.stdout[..], &output.stderr].map(String::from_utf8_lossy).concat()
}

/// A short experiment, kept in `dir`.
pub(crate) fn short(dir: &Path, args: &[&str]) -> Command {
    let mut command = program(&SHORT);
    command.args(["--out", text(dir)]).args(args);
    command
}

/// Runs it and wants this exit code.
fn must(dir: &Path, args: &[&str], code: i32) -> Output {
    let output = short(dir, args).output().unwrap();
    assert_eq!(output.status.code(), Some(code), "{args:?}: {}", said(&output));
    output
}

fn json(bytes: &[u8]) -> Value {
    serde_json::from_slice(bytes)
        .unwrap_or_else(|error| panic!("{error}: {}", String::from_utf8_lossy(bytes)))
}

/// Lines of `trials.jsonl` that are whole.
pub(crate) fn trials(dir: &Path) -> Vec<Value> {
    let text = fs::read_to_string(dir.join("trials.jsonl")).unwrap_or_default();
    let whole = text.rfind('\n').map_or(0, |end| end + 1);
    text[..whole].lines().map(|line| json(line.as_bytes())).collect()
}

/// Waits for something that must come.
pub(crate) fn until(what: &str, mut is: impl FnMut() -> bool) {
    let start = Instant::now();
    while !is() {
        assert!(start.elapsed() < Duration::from_secs(60), "waited in vain: {what}");
        thread::sleep(Duration::from_millis(5));
    }
}

/// Started with its output kept, and with no signal ignored, also when the tests run in the background.
pub(crate) fn start(command: Command) -> Child {
    start_with("--default-signal", &command)
}

/// Started by env(1) with this option.
fn start_with(option: &str, command: &Command) -> Child {
    let mut env = Command::new("env");
    env.arg(option).arg(command.get_program()).args(command.get_args()).stdin(Stdio::null());
    env.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
}

pub(crate) fn send(signal: &str, child: &Child) {
    assert!(Command::new("kill").args([signal, &child.id().to_string()]).status().unwrap().success());
}

#[test]
fn commands_have_a_verdict_that_analyze_repeats_to_the_last_bit() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path().join("new");
    let output = must(&dir, &["--json", "cmd:true", "cmd:sleep 0.3"], 0);
    let found = json(&output.stdout);
    assert_eq!((&found["verdict"], &found["pairs"]), (&"different".into(), &6.into()), "{found}");
    assert!(found["interval"][0].as_f64().unwrap() > 0.0);
    let again = program(&["analyze", "--json", text(&dir)]).output().unwrap();
    let again = json(&again.stdout);
    for field in ["verdict", "effect", "interval", "p", "pairs"] {
        assert_eq!(found[field].to_string(), again[field].to_string(), "{field}");
    }
    assert_eq!(found["comparisons"][0]["looks"].to_string(), again["comparisons"][0]["looks"].to_string());
    assert!(dir.join("report.html").is_file());
    let output = must(&dir, &["cmd:true", "cmd:false"], 2);
    assert!(said(&output).contains("has been used for an experiment already"), "{}", said(&output));
    assert_eq!(trials(&dir).len(), 12, "the experiment that was there is as it was");
}

#[test]
fn one_arm_with_itself_and_then_others_that_remember_it() {
    let dir = tempfile::tempdir().unwrap();
    let run = |args: &[&str]| {
        let output = unprivileged(dir.path()).args(args).output().unwrap();
        assert!(output.status.success(), "{args:?}: {}", said(&output));
        output.stdout
    };
    let found = json(&run(&["--aa", "--json", "--out", "same", "--", "sleep", "0.01"]));
    assert_eq!((&found["aa"], &found["arms"][1]["name"]), (&true.into(), &"now (B)".into()));
    assert!(!dir.path().join("same/aa.json").exists());
    run(&["--out", "other", "cmd:true", "cmd:sleep 0.1"]);
    let kept = json(&fs::read(dir.path().join("other/aa.json")).unwrap());
    assert_eq!(kept["comparisons"][0]["sentence"], found["comparisons"][0]["sentence"]);
    let page = fs::read_to_string(dir.path().join("other/report.html")).unwrap();
    assert!(page.contains("When both arms were the same here: "), "the report shows it");
    // Another metric, and what is no result of ours.
    let score = ["--metric", r"score=(\d+)", "--better", "higher", "cmd:echo score=5", "cmd:echo score=6"];
    run(&[&["--out", "score"], &score[..]].concat());
    assert!(!dir.path().join("score/aa.json").exists());
    let last = dir.path().join(".zenkai-aa-time.json");
    for wrong in ["", "[]", "{\"host\": \"elsewhere\", \"metric\": {\"name\": \"time\", \"unit\": \"s\"}}"] {
        fs::write(&last, wrong).unwrap();
        let out = format!("wrong{}", wrong.len());
        run(&["--out", &out, "cmd:true", "cmd:sleep 0.1"]);
        assert!(!dir.path().join(out).join("aa.json").exists(), "{wrong}");
    }
}

#[test]
fn three_arms() {
    let dir = tempfile::tempdir().unwrap();
    let three = ["--json", "cmd:true", "cmd:sleep 0.3", "cmd:sh -c 'sleep 0.3'"];
    let found = json(&must(&dir.path().join("three"), &three, 0).stdout);
    let verdicts: Vec<&Value> =
        found["comparisons"].as_array().unwrap().iter().map(|each| &each["b"]).collect();
    assert_eq!(verdicts.len(), 2, "{found}");
}

#[test]
fn what_cannot_work_is_said_and_ends() {
    let dir = tempfile::tempdir().unwrap();
    let mut nth = 0;
    let mut fails = |args: &[&str], code: i32, wanted: &str| {
        nth += 1;
        let output = must(&dir.path().join(nth.to_string()), args, code);
        let said = said(&output);
        assert!(said.contains(wanted) && output.stdout.is_empty(), "{args:?}: {wanted}: {said}");
        assert!(!said.contains("--resume"), "there is nothing to go on with: {said}");
    };
    fails(&["cmd:no-such-program-here", "cmd:true"], 2, "no-such-program-here: command not found");
    fails(&["cmd:false", "cmd:sh -c 'exit 3'"], 2, "the workload fails in every arm: exit code");
    let score = ["--metric", r"score=(\S+)", "--better", "higher"];
    fails(&[&score[..], &["cmd:echo nothing", "cmd:echo none"]].concat(), 2, "score=");
    fails(&[&score[..], &["cmd:echo score=nan", "cmd:echo score=inf"]].concat(), 2, "every arm");
    fails(&["now", "cmd:true"], 2, "there is no command to run");
    fails(&["cmd:true"], 2, "nothing to compare");
    fails(&["cmd:true", "cmd:true"], 2, "there twice");
    fails(&["cmd:true", "cpu-max:100%", "--", "true"], 2, "1% to 99%");
    fails(&["cmd:true", "set:/etc/passwd=x", "--", "true"], 2, "no file below /sys");
    fails(&["now", "profile:no-such-profile", "--", "true"], if is_root() { 2 } else { 77 }, "");
    let output =
        program(&SHORT).args(["--out", "/proc/sys/zenkai", "cmd:true", "cmd:false"]).output().unwrap();
    assert_eq!(output.status.code(), Some(2), "{}", said(&output));
    assert!(said(&output).contains("/proc/sys/zenkai"), "{}", said(&output));
    let output = program(&["compare", "--resume", text(dir.path())]).output().unwrap();
    assert_eq!(output.status.code(), Some(2), "{}", said(&output));
}

#[test]
fn an_arm_that_always_fails_or_takes_too_long_is_the_worse_one() {
    let dir = tempfile::tempdir().unwrap();
    let found = json(&must(&dir.path().join("failing"), &["--json", "cmd:true", "cmd:false"], 0).stdout);
    assert_eq!((&found["verdict"], &found["arms"][1]["failed"]), (&"different".into(), &6.into()), "{found}");
    let slow = dir.path().join("slow");
    let found = json(&must(&slow, &["--json", "--timeout", "1s", "cmd:true", "cmd:sleep 60"], 0).stdout);
    assert_eq!((&found["verdict"], &found["arms"][1]["failed"]), (&"different".into(), &6.into()), "{found}");
    assert_eq!(trials(&slow).iter().filter(|trial| trial["status"] == "timeout").count(), 6);
}

/// What a script on the other end of a pipe gets, whenever it is interrupted: one JSON document or nothing.
#[test]
fn an_interrupt_ends_it_well_and_it_goes_on() {
    for (signals, least) in [(&["-INT"][..], 0), (&["-INT", "-INT"], 3), (&["-TERM"], 5), (&["-HUP"], 6)] {
        let dir = tempfile::tempdir().unwrap();
        let dir = dir.path().join("new");
        let child = start(short(&dir, &["--json", "cmd:sleep 0.2", "cmd:sleep 0.4"]));
        until("trials", || dir.join("trials.jsonl").is_file() && trials(&dir).len() >= least);
        for signal in signals {
            send(signal, &child);
        }
        let output = child.wait_with_output().unwrap();
        assert_eq!(output.status.code(), Some(130), "{signals:?} after {least}: {}", said(&output));
        if !output.stdout.is_empty() {
            assert_eq!(json(&output.stdout)["finished"], false);
        }
        let told = String::from_utf8(output.stderr).unwrap();
        assert!(told.contains("zenkai compare --resume"), "{told}");
        let kept = trials(&dir).len();
        assert!(kept >= least && kept < 12, "{kept} trials");
        let output = program(&["compare", "--json", "--resume", text(&dir)]).output().unwrap();
        assert!(output.status.success(), "{}", said(&output));
        let found = json(&output.stdout);
        assert_eq!((&found["pairs"], &found["verdict"]), (&6.into(), &"different".into()), "{found}");
        assert!(trials(&dir).len() >= 12);
    }
}

#[test]
fn what_a_killed_run_left_is_in_nobody_s_way() {
    let top = tempfile::tempdir().unwrap();
    let dir = top.path().join("killed");
    let arms = ["cmd:sleep 0.05", "cmd:sleep 0.1"];
    let options = ["compare", "--pairs", "6", "--interval", "10ms", "--out", text(&dir)];
    let output = program(&[&options[..], &arms].concat()).output().unwrap();
    assert!(output.status.success(), "{}", said(&output));
    // As if it had been killed in the second block, when the samples were there and the trial was not.
    let path = dir.join("trials.jsonl");
    let kept: String = fs::read_to_string(&path).unwrap().split_inclusive('\n').take(4).collect();
    fs::write(&path, kept).unwrap();
    let output = program(&["compare", "--json", "--resume", text(&dir)]).output().unwrap();
    assert!(output.status.success(), "{}", said(&output));
    let samples: Vec<Value> = trials(&dir).iter().map(|trial| trial["samples"].clone()).collect();
    assert_eq!(samples.len(), 12);
    assert_eq!(samples[4], "samples/0001-0-0-2.zks");
    // And one that was killed before its plan was written, which is no experiment.
    let dir = top.path().join("begun");
    fs::create_dir_all(dir.join("samples")).unwrap();
    fs::write(dir.join("trials.jsonl"), "").unwrap();
    must(&dir, &arms, 0);
    fs::remove_file(dir.join("experiment.json")).unwrap();
    fs::write(dir.join("samples/0000-0-0.zks"), "measured").unwrap();
    let told = said(&must(&dir, &arms, 2));
    assert!(told.contains("has been used for an experiment already"), "{told}");
}

#[test]
fn a_verdict_is_told_although_its_page_cannot_be_written() {
    let dir = tempfile::tempdir().unwrap();
    fs::create_dir(dir.path().join("report.html")).unwrap();
    let output = must(dir.path(), &["--json", "cmd:sleep 0.02", "cmd:sleep 0.06"], 0);
    assert_eq!(json(&output.stdout)["verdict"], "different");
    let told = String::from_utf8(output.stderr).unwrap();
    assert!(told.contains("no graphs: cannot write") && !told.contains("graphs: /"), "{told}");
}

#[test]
fn a_recording_is_not_taken_for_a_search() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path().join("recorded");
    let output = program(&["record", "--runs", "4", "--out", text(&dir), "--", "true"]).output().unwrap();
    assert!(output.status.success(), "{}", said(&output));
    let output = program(&["compare", "--resume", text(&dir)]).output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert!(said(&output).contains("is a recording and compares nothing"), "{}", said(&output));
}

#[test]
fn a_budget_longer_than_any_clock_is_none() {
    let output = program(&["bisect", "--budget", "1e19", "--", "true"]).output().unwrap();
    assert_eq!(output.status.code(), Some(2), "{}", said(&output));
    assert!(said(&output).contains("nothing to compare this machine with"), "{}", said(&output));
}

#[test]
fn what_nohup_started_goes_on_after_the_end_of_the_session() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path().join("new");
    let child = start_with("--ignore-signal=HUP,INT", &short(&dir, &["cmd:true", "cmd:sleep 0.3"]));
    until("trials", || trials(&dir).len() >= 2);
    send("-HUP", &child);
    send("-INT", &child);
    let output = child.wait_with_output().unwrap();
    assert_eq!((output.status.code(), trials(&dir).len()), (Some(0), 12), "{}", said(&output));
}

/// Without root only what changes nothing.
#[test]
fn without_root() {
    if !is_root() {
        eprintln!("SKIPPED: not root, so all other tests show it");
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let run = |args: &[&str]| unprivileged(dir.path()).args(args).output().unwrap();
    let output = run(&["now", "set:vm.swappiness=1", "--", "true"]);
    assert_eq!(output.status.code(), Some(77), "{}", said(&output));
    assert!(said(&output).contains("only root may change this machine"));
    let output = run(&["cmd:true", "cmd:false"]);
    assert_eq!(output.status.code(), Some(0), "{}", said(&output));
    open(dir.path(), 0o555);
    let output = run(&["cmd:true", "cmd:sleep 0.1"]);
    assert_eq!(output.status.code(), Some(77), "{}", said(&output));
    assert!(said(&output).contains("--out DIR"), "{}", said(&output));
}

fn open(path: &Path, mode: u32) {
    fs::set_permissions(path, std::os::unix::fs::PermissionsExt::from_mode(mode)).unwrap();
}

/// A short experiment as somebody else than root, in `dir`, which belongs to all from then on. The program is copied there:
/// nobody may be able to read where it lies.
fn unprivileged(dir: &Path) -> Command {
    let mut command = program(&SHORT);
    if is_root() {
        let copy = dir.join("zenkai");
        if !copy.exists() {
            open(dir, 0o777);
            // By another process: what this one has open for writing is so in each child that another test starts, until it
            // executes its program, and cannot be executed itself meanwhile (ETXTBSY).
            let copied = Command::new("cp").arg(command.get_program()).arg(&copy).status().unwrap();
            assert!(copied.success());
        }
        command = Command::new(&copy);
        command.args(SHORT).stdin(Stdio::null()).uid(65534).gid(65534);
    }
    command.current_dir(dir);
    command
}

pub(crate) fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

#[test]
fn what_cannot_be_sampled_is_told_at_once() {
    let dir = tempfile::tempdir().unwrap();
    for interval in ["5ms", "2s"] {
        let output =
            must(&dir.path().join("new"), &["now", "cmd:true", "--interval", interval, "--", "true"], 2);
        assert!(said(&output).contains("10ms to 1s"), "{}", said(&output));
    }
}

#[test]
fn what_the_workload_wrote_does_not_steer_the_terminal() {
    let dir = tempfile::tempdir().unwrap();
    let script = r"printf '\033]0;title\007\033[2Jno\n' >&2; exit 1";
    let command = ["now", "cmd:false", "--", "sh", "-c", script];
    let output = must(&dir.path().join("new"), &command, 2);
    assert!(
        !said(&output).contains('\u{1b}') && said(&output).contains("fails in every arm"),
        "{}",
        said(&output)
    );
}

#[test]
fn a_workload_that_asks_at_the_terminal_fails() {
    let dir = tempfile::tempdir().unwrap();
    // A terminal of its own, in the background of which the workload would be stopped for ever.
    let zenkai = text(Path::new(env!("CARGO_BIN_EXE_zenkai"))).to_owned();
    let out = dir.path().join("new");
    let line = format!(
        "{zenkai} compare now cmd:false --pairs 6 --no-sample --out {} -- sh -c 'read word < /dev/tty'",
        text(&out)
    );
    let Ok(child) = Command::new("script")
        .args(["-qec", &line, "/dev/null"])
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()
    else {
        eprintln!("SKIPPED: there is no script(1)");
        return;
    };
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(2), "{}", said(&output));
}
