//! `zenkai record --runs` and `zenkai report --before --after`: a workload that became slower, and damaged recordings.

use std::{fs, path::Path, process::Command};

use serde_json::Value;
use zenkai::cli::Exit;
use zenkai_measure::experiment::{Store, made_up::Recipe};

use crate::{
    compare::{said, send, start, text, trials, until},
    real_tuned::zenkai as program,
    zenkai,
};

/// A command that takes as long as the file `n` says, and tells a number near that, another each time.
fn workload(dir: &Path) -> String {
    let [n, runs] = ["n", "runs"].map(|name| text(&dir.join(name)).to_owned());
    format!("sleep $(cat {n}); echo >> {runs}; echo took $(cat {n})$(wc -l < {runs})")
}

/// Records five runs of it into `name`, taking `seconds` each.
fn record(dir: &Path, name: &str, seconds: &str, more: &[&str]) -> String {
    fs::write(dir.join("n"), seconds).unwrap();
    let kept = dir.join(name);
    let mut command = program(&["record", "--runs", "5", "--interval", "20ms", "--out", text(&kept)]);
    let output = command.args(more).args(["--", "sh", "-c", &workload(dir)]).output().unwrap();
    assert!(output.status.success(), "{}", said(&output));
    text(&kept).to_owned()
}

fn report(before: &str, after: &str) -> Value {
    let called = zenkai(&["report", "--before", before, "--after", after, "--format", "json"]);
    assert_eq!(called.exit, Exit::Fine, "{}", called.err);
    serde_json::from_str(&called.out).unwrap()
}

/// The machine of this recording has this sysctl from now on.
fn plant(recording: &str, sysctl: &str, value: &str) {
    let path = Path::new(recording).join("machine.capture");
    let capture = fs::read_to_string(&path).unwrap();
    let wanted = format!("{sysctl} = ");
    let lines = capture.lines().map(|line| match line.find(&wanted) {
        Some(at) => format!("{}{wanted}{value}\n", &line[..at]),
        None => format!("{line}\n"),
    });
    let planted: String = lines.collect();
    assert_ne!(planted, capture, "{sysctl} is not in the capture");
    fs::write(&path, planted).unwrap();
}

#[test]
fn slower_after_is_seen_and_never_proved() {
    let dir = tempfile::tempdir().unwrap();
    // What it tells and not how long it took: of five runs one that a busy machine held up would hide the difference.
    let told = ["--metric", "took ([0-9.]+)", "--better", "lower"];
    let before = record(dir.path(), "before", "0.1", &told);
    let after = record(dir.path(), "after", "0.3", &told);
    plant(&before, "/proc/sys/vm/swappiness", "41");
    plant(&after, "/proc/sys/vm/swappiness", "42");
    let found = report(&before, &after);
    assert_eq!((&found["verdict"], &found["proof"]), (&"undecided".into(), &false.into()));
    let effect = found["effect"].as_f64().unwrap();
    assert!(effect > 50.0 && found["interval"][0].as_f64().unwrap() > 0.0, "{found}");
    assert_eq!((&found["before"]["runs"], &found["after"]["failed"]), (&5.into(), &0.into()));
    let differences = found["diff"]["differences"].as_array().unwrap();
    let planted = differences.iter().find(|difference| difference["what"] == "vm.swappiness").unwrap();
    assert_eq!((&planted["a"]["value"], &planted["b"]["value"]), (&"41".into(), &"42".into()));
    let command = found["next"][0].as_str().unwrap();
    assert!(command.starts_with(&format!("zenkai bisect --from {before} --metric 'took ")), "{command}");

    let page = dir.path().join("report.html");
    let called = zenkai(&["report", "--before", &before, "--after", &after, "-o", text(&page)]);
    assert_eq!(called.exit, Exit::Fine, "{}", called.err);
    let html = fs::read_to_string(&page).unwrap();
    for wanted in
        ["data-verdict=\"undecided\"", "data-name=\"cpu.usr\"", "vm.swappiness", "zenkai bisect --from"]
    {
        assert!(html.contains(wanted), "{wanted}");
    }
    let said = zenkai(&["report", "--before", &before, "--after", &after]).out;
    assert!(said.contains(" than before [") && said.contains("It cannot show"), "{said}");

    // A recording stands for its capture wherever one is taken.
    let diff = zenkai(&["diff", &before, &after, "--json"]);
    assert!(diff.exit == Exit::Findings && diff.out.contains("vm.swappiness"), "{}", diff.err);
    let page = dir.path().join("diff.html");
    let called = zenkai(&["diff", &before, &after, "-o", text(&page)]);
    assert_eq!(called.exit, Exit::Findings, "{}", called.err);
    assert!(fs::read_to_string(&page).unwrap().contains("vm.swappiness"));
    let profile = zenkai(&["settings", "--from", &before, "--to", &after]).out;
    assert!(profile.contains("vm.swappiness=41"), "{profile}");
}

