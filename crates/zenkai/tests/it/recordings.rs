//! `zenkai record` with a command, in processes of its own: the command must not notice that it is recorded.

use std::{
    io::{BufRead as _, BufReader, Read as _, Write as _},
    path::Path,
    process::{Child, Command, Output, Stdio},
    thread,
    time::{Duration, Instant},
};

use serde_json::Value;

/// `zenkai record ARGS…`, which does not look at this machine's journals.
fn record(args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_zenkai"));
    command.arg("record").args(args).stdin(Stdio::null());
    command
}

fn shown(path: &Path) -> Value {
    let output = record(&["--json", "--show", path.to_str().unwrap()]).output().unwrap();
    assert!(output.status.success(), "{}", told(&output));
    serde_json::from_slice(&output.stdout).unwrap()
}

/// The page and the text of a recording.
#[test]
fn a_recording_has_a_report() {
    let dir = tempfile::tempdir().unwrap();
    let (file, page) = (dir.path().join("a.zks"), dir.path().join("a.html"));
    let [path, target] = [&file, &page].map(|path| path.to_str().unwrap().to_owned());
    assert!(
        record(&["--interval", "50ms", "-o", &path, "--", "sleep", "1"]).output().unwrap().status.success()
    );
    assert_eq!(crate::zenkai(&["report", &path, "-o", &target]).exit, zenkai::cli::Exit::Fine);
    let html = std::fs::read_to_string(&page).unwrap();
    for wanted in
        ["<h2>sleep 1</h2>", "CPU time, share of all CPUs", "id=\"numbers\"", "Not measured", "CPUs online"]
    {
        assert!(html.contains(wanted), "{wanted}");
    }
    assert!(html.len() < 1_500_000 && !html.contains("NaN") && !html.contains("verdict\""));
    let text = crate::zenkai(&["report", &path]).out;
    assert_eq!(text, crate::zenkai(&["record", "--show", &path]).out);
    let json: Value =
        serde_json::from_str(&crate::zenkai(&["report", &path, "--format", "json"]).out).unwrap();
    assert_eq!(json["about"][0]["value"], "sleep 1");
    // Nothing else is a recording.
    let other = dir.path().join("other");
    std::fs::write(&other, "text").unwrap();
    let refused = crate::zenkai(&["report", other.to_str().unwrap()]);
    assert_eq!(refused.exit, zenkai::cli::Exit::Usage);
    assert!(refused.err.contains("no recording of zenkai"), "{}", refused.err);
}

fn told(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

fn is_gone(pid: &str) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{}/stat", pid.trim()));
    stat.map_or(true, |stat| stat.contains(") Z "))
}

fn wait_for(what: &str, is_so: impl Fn() -> bool) {
    let start = Instant::now();
    while !is_so() {
        assert!(start.elapsed() < Duration::from_secs(60), "{what} did not happen");
        thread::sleep(Duration::from_millis(10));
    }
}

#[test]
fn a_command_keeps_input_output_and_exit_code() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("a.zks");
    let script = "read word; echo got $word; echo beside >&2; exit 7";
    let mut recorder =
        record(&["--interval", "20ms", "-o", file.to_str().unwrap(), "--", "sh", "-c", script]);
    recorder.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut recorder = recorder.spawn().unwrap();
    recorder.stdin.take().unwrap().write_all(b"hello\n").unwrap();
    let output = recorder.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(7), "{}", told(&output));
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(text.starts_with("got hello\n") && text.contains("samples"), "{text}");
    let told = told(&output);
    assert!(told.contains("beside\n") && told.contains("exit code 7"), "{told}");
    assert!(shown(&file)["samples"].as_u64().unwrap() >= 2);
}

#[test]
fn the_commands_own_cgroup_is_recorded_or_the_reason_told() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("a.zks");
    // The child works; only the cgroup sees that.
    let script = "(i=0; while [ $i -lt 300000 ]; do i=$((i+1)); done)& wait; true";
    let output = record(&["-o", file.to_str().unwrap(), "--", "sh", "-c", script]).output().unwrap();
    assert!(output.status.success(), "{}", told(&output));
    let shown = shown(&file);
    let list = |name: &str| shown[name].as_array().unwrap().clone();
    let cpu = list("channels").into_iter().find(|each| each["channel"]["name"] == "cgroup.cpu");
    if let Some(cpu) = cpu {
        assert!(cpu["total"].as_f64().unwrap() > 0.01, "{cpu}");
    } else {
        let why = list("missing").into_iter().find(|each| each["what"] == "cgroup").unwrap();
        let why = why["why"].as_str().unwrap();
        assert!(why.starts_with("the command has no cgroup of its own: "), "{why}");
    }
}

#[test]
fn its_time_over_a_command_ends_with_its_children() {
    let dir = tempfile::tempdir().unwrap();
    let note = dir.path().join("pid");
    let script = "sleep 300 & echo $! > $0; wait";
    let output = record(&["--for", "3s", "--", "sh", "-c", script, note.to_str().unwrap()]).output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", told(&output));
    assert!(told(&output).contains("so the command was ended"), "{}", told(&output));
    let pid = std::fs::read_to_string(&note).unwrap();
    wait_for("the end of the child", || is_gone(&pid));
}

