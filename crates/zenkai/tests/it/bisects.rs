//! `zenkai bisect` on this machine: a planted slow setting among ten harmless ones is found, and nothing stays changed.
//!
//! Counted are page faults of a program that fills 64 MiB: with huge pages one for 2 MiB, without one for each page.
//! That does not depend on who else is at work, as a time would.

use std::{
    fs,
    path::Path,
    process::{Output, Stdio},
    time::Duration,
};

use crate::{
    compare::send,
    real_tuned::{PutBack, inside, zenkai},
    watched::Watched,
};

const HUGE_PAGES: &str = "/sys/kernel/mm/transparent_hugepage/enabled";
/// A page fault costs the same whatever these say; each is made larger by one.
const HARMLESS: [&str; 10] = [
    "net/core/netdev_budget",
    "vm/dirty_expire_centisecs",
    "vm/dirty_writeback_centisecs",
    "vm/laptop_mode",
    "vm/page-cluster",
    "vm/stat_interval",
    "vm/swappiness",
    "vm/vfs_cache_pressure",
    "vm/watermark_boost_factor",
    "vm/watermark_scale_factor",
];
/// Field 11 of /proc/PID/stat: faults of the children (proc_pid_stat(5)).
const WORKLOAD: &str = "dd if=/dev/zero of=/dev/null bs=64M count=1 status=none; \
                        set -- $(cat /proc/$$/stat); shift 10; echo \"faults $1\"";

fn bisect(arguments: &[&str]) -> Output {
    let quick = ["--metric", "faults ([0-9]+)", "--better", "lower", "--pairs", "8", "--settle", "0s..0s"];
    let mut command = zenkai(&["bisect", "--no-sample", "--seed", "7"]);
    let output = command.args(quick).args(arguments).args(["--", "sh", "-c", WORKLOAD]).output().unwrap();
    eprintln!("{}{}", String::from_utf8_lossy(&output.stderr), String::from_utf8_lossy(&output.stdout));
    output
}

fn plant() {
    fs::write(HUGE_PAGES, "never").unwrap();
    for name in HARMLESS {
        let path = format!("/proc/sys/{name}");
        let value: u64 = fs::read_to_string(&path).unwrap().trim().parse().unwrap();
        fs::write(&path, (value + 1).to_string()).unwrap();
    }
}

#[test]
#[ignore = "changes this machine for a minute; `cargo xtask test` runs it"]
fn a_planted_setting_is_found_among_ten_harmless_ones() {
    if !inside("bisects::a_planted_setting_is_found_among_ten_harmless_ones") {
        return;
    }
    if !Path::new(HUGE_PAGES).exists() {
        eprintln!("SKIPPED: this kernel has no transparent huge pages");
        return;
    }
    let _at_the_end = PutBack(Watched::look());
    let scratch = tempfile::tempdir().unwrap();
    let (good, out) = (scratch.path().join("good.capture"), scratch.path().join("out"));
    let (good, dir) = (good.to_str().unwrap(), out.to_str().unwrap());
    fs::write(HUGE_PAGES, "always").unwrap();
    assert!(zenkai(&["capture", "-o", good]).status().unwrap().success());
    plant();
    let planted = Watched::look();

    let output = bisect(&["--from", good, "--out", dir, "--json"]);
    assert!(output.status.success());
    let changed = planted.differences(&Watched::look());
    assert!(changed.is_empty(), "{changed:?}");
    let found: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert!(found["toggles"].as_array().unwrap().len() > HARMLESS.len(), "{found}");
    let accused = found["outcome"]["accused"].as_array().unwrap();
    assert_eq!(accused.len(), 1, "{found}");
    let number = usize::try_from(accused[0]["toggles"][0].as_u64().unwrap()).unwrap();
    assert_eq!(found["toggles"][number]["name"], HUGE_PAGES);
    assert!(accused[0]["alone"]["percent"].as_f64().unwrap() < -50.0, "{found}");
    assert_eq!(found["outcome"]["rest_together"]["verdict"], "equal", "{found}");

    // What was measured answers again, and at once.
    let again = zenkai(&["bisect", "--resume", dir, "--json"]).output().unwrap();
    assert_eq!(again.stdout, output.stdout);
    let changed = planted.differences(&Watched::look());
    assert!(changed.is_empty(), "{changed:?}");
}

/// A number that never changes, so that each answer is known after the fewest pairs.
const CONSTANT: &str = "sleep 0.2; echo faults 5";

