//! `zenkai compare` with arms that change this machine: it ends as it began, whatever happens.

use std::{
    fs,
    os::unix::fs::{PermissionsExt as _, symlink},
    path::Path,
    process::{Command, Output},
    thread,
    time::{Duration, Instant},
};

use crate::{
    compare::{said, send, short, start, text, trials, until},
    real_tuned::{PutBack, inside, zenkai as program},
    watched::Watched,
};

/// A knob that nobody misses for a minute: how many messages the kernel may log in a burst.
const KNOB: &str = "kernel.printk_ratelimit_burst";
const FILE: &str = "/proc/sys/kernel/printk_ratelimit_burst";
const OTHER: &str = "set:kernel.printk_ratelimit_burst=11";
const NO_SETTLING: [&str; 2] = ["--settle", "0s..0s"];

/// How often an experiment is killed.
const KILLS: u32 = 24;
/// How long the guard may take on a crowded machine.
const GUARD_LIMIT: Duration = Duration::from_secs(20);

fn shown() -> String {
    fs::read_to_string(FILE).unwrap().trim().to_owned()
}

/// `compare now set:KNOB=11` with this workload.
fn with_knob(dir: &Path, workload: &[&str]) -> Command {
    let mut command = short(dir, &["now", OTHER]);
    command.args(NO_SETTLING).arg("--").args(workload);
    command
}

fn untouched(before: &Watched, after: &str) {
    let changed = before.differences(&Watched::look());
    assert!(changed.is_empty(), "{after}: {changed:?}");
}

/// Every command settles what an earlier one left open and says so; here nothing must be left.
fn no_journal_is_open(after: &str) {
    let output = program(&["log"]).output().unwrap();
    assert!(output.status.success() && !said(&output).contains("cut short"), "{after}: {}", said(&output));
}

fn good(output: &Output) {
    assert!(output.status.success(), "{}", said(output));
}

#[test]
#[ignore = "changes this machine for a minute; `cargo xtask test` runs it"]
fn settings_profiles_and_hooks_leave_no_trace() {
    if !inside("compare_live::settings_profiles_and_hooks_leave_no_trace") {
        return;
    }
    let before = PutBack(Watched::look());
    let dir = tempfile::tempdir().unwrap();
    let note = dir.path().join("note");
    let enter = format!("enter=echo {OTHER} > {}", text(&note));
    let leave = format!("leave=rm {}", text(&note));
    // What each run sees of its arm is the metric.
    let looks = format!("cat {FILE} | sed s/^/burst=/; test -e {} && echo noted", text(&note));
    let workload = ["--", "sh", "-c", &format!("{looks}; true")];
    let metric = ["--metric", r"burst=(\d+)", "--better", "lower"];
    // Of zenkai/balanced nothing can act in a virtual machine: that is a state like any other.
    for arm in
        [OTHER, "profile:zenkai/database", "profile:zenkai/balanced", &format!("profile:balanced + {OTHER}")]
    {
        let kept = dir.path().join(arm.replace(['/', ' '], "-"));
        good(&short(&kept, &["now", arm]).args(NO_SETTLING).args(metric).args(workload).output().unwrap());
        untouched(&before.0, arm);
        let runs = trials(&kept);
        let sets = arm.contains("burst");
        let burst = |arm: u64| {
            runs.iter()
                .filter(|trial| trial["arm"] == arm)
                .map(|trial| trial["value"].as_f64().unwrap())
                .collect::<Vec<_>>()
        };
        assert!(
            !burst(1).is_empty() && burst(1).iter().all(|burst| (*burst - 11.0).abs() < 0.1 || !sets),
            "{runs:?}"
        );
        assert!(
            burst(0).iter().all(|burst| (burst - shown().parse::<f64>().unwrap()).abs() < 0.1),
            "{runs:?}"
        );
    }
    let hooked = dir.path().join("hook");
    let noted = ["--metric", "noted=([01])", "--better", "higher", "--"];
    let script = format!("test -e {}; echo noted=$((1 - $?)); sleep 0.01", text(&note));
    let output = short(&hooked, &["now", &enter, &leave])
        .args(NO_SETTLING)
        .args(noted)
        .args(["sh", "-c", &script])
        .output();
    // A metric that is 0 has no logarithm, so the trials without the note have failed.
    good(&output.unwrap());
    assert!(trials(&hooked).iter().all(|trial| (trial["arm"] == 1) == (trial["value"] == 1.0)));
    assert!(!note.exists(), "the hook was left");
    untouched(&before.0, "hook");
    no_journal_is_open("all of them");
}