#[test]
fn a_command_that_cannot_start_leaves_no_file() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("a.zks");
    let output = record(&["-o", file.to_str().unwrap(), "--", "no-such-program"]).output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert!(told(&output).contains("no-such-program: command not found"), "{}", told(&output));
    assert!(!file.exists());
    let output = record(&["-o", file.to_str().unwrap(), "--cpu", "99999", "--", "true"]).output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert!(told(&output).contains("cannot stay on CPU 99999"), "{}", told(&output));
    assert!(!file.exists(), "a sampler that cannot start leaves no file either");
}

#[test]
fn told_to_end_it_ends_the_command() {
    let mut recorder = record(&["--", "sh", "-c", "echo ready; sleep 300"]);
    let mut recorder = recorder.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut out = BufReader::new(recorder.stdout.take().unwrap());
    let mut line = String::new();
    out.read_line(&mut line).unwrap();
    signal(&recorder, rustix::process::Signal::TERM);
    let mut rest = String::new();
    out.read_to_string(&mut rest).unwrap();
    assert_eq!(recorder.wait().unwrap().code(), Some(130));
    assert!(rest.contains("samples"), "what was recorded is shown: {rest}");
}

fn signal(child: &Child, signal: rustix::process::Signal) {
    rustix::process::kill_process(rustix::process::Pid::from_child(child), signal).unwrap();
}

/// At a terminal of its own: Ctrl-C reaches the command, which goes on for as long as it likes.
#[test]
fn ctrl_c_is_the_commands() {
    if Command::new("script").arg("--version").output().is_err() {
        eprintln!("skipped: no script(1) here (apt-get install bsdutils)");
        return;
    }
    let script = "trap 'echo caught' INT; echo ready; read x; read x; echo $x; exit 9";
    // Some shells stay to wait, and end by the Ctrl-C that they get too.
    let line = format!("exec {} record -- sh -c \"$SCRIPT\"", env!("CARGO_BIN_EXE_zenkai"));
    // util-linux's script(1) makes the terminal. Whoever started us in the background may ignore SIGINT, and a shell cannot
    // trap what was ignored when it began.
    let made = Command::new("env")
        .args(["--default-signal=INT", "script", "-qec", &line, "/dev/null"])
        .env("SCRIPT", script)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn();
    let mut terminal = made.unwrap();
    let mut keys = terminal.stdin.take().unwrap();
    let mut screen = BufReader::new(terminal.stdout.take().unwrap());
    let mut until = |wanted: &str| {
        let mut text = String::new();
        while !text.contains(wanted) {
            assert!(screen.read_line(&mut text).unwrap() > 0, "{wanted} did not come: {text}");
        }
    };
    until("ready");
    keys.write_all(b"\x03").unwrap();
    until("caught");
    keys.write_all(b"one\nstill here\n").unwrap();
    until("still here");
    until("samples");
    drop(keys);
    assert_eq!(terminal.wait().unwrap().code(), Some(9));
}

/// What was written until then is whole, and the recording says that it was cut off.
#[test]
fn killed_in_the_middle_the_file_holds_what_was_recorded() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("a.zks");
    let mut recorder = record(&["--interval", "10ms", "-o", file.to_str().unwrap()]).spawn().unwrap();
    let size = || std::fs::metadata(&file).map_or(0, |file| file.len());
    for piece in ["the beginning", "the first second", "the second second"] {
        let before = size();
        wait_for(piece, || size() > before);
    }
    signal(&recorder, rustix::process::Signal::KILL);
    recorder.wait().unwrap();
    let shown = shown(&file);
    assert!(shown["samples"].as_u64().unwrap() > 2, "{shown}");
    assert!(shown["duration_s"].as_f64().unwrap() > 1.0);
    // Every sample in it is whole; that it does not end by itself tells.
    let end = shown["missing"].as_array().unwrap().iter().find(|each| each["what"] == "the end").unwrap();
    assert!(end["why"].as_str().unwrap().starts_with("the recorder was killed;"), "{end}");
}

/// A limit on the size of files stands for a full disk: the write is cut short, then refused.
#[test]
fn a_full_disk_ends_the_recording_but_not_the_command() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("a.zks");
    let whole = dir.path().join("whole.zks");
    assert!(
        record(&["-o", whole.to_str().unwrap(), "--", "sleep", "0.1"]).output().unwrap().status.success()
    );
    let limit = format!("--fsize={}", std::fs::metadata(&whole).unwrap().len() + 4096);
    let output = Command::new("sh")
        .args(["-c", "trap '' XFSZ; exec prlimit \"$@\"", "sh", &limit, env!("CARGO_BIN_EXE_zenkai")])
        .args(["record", "--interval", "10ms", "-o"])
        .arg(&file)
        .args(["--", "sh", "-c", "sleep 3; echo done"])
        .output()
        .unwrap();
    let told = told(&output);
    assert_eq!(output.status.code(), Some(2), "{told}");
    assert!(String::from_utf8_lossy(&output.stdout).contains("done\n"));
    assert!(told.contains("could not be written to its end"), "{told}");
    let shown = shown(&file);
    assert!(shown["samples"].as_u64().unwrap() >= 1, "{shown}");
    let end = shown["missing"].as_array().unwrap().iter().find(|each| each["what"] == "the end").unwrap();
    assert!(end["why"].as_str().unwrap().contains("cut off"), "{end}");
}