#[test]
fn what_cannot_be_put_side_by_side_is_refused_with_a_remedy() {
    let dir = tempfile::tempdir().unwrap();
    let good = record(dir.path(), "good", "0.01", &["--json"]);
    let refuses = |before: &str, after: &str, wanted: &str| {
        let called = zenkai(&["report", "--before", before, "--after", after]);
        assert_eq!(called.exit, Exit::Usage, "{}", called.out);
        assert!(called.err.contains(wanted) && called.err.contains("try: "), "{wanted}: {}", called.err);
    };
    refuses(&good, "no-such-label", "no-such-label is no directory and no label of a recording");
    refuses("/proc/self/status", &good, "holds no experiment");
    refuses(&good, text(dir.path()), "holds no experiment");
    refuses(&good, &format!("{good}/../good"), "are the same recording");
    let other = record(dir.path(), "metric", "0.01", &["--metric", "user"]);
    refuses(&good, &other, "not the same metric");
    let other = dir.path().join("other");
    let output = program(&["record", "--runs", "4", "--out", text(&other), "--", "true"]).output().unwrap();
    assert!(output.status.success(), "{}", said(&output));
    refuses(&good, text(&other), "not the same workload");

    let second = record(dir.path(), "second", "0.01", &[]);
    let file = |name: &str| Path::new(&second).join(name);
    let lines = fs::read_to_string(file("trials.jsonl")).unwrap();
    // A line that a crash cut off did not end.
    fs::write(file("trials.jsonl"), &lines[..lines.len() - 40]).unwrap();
    assert_eq!(report(&good, &second)["after"]["runs"], 4);
    fs::write(file("trials.jsonl"), lines.replacen("\"place\":0", "\"place\":3", 1)).unwrap();
    refuses(&good, &second, "plan and trials do not belong together");
    fs::write(file("trials.jsonl"), lines.replacen("\"place\"", "\"plaice\"", 1)).unwrap();
    refuses(&good, &second, "trials.jsonl, line 1");
    fs::write(file("trials.jsonl"), "").unwrap();
    refuses(&good, &second, "has no run that counts");
    fs::write(file("trials.jsonl"), &lines).unwrap();

    // The numbers stand without the machine's state; what is wrong with it is said.
    for (content, wanted) in [
        ("zenkai-capture 99\n", "machine.capture"),
        ("\u{0}\u{1}", "machine.capture"),
        ("", "machine.capture"),
    ] {
        fs::write(file("machine.capture"), content).unwrap();
        let found = report(&good, &second);
        assert!(found["diff"].is_null() && found["notes"].to_string().contains(wanted), "{found}");
    }
    fs::remove_file(file("machine.capture")).unwrap();
    assert!(report(&good, &second)["notes"].to_string().contains("holds no capture"));
    // Nobody waits for whoever might write into a pipe.
    assert!(Command::new("mkfifo").arg(file("machine.capture")).status().unwrap().success());
    assert!(report(&good, &second)["notes"].to_string().contains("not a regular file"));
    let called = zenkai(&["diff", &good, &second]);
    assert!(called.exit == Exit::Usage && called.err.contains("not a regular file"), "{}", called.err);
    fs::remove_dir_all(file("samples")).unwrap();
    assert_eq!(report(&good, &second)["after"]["runs"], 5, "the numbers stand without samples");
    let alone = zenkai(&["report", &good]);
    assert!(alone.exit == Exit::Usage && alone.err.contains("--before"), "{}", alone.err);
}