#[test]
#[ignore = "changes this machine for a minute; `cargo xtask test` runs it"]
fn the_guard_puts_everything_back_after_kill_9() {
    if !inside("compare_live::the_guard_puts_everything_back_after_kill_9") {
        return;
    }
    let before = PutBack(Watched::look());
    let burst = shown();
    let place = tempfile::tempdir().unwrap();
    let (mut killed, mut too_late, mut in_arm, mut nth) = (0, 0, 0, 0);
    let mut longest = Duration::ZERO;
    let mut random = 0x5eed_u64;
    while killed < KILLS {
        assert!(too_late < 4 * KILLS, "{too_late} were faster than we");
        let dir = place.path().join(nth.to_string());
        let resumes = dir.join("trials.jsonl").is_file();
        let mut child = start(if resumes {
            program(&["compare", "--resume", text(&dir)])
        } else {
            nth += 1;
            with_knob(&place.path().join(nth.to_string()), &["sleep", "0.05"])
        });
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        thread::sleep(Duration::from_millis(random >> 53));
        in_arm += u32::from(shown() != burst);
        child.kill().unwrap();
        let killed_at = Instant::now();
        if child.wait().unwrap().success() {
            too_late += 1;
            nth += 1;
        } else {
            killed += 1;
        }
        while shown() != burst {
            assert!(killed_at.elapsed() < GUARD_LIMIT, "kill {killed}: it is still {}", shown());
            thread::sleep(Duration::from_millis(5));
        }
        longest = longest.max(killed_at.elapsed());
    }
    // The guard of the last one may still be at work.
    thread::sleep(Duration::from_secs(2));
    no_journal_is_open("the last kill");
    untouched(&before.0, "all kills");
    let dir = place.path().join(nth.to_string());
    if dir.join("trials.jsonl").is_file() {
        good(&program(&["compare", "--resume", text(&dir)]).output().unwrap());
    }
    eprintln!(
        "killed {killed} times, {in_arm} times in the other arm; put back within {longest:?}; {too_late} too late"
    );
    assert!(in_arm > 0, "it was never in the arm that changes something");
}

#[test]
#[ignore = "changes this machine for a moment; `cargo xtask test` runs it"]
fn ctrl_c_once_or_twice_puts_everything_back() {
    if !inside("compare_live::ctrl_c_once_or_twice_puts_everything_back") {
        return;
    }
    let before = PutBack(Watched::look());
    for (signals, least) in
        [(&["-INT"][..], 0), (&["-INT"], 5), (&["-INT", "-INT"], 2), (&["-TERM"], 3), (&["-HUP"], 4)]
    {
        let place = tempfile::tempdir().unwrap();
        let dir = place.path().join("new");
        let child = start(with_knob(&dir, &["sleep", "0.2"]));
        until("trials", || dir.join("trials.jsonl").is_file() && trials(&dir).len() >= least);
        for signal in signals {
            send(signal, &child);
        }
        let output = child.wait_with_output().unwrap();
        assert_eq!(output.status.code(), Some(130), "{signals:?}: {}", said(&output));
        assert!(said(&output).contains("the machine is as it was"), "{}", said(&output));
        untouched(&before.0, "an interrupt");
        no_journal_is_open("an interrupt");
        assert!(trials(&dir).len() >= least);
        good(&program(&["compare", "--resume", text(&dir)]).output().unwrap());
    }
    untouched(&before.0, "all of them");
}