/// What the machine would be if one setting were another.
fn capture_with_other_swappiness(dir: &Path) -> (String, u64) {
    let path = "/proc/sys/vm/swappiness";
    let here: u64 = fs::read_to_string(path).unwrap().trim().parse().unwrap();
    let other = if here == 1 { 2 } else { here - 1 };
    let capture = dir.join("other.capture").to_str().unwrap().to_owned();
    assert!(zenkai(&["capture", "-o", &capture]).status().unwrap().success());
    let text = fs::read_to_string(&capture).unwrap();
    let record = |value: u64| format!("read {path} = {value}\n");
    assert!(text.contains(&record(here)), "the capture holds no swappiness");
    fs::write(&capture, text.replace(&record(here), &record(other))).unwrap();
    (capture, here)
}

fn constant(arguments: &[&str]) -> Output {
    let quick = ["--metric", "faults ([0-9]+)", "--better", "lower", "--pairs", "6", "--settle", "0s..0s"];
    let mut command = zenkai(&["bisect", "--no-sample", "--seed", "7"]);
    let output = command.args(quick).args(arguments).args(["--", "sh", "-c", CONSTANT]).output().unwrap();
    eprintln!("{}{}", String::from_utf8_lossy(&output.stderr), String::from_utf8_lossy(&output.stdout));
    output
}

#[test]
#[ignore = "changes this machine for seconds; `cargo xtask test` runs it"]
fn a_search_goes_on_only_on_the_same_machine() {
    if !inside("bisects::a_search_goes_on_only_on_the_same_machine") {
        return;
    }
    let _at_the_end = PutBack(Watched::look());
    let scratch = tempfile::tempdir().unwrap();
    let (capture, here) = capture_with_other_swappiness(scratch.path());
    let swappiness = |value: u64| fs::write("/proc/sys/vm/swappiness", value.to_string()).unwrap();
    let out = scratch.path().join("out");
    let dir = out.to_str().unwrap();

    let output = constant(&["--from", &capture, "--out", dir, "--budget", "1s", "--json"]);
    assert!(output.status.success());
    let found: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(
        (&found["stopped"], &found["toggles"][0]["name"]),
        (&"the budget is used up".into(), &"vm.swappiness".into())
    );
    let first = format!("{dir}/01");
    let alone = zenkai(&["compare", "--resume", &first]).output().unwrap();
    let said = String::from_utf8_lossy(&alone.stderr).into_owned();
    assert_eq!(alone.status.code(), Some(2), "{said}");
    assert!(said.contains("one experiment of a search") && said.contains("zenkai bisect --resume"), "{said}");

    let whole = zenkai(&["compare", "--resume", dir]).output().unwrap();
    assert_eq!(whole.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&whole.stderr).contains("is a search and no single experiment"));

    swappiness(here + 7);
    let refused = zenkai(&["bisect", "--resume", dir]).output().unwrap();
    let said = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert_eq!(refused.status.code(), Some(2), "{said}");
    assert!(said.contains(&format!("vm.swappiness: {here} then, {} now", here + 7)), "{said}");

    // Nor is anything laid down there: nobody could go on with the plan of another machine.
    fs::remove_dir_all(&first).unwrap();
    let refused = zenkai(&["bisect", "--resume", dir]).output().unwrap();
    assert_eq!(refused.status.code(), Some(2));
    let plan = format!("{first}/experiment.json");
    assert!(!Path::new(&plan).is_file());

    swappiness(here);
    let output = zenkai(&["bisect", "--resume", dir, "--json"]).output().unwrap();
    let found: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(
        (&found["outcome"]["end"], &found["stopped"]),
        (&"no-difference".into(), &serde_json::Value::Null)
    );
    // What has been measured answers on any machine.
    swappiness(here + 7);
    let again = zenkai(&["bisect", "--resume", dir, "--json"]).output().unwrap();
    assert_eq!(again.stdout, output.stdout);
    // What has been measured by another rule does not.
    let text = fs::read_to_string(&plan).unwrap();
    assert!(text.contains("\"alpha\": 0.05,"), "{text}");
    fs::write(&plan, text.replace("\"alpha\": 0.05,", "\"alpha\": 0.5,")).unwrap();
    let refused = zenkai(&["bisect", "--resume", dir]).output().unwrap();
    let said = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert_eq!(refused.status.code(), Some(2), "{said}");
    assert!(said.contains("01/experiment.json: its rule is not what this search laid down"), "{said}");
}