#[test]
fn experiments_can_be_put_side_by_side_too() {
    let dir = tempfile::tempdir().unwrap();
    let made = |name: &str, seed| {
        let (path, recipe) = (dir.path().join(name), Recipe { seed, ..Recipe::default() });
        fs::create_dir(&path).unwrap();
        let plan = recipe.plan();
        let mut store = Store::create(&path, plan.clone()).unwrap();
        recipe.trials(&plan).into_iter().for_each(|trial| store.append(trial).unwrap());
        text(&path).to_owned()
    };
    let found = report(&made("a", 1), &made("b", 2));
    assert_eq!((&found["before"]["runs"], &found["proof"]), (&20.into(), &false.into()));
    let notes = found["notes"].to_string();
    assert!(notes.contains("compared 2 arms; of them the first, balanced (made up)"), "{notes}");
}

#[test]
fn a_recording_that_cannot_be_made_says_so() {
    let dir = tempfile::tempdir().unwrap();
    let kept = dir.path().join("kept");
    let fails = |args: &[&str], wanted: &str| {
        let output = program(&["record", "--out", text(&kept)]).args(args).output().unwrap();
        assert_eq!(output.status.code(), Some(2), "{args:?}: {}", said(&output));
        assert!(said(&output).contains(wanted), "{args:?}: {}", said(&output));
    };
    fails(&["--", "true"], "--runs");
    fails(&["--runs", "4"], "COMMAND");
    fails(&["--runs", "3", "--", "true"], "4..=1000");
    fails(&["--runs", "4", "--label", "x", "--", "true"], "cannot be used with");
    fails(&["--runs", "4", "--live", "--", "true"], "cannot be used with");
    fails(&["--runs", "4", "--metric", "no-such", "--", "true"], "no-such");
    fails(&["--runs", "4", "--", "false"], "the command fails: exit code 1");
    fails(&["--runs", "4", "--", "true"], "has been used for an experiment already");
}

/// A command that from its fourth run on waits as long as `hold` is there.
fn held(dir: &Path) -> String {
    fs::write(dir.join("hold"), "").unwrap();
    let (count, hold) = (dir.join("count"), dir.join("hold"));
    format!(
        "echo >> {0}; test $(wc -l < {0}) -lt 4 || while test -e {1}; do sleep 0.02; done",
        text(&count),
        text(&hold)
    )
}

#[test]
fn an_interrupted_recording_keeps_its_runs_and_goes_on() {
    let dir = tempfile::tempdir().unwrap();
    let kept = dir.path().join("kept");
    let child = start({
        let mut command = program(&["record", "--runs", "7", "--out", text(&kept)]);
        command.args(["--", "sh", "-c", &held(dir.path())]);
        command
    });
    // The first does not count.
    until("two runs", || trials(&kept).len() == 2);
    send("-INT", &child);
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(130), "{}", said(&output));
    let remedy = format!("to go on: zenkai record --resume {}", text(&kept));
    assert!(
        said(&output).contains("2 runs are kept") && said(&output).contains(&remedy),
        "{}",
        said(&output)
    );

    let refuses = |args: &[&str], wanted: &str| {
        let output = program(args).output().unwrap();
        assert_eq!(output.status.code(), Some(2), "{args:?}: {}", said(&output));
        assert!(said(&output).contains(wanted), "{wanted}: {}", said(&output));
    };
    let again = format!("zenkai record --resume {}", text(&kept));
    refuses(&["compare", "--resume", text(&kept)], &again);
    refuses(&["record", "--runs", "7", "--out", text(&kept), "--", "true"], &again);
    refuses(&["record", "--resume", "no-such-label"], "no directory and no label of a recording");
    refuses(&["record", "--resume", text(&kept), "--", "true"], "cannot be used with");
    let capture = fs::read_to_string(kept.join("machine.capture")).unwrap();
    plant(text(&kept), "/proc/sys/kernel/osrelease", "2.6.32");
    refuses(&["record", "--resume", text(&kept)], "kernel: 2.6.32 then, ");
    fs::write(kept.join("machine.capture"), capture).unwrap();

    let count = || fs::read_to_string(dir.path().join("count")).unwrap().len();
    let before = count();
    fs::remove_file(dir.path().join("hold")).unwrap();
    // The second time all of them are there.
    for _ in 0..2 {
        let output = program(&["record", "--resume", text(&kept), "--json"]).output().unwrap();
        assert!(output.status.success(), "{}", said(&output));
        assert_eq!((trials(&kept).len(), count() - before), (7, 6), "five, and one that does not count");
    }
}