#[test]
#[ignore = "changes this machine for a moment; `cargo xtask test` runs it"]
fn what_the_kernel_refuses_is_refused_before_the_first_run() {
    if !inside("compare_live::what_the_kernel_refuses_is_refused_before_the_first_run") {
        return;
    }
    let before = PutBack(Watched::look());
    let place = tempfile::tempdir().unwrap();
    let mark = place.path().join("ran");
    for arm in [
        &format!("set:{KNOB}=banana"),
        "set:kernel.no_such_knob=1",
        "profile:zenkai/database + set:kernel.no_such_knob=1",
        "enter=exit 3",
    ] {
        let dir = place.path().join("new");
        let output = short(&dir, &["now", arm]).args(["--", "touch", text(&mark)]).output().unwrap();
        assert_eq!(output.status.code(), Some(2), "{arm}: {}", said(&output));
        assert!(said(&output).contains(arm), "{}", said(&output));
        assert!(!mark.exists() && !dir.exists(), "{arm}: something was run or kept");
        untouched(&before.0, arm);
    }
}

#[test]
#[ignore = "changes this machine for a moment; `cargo xtask test` runs it"]
fn what_somebody_else_changes_stays_and_ends_it() {
    if !inside("compare_live::what_somebody_else_changes_stays_and_ends_it") {
        return;
    }
    let before = PutBack(Watched::look());
    let place = tempfile::tempdir().unwrap();
    // In either arm: the knob is not what `now` sets, but what it is compared with.
    for (name, value) in [("arm", "11".to_owned()), ("now", shown())] {
        let (dir, done) = (place.path().join(name), place.path().join(format!("{name}-done")));
        let script = format!(
            "cd {}; echo >> {name}-runs; if [ $(wc -l < {name}-runs) -gt 4 ] && [ ! -e {done} ] && [ $(cat {FILE}) = \
             {value} ]; then : > {done}; echo 12 > {FILE}; fi",
            text(place.path()),
            done = text(&done),
        );
        let output = with_knob(&dir, &["sh", "-c", &script]).output().unwrap();
        assert_eq!(output.status.code(), Some(2), "{}", said(&output));
        assert!(said(&output).contains("is run again: somebody else changed"), "{}", said(&output));
        assert!(said(&output).contains("when the experiment began and is 12 now"), "{}", said(&output));
        let spoilt: Vec<_> =
            trials(&dir).into_iter().filter(|trial| trial["status"] == "discarded").collect();
        assert_eq!(spoilt.len(), 1, "{spoilt:?}");
        assert_eq!(shown(), "12", "what somebody wanted is theirs");
        before.0.put_back();
        // With the value back it goes on, and the block is drawn again.
        let output = program(&["compare", "--resume", text(&dir)]).output().unwrap();
        good(&output);
        let again = |trial: &serde_json::Value| {
            trial["block"] == spoilt[0]["block"] && trial["attempt"].as_u64() > spoilt[0]["attempt"].as_u64()
        };
        assert_eq!(trials(&dir).iter().filter(|trial| again(trial)).count(), 4, "{}", said(&output));
    }
}