#[test]
#[ignore = "changes this machine for seconds; `cargo xtask test` runs it"]
fn a_workload_that_never_differs_or_cannot_run_is_said() {
    if !inside("bisects::a_workload_that_never_differs_or_cannot_run_is_said") {
        return;
    }
    let _at_the_end = PutBack(Watched::look());
    let scratch = tempfile::tempdir().unwrap();
    let (capture, _) = capture_with_other_swappiness(scratch.path());
    let out = scratch.path().join("out");
    let output = constant(&["--from", &capture, "--out", out.to_str().unwrap()]);
    let told = String::from_utf8_lossy(&output.stdout).into_owned();
    assert_eq!(output.status.code(), Some(0), "{told}");
    assert!(told.contains("no difference to explain") && !told.contains("to blame"), "{told}");
    for (command, said) in [
        (&["/no/such/command"][..], "/no/such/command"),
        (&["sh", "-c", "echo broken >&2; exit 3"], "the workload fails: exit code 3: broken"),
    ] {
        let mut bisect = zenkai(&["bisect", "--from", &capture, "--no-sample", "--"]);
        let output = bisect.args(command).current_dir(scratch.path()).output().unwrap();
        let told = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(2), "{told}");
        assert!(told.contains(said), "{told}");
    }
    // Ended during the run that does not count.
    let mut bisect = zenkai(&["bisect", "--from", &capture, "--no-sample", "--"]);
    bisect.args(["sh", "-c", "touch started; exec sleep 60"]).current_dir(scratch.path());
    let bisect = bisect.stderr(Stdio::piped()).spawn().unwrap();
    while !scratch.path().join("started").is_file() {
        std::thread::sleep(Duration::from_millis(10));
    }
    send("-TERM", &bisect);
    let output = bisect.wait_with_output().unwrap();
    let told = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!((output.status.code(), told.trim_end()), (Some(130), "zenkai: interrupted"));
    let number =
        zenkai(&["bisect", "--from", &capture, "--no-sample", "--metric", "x ([0-9]+)", "--better", "lower"])
            .args(["--", "true"])
            .current_dir(scratch.path())
            .output()
            .unwrap();
    assert_eq!(number.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&number.stderr).contains("the workload fails"));
}

#[test]
#[ignore = "asks for root; `cargo xtask test` runs it"]
fn what_cannot_be_searched_is_said() {
    if !inside("bisects::what_cannot_be_searched_is_said") {
        return;
    }
    let scratch = tempfile::tempdir().unwrap();
    let cut = scratch.path().join("cut.capture");
    assert!(zenkai(&["capture", "-o", cut.to_str().unwrap()]).status().unwrap().success());
    // The same machine a moment later: nothing differs that could be toggled.
    let output = bisect(&["--from", cut.to_str().unwrap()]);
    assert_eq!(output.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&output.stderr).contains("can be toggled here"));
    let text = fs::read(&cut).unwrap();
    fs::write(&cut, &text[..text.len() / 2]).unwrap();
    let other = |name: &str, content: &[u8]| {
        let path = scratch.path().join(name);
        fs::write(&path, content).unwrap();
        path.to_str().unwrap().to_owned()
    };
    let (newer, noise) = (other("newer", b"zenkai-capture 99\n"), other("noise", b"\x7fELF\x01\xff\xfe\n"));
    let empty = other("empty", b"");
    let foreign = String::from_utf8(text.clone()).unwrap().replace(std::env::consts::ARCH, "riscv64");
    let foreign = other("foreign", foreign.as_bytes());
    for (arguments, told) in [
        (&["--from", cut.to_str().unwrap()][..], "cut.capture: line "),
        (&["--from", &newer], "newer: line 1: this capture was made by a newer zenkai"),
        (&["--from", &noise], "noise: line 1: not UTF-8"),
        (&["--from", &empty], "empty: line 1: the file is empty"),
        (&["--from", scratch.path().to_str().unwrap()], "holds neither proc, sys nor etc"),
        (&["--from", "/dev/null"], "not a regular file"),
        (&["--from", &foreign], "the architectures differ (riscv64 and "),
        (&["--from", &foreign], "can be toggled here"),
        (&["--from", "no-such-label"], "no file, no directory and no label"),
        (&["--from", "x", "--to", "y"], "cannot be measured from here"),
        (&["profile:balanced", "powersave"], "`powersave` is no profile"),
        (&["profile:balanced", "profile:no-such"], "no-such"),
        (&[], "nothing to compare this machine with"),
    ] {
        let output = bisect(arguments);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}");
        assert!(String::from_utf8_lossy(&output.stderr).contains(told), "{arguments:?}");
    }
    let output = zenkai(&["bisect", "--resume", scratch.path().to_str().unwrap()]).output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&output.stderr).contains("bisect.json"));
    let broken = scratch.path().join("broken");
    fs::create_dir(&broken).unwrap();
    for content in ["", "{\"schema\": \"zenkai.bisect/1\", \"sid", "{}", "[1, 2"] {
        fs::write(broken.join("bisect.json"), content).unwrap();
        let output = zenkai(&["bisect", "--resume", broken.to_str().unwrap()]).output().unwrap();
        let told = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(2), "{told}");
        assert!(told.contains("broken/bisect.json: ") && told.contains("line 1"), "{told}");
    }
}