/// Labels, in a state directory that is this test's own. `$1` is the program.
const LABELS: &str = r#"
set -e
mount -t tmpfs -o mode=0700 tmpfs /var/lib/zenkai
cd /
"$1" record --runs 4 --label before-upgrade -- true
"$1" record --runs 4 --label after-upgrade -- true
"$1" capture --list
"$1" report --before before-upgrade --after after-upgrade
"$1" diff before-upgrade now > /tmp/zenkai-diff-$$ || test $? = 1
rm /tmp/zenkai-diff-$$
stat -c 'mode %a %n' /var/lib/zenkai/recordings /var/lib/zenkai/recordings/before-upgrade
set +e
"$1" record --runs 4 --label before-upgrade -- true; echo "taken $?"
"$1" capture --label before-upgrade; echo "taken $?"
"$1" record --runs 4 --label mistyped -- /no/such/program; echo "mistyped $?"
"$1" record --runs 4 --label ../x -- true; echo "bad $?"
test -e /var/lib/zenkai/recordings/mistyped && echo "the label is gone"
here=/var/lib/zenkai; touch $here/hold
held="echo >> $here/count; test \$(wc -l < $here/count) -lt 4 || while test -e $here/hold; do sleep 0.02; done"
"$1" record --runs 5 --label cut -- sh -c "$held" & cut=$!
until test "$(cat $here/count 2> /dev/null | wc -l)" -ge 4; do sleep 0.02; done
kill -TERM $cut; wait $cut; echo "cut $?"
rm $here/hold
"$1" record --runs 5 --label cut -- sh -c "$held"; echo "taken $?"
"$1" record --resume cut; echo "whole $? $(wc -l < $here/recordings/cut/trials.jsonl)"
umount /var/lib/zenkai
"#;

#[test]
fn labels_are_kept_for_root_and_never_overwritten() {
    if !rustix::process::geteuid().is_root() {
        eprintln!("skipped: only root keeps labels");
        return;
    }
    fs::create_dir_all("/var/lib/zenkai").unwrap();
    let mut command = Command::new("unshare");
    command.args(["--mount", "--propagation", "private", "sh", "-c", LABELS, "sh"]);
    command.arg(program(&[]).get_program());
    let output = command.output().unwrap();
    let said = said(&output);
    if said.contains("unshare failed") {
        eprintln!("skipped: {said}");
        return;
    }
    assert!(output.status.success(), "{said}");
    for wanted in [
        "after-upgrade   recording",
        "before  before-upgrade",
        "mode 700 /var/lib/zenkai/recordings\n",
        "mode 700 /var/lib/zenkai/recordings/before-upgrade\n",
        "there is a recording called before-upgrade already",
        "mistyped 2",
        "bad 2",
        "to go on: zenkai record --resume cut\n",
        "cut 130\n",
        "zenkai record --resume cut, where it was interrupted",
        "5 runs, kept in /var/lib/zenkai/recordings/cut, 2 of them there already",
        "whole 0 5\n",
    ] {
        assert!(said.contains(wanted), "{wanted}:\n{said}");
    }
    assert_eq!(said.matches("taken 2").count(), 3, "{said}");
    assert!(!said.contains("the label is gone"), "a mistyped command takes no label: {said}");
}