#[test]
#[ignore = "changes this machine for a moment; `cargo xtask test` runs it"]
fn what_cannot_be_put_back_is_told_and_tried_again() {
    if !inside("compare_live::what_cannot_be_put_back_is_told_and_tried_again") {
        return;
    }
    let place = tempfile::tempdir().unwrap();
    let (left, fine) = (place.path().join("left"), place.path().join("fine"));
    // While the plan is made, and later.
    for (name, times) in [("plan", 1), ("later", 3)] {
        let leave = format!(
            "leave=echo >> {left}; [ -e {fine} ] || [ $(wc -l < {left}) -lt {times} ]",
            left = text(&left),
            fine = text(&fine)
        );
        let dir = place.path().join(name);
        let output = short(&dir, &["now", "enter=true", &leave])
            .args(NO_SETTLING)
            .args(["--", "true"])
            .output()
            .unwrap();
        assert_eq!(output.status.code(), Some(5), "{name}: {}", said(&output));
        assert!(said(&output).contains("could not be put back: exit code 1"), "{name}: {}", said(&output));
        let tries = |path: &Path| fs::read_to_string(path).unwrap().len();
        let before = tries(&left);
        let output = program(&["log"]).output().unwrap();
        assert!(said(&output).contains("could not be put back"), "{name}: {}", said(&output));
        assert_eq!(tries(&left), before + 1);
        fs::write(&fine, "").unwrap();
        good(&program(&["log"]).output().unwrap());
        no_journal_is_open(name);
        assert_eq!(tries(&left), before + 2);
        fs::remove_file(&fine).unwrap();
        fs::remove_file(&left).unwrap();
    }
}

#[test]
#[ignore = "changes this machine for a moment; `cargo xtask test` runs it"]
fn root_goes_on_whatever_its_umask() {
    if !inside("compare_live::root_goes_on_whatever_its_umask") {
        return;
    }
    let place = tempfile::tempdir().unwrap();
    for umask in ["000", "002", "077"] {
        let dir = place.path().join(umask);
        let line = "umask $0; exec \"$@\"";
        let command = with_knob(&dir, &["true"]);
        let mut shell = Command::new("sh");
        shell.args(["-c", line, umask]).arg(command.get_program()).args(command.get_args());
        good(&shell.output().unwrap());
        good(&program(&["compare", "--resume", text(&dir)]).output().unwrap());
    }
}

#[test]
#[ignore = "changes this machine for a moment; `cargo xtask test` runs it"]
fn what_a_killed_experiment_ran_ends_with_it() {
    if !inside("compare_live::what_a_killed_experiment_ran_ends_with_it") {
        return;
    }
    let before = PutBack(Watched::look());
    let place = tempfile::tempdir().unwrap();
    let note = place.path().join("pid");
    // The shell's child: the shell itself dies with its parent.
    let script = format!("sleep 300 & echo $! > {}; wait", text(&note));
    let mut child = start(with_knob(&place.path().join("new"), &["sh", "-c", &script]));
    let pid = || fs::read_to_string(&note).unwrap_or_default().trim().to_owned();
    until("the workload", || !pid().is_empty());
    let sleeps =
        |pid: &str| fs::read_to_string(format!("/proc/{pid}/stat")).is_ok_and(|stat| !stat.contains(") Z "));
    assert!(sleeps(&pid()));
    child.kill().unwrap();
    child.wait().unwrap();
    let start = Instant::now();
    while sleeps(&pid()) && start.elapsed() < GUARD_LIMIT {
        thread::sleep(Duration::from_millis(20));
    }
    assert!(!sleeps(&pid()), "it still loads the machine");
    no_journal_is_open("the guard");
    untouched(&before.0, "the guard");
}

#[test]
#[ignore = "changes this machine for a moment; `cargo xtask test` runs it"]
fn of_two_at_once_the_second_is_told_who_is_at_work() {
    if !inside("compare_live::of_two_at_once_the_second_is_told_who_is_at_work") {
        return;
    }
    let before = PutBack(Watched::look());
    let place = tempfile::tempdir().unwrap();
    let (dir, second) = (place.path().join("first"), place.path().join("second"));
    let child = start(with_knob(&dir, &["sleep", "60"]));
    until("the first", || dir.join("trials.jsonl").is_file());
    let output = with_knob(&second, &["true"]).output().unwrap();
    assert_eq!(output.status.code(), Some(2), "{}", said(&output));
    assert!(said(&output).contains(&child.id().to_string()) && !second.exists(), "{}", said(&output));
    send("-INT", &child);
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(130), "{}", said(&output));
    untouched(&before.0, "both");
}

#[test]
#[ignore = "changes this machine for a moment; `cargo xtask test` runs it"]
fn a_full_disk_ends_it_and_it_goes_on_when_there_is_room() {
    if !inside("compare_live::a_full_disk_ends_it_and_it_goes_on_when_there_is_room") {
        return;
    }
    let before = PutBack(Watched::look());
    let place = tempfile::tempdir().unwrap();
    // In this test's own mount namespace, with which it goes.
    let mount = ["-t", "tmpfs", "-o", "size=1m", "tmpfs", text(place.path())];
    assert!(Command::new("mount").args(mount).status().unwrap().success());
    let (dir, filler) = (place.path().join("new"), place.path().join("filler"));
    let long = ["compare", "--no-sample", "--pairs", "20", "--precision", "0.01%", "--out", text(&dir)];
    let mut command = program(&long);
    command.args(["now", OTHER]).args(NO_SETTLING).args(["--", "sleep", "0.1"]);
    let child = start(command);
    until("trials", || trials(&dir).len() >= 5);
    let mut file = fs::File::create(&filler).unwrap();
    while std::io::Write::write_all(&mut file, &[0; 4096]).is_ok() {}
    drop(file);
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(2), "{}", said(&output));
    let told = said(&output);
    assert!(told.contains("No space left") && told.contains("zenkai compare --resume"), "{told}");
    untouched(&before.0, "a full disk");
    no_journal_is_open("a full disk");
    let kept = fs::read_to_string(dir.join("trials.jsonl")).unwrap();
    assert!(kept.ends_with('\n') && trials(&dir).len() >= 5, "{kept}");
    fs::remove_file(&filler).unwrap();
    good(&program(&["compare", "--resume", text(&dir)]).output().unwrap());
    assert!(trials(&dir).len() >= 40);
    untouched(&before.0, "the end");
    assert!(Command::new("umount").arg(place.path()).status().unwrap().success());
}

#[test]
#[ignore = "writes to the state directory; `cargo xtask test` runs it"]
fn the_last_result_with_equal_arms_is_kept_by_root_alone() {
    if !inside("compare_live::the_last_result_with_equal_arms_is_kept_by_root_alone") {
        return;
    }
    let place = tempfile::tempdir().unwrap();
    let run = |name: &str, args: &[&str]| {
        let output = short(&place.path().join(name), args).output().unwrap();
        good(&output);
        said(&output)
    };
    let (folder, file) = (Path::new("/var/lib/zenkai/aa"), Path::new("/var/lib/zenkai/aa/time.json"));
    let mode = |path: &Path| fs::symlink_metadata(path).unwrap().permissions().mode() & 0o777;
    run("first", &["--aa", "--", "true"]);
    assert_eq!((mode(folder), mode(file)), (0o700, 0o600));
    run("other", &["cmd:true", "cmd:sleep 0.1"]);
    assert_eq!(fs::read(place.path().join("other/aa.json")).unwrap(), fs::read(file).unwrap());
    // A link is replaced, not followed.
    let victim = place.path().join("victim");
    fs::write(&victim, "mine").unwrap();
    fs::remove_file(file).unwrap();
    symlink(&victim, file).unwrap();
    symlink(&victim, file.with_extension("new")).unwrap();
    run("link", &["--aa", "--", "true"]);
    assert!(fs::symlink_metadata(file).unwrap().is_file());
    assert_eq!(fs::read_to_string(&victim).unwrap(), "mine");
    // Where others may write nothing is kept, and the experiment is as good as before.
    let before = fs::read(file).unwrap();
    fs::set_permissions(folder, fs::Permissions::from_mode(0o777)).unwrap();
    assert!(run("open", &["--aa", "--", "true"]).contains("could be written by others than root"));
    assert_eq!(fs::read(file).unwrap(), before);
}
