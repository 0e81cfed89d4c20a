//! `doctor --fix`: remedies become a plan, and on this machine the finding goes away and comes back with `undo`.

use std::{
    fs,
    os::unix::{fs::PermissionsExt, process::CommandExt},
    path::Path,
    process::{Command, Stdio},
};

use serde_json::Value;
use zenkai::cli::Exit;

use crate::{
    Called,
    compare::is_root,
    real_tuned::{PutBack, inside, zenkai as program},
    watched::Watched,
    zenkai,
};

const SLOW_START: &str = "net-slow-start-after-idle";
const SLOW_START_FILE: &str = "proc/sys/net/ipv4/tcp_slow_start_after_idle";

fn machine() -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    for (path, content) in [
        (SLOW_START_FILE, "1\n"),
        ("proc/cpuinfo", "processor\t: 0\n"),
        ("proc/cmdline", "root=/dev/sda idle=poll\n"),
        ("proc/sys/vm/swappiness", "60\n"),
        ("sys/devices/system/cpu/online", "0\n"),
    ] {
        let path = dir.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content).unwrap();
    }
    dir
}

fn fix(root: &Path, args: &[&str]) -> Called {
    let mut all = vec!["doctor", "--root", root.to_str().unwrap(), "--workload", "web", "--fix"];
    all.extend(args);
    zenkai(&all)
}

#[test]
fn a_remedy_is_a_plan() {
    let machine = machine();
    let called = fix(machine.path(), &[SLOW_START, "--dry-run"]);
    assert_eq!(called.exit, Exit::Fine, "{}", called.err);
    for said in [
        "net.ipv4.tcp_slow_start_after_idle: 1 → 0",
        "from check net-slow-start-after-idle",
        "risk: ",
        "1 to change now",
    ] {
        assert!(called.out.contains(said), "{said}\n{}", called.out);
    }
    let called = fix(machine.path(), &[SLOW_START, "--dry-run", "--json"]);
    let json: Value = serde_json::from_str(&called.out).unwrap();
    assert_eq!((&json["schema"], &json["changes"]), (&"zenkai.plan/1".into(), &true.into()));
    assert_eq!(json["checks"][0]["outcome"], "settable");
    assert_eq!(fs::read_to_string(machine.path().join(SLOW_START_FILE)).unwrap(), "1\n");
}

#[test]
fn what_is_already_well_changes_nothing() {
    let machine = machine();
    fs::write(machine.path().join(SLOW_START_FILE), "0\n").unwrap();
    let called = fix(machine.path(), &[SLOW_START, "--dry-run"]);
    assert_eq!(called.exit, Exit::Fine, "{}", called.err);
    assert!(called.out.contains("net-slow-start-after-idle: found nothing wrong"), "{}", called.out);
    assert!(called.out.contains("nothing is asked for"), "{}", called.out);
}

#[test]
fn what_a_person_must_do_is_said() {
    let machine = machine();
    let called = fix(machine.path(), &["idle-polling", "--dry-run", "--json"]);
    assert_eq!(called.exit, Exit::Findings, "{}", called.err);
    let json: Value = serde_json::from_str(&called.out).unwrap();
    // A kernel argument without a boot loader that is known.
    assert_eq!(json["checks"][0]["outcome"], "settable", "{json}");
    assert!(json["steps"][0]["state"]["cannot"]["why"].as_str().unwrap().contains("boot loader"), "{json}");
    let nic = crate::golden::hosts().join("nic.capture");
    let args = ["doctor", "--capture", nic.to_str().unwrap(), "--fix", "net-emulated-driver", "--dry-run"];
    let called = zenkai(&args);
    assert_eq!(called.exit, Exit::Findings, "{}", called.err);
    assert!(called.out.contains("it is left to you"), "{}", called.out);
}

#[test]
fn wrong_names_and_places() {
    let machine = machine();
    let called = fix(machine.path(), &["net-slow-start-after-idel", "--dry-run"]);
    assert_eq!(called.exit, Exit::Usage);
    assert!(called.err.contains("try: `net-slow-start-after-idle`"), "{}", called.err);
    let called = fix(machine.path(), &["all", "--dry-run"]);
    assert!(called.exit == Exit::Usage && called.err.contains("by name"), "{}", called.err);
    let called = fix(machine.path(), &[SLOW_START]);
    assert!(called.exit == Exit::Usage && called.err.contains("--dry-run"), "{}", called.err);
    let called = zenkai(&["doctor", "--dry-run"]);
    assert_eq!(called.exit, Exit::Usage);
}

/// Exit code and output of the program, as a process of its own.
fn must(args: &[&str], code: i32) -> String {
    let output = program(args).output().unwrap();
    let said = String::from_utf8([output.stdout, output.stderr].concat()).unwrap();
    assert_eq!(output.status.code(), Some(code), "zenkai {args:?}: {said}");
    said
}

/// Loading the machine for seconds only to say then that root is needed would be a waste.
#[test]
fn without_root_nothing_is_probed() {
    let dir = tempfile::tempdir().unwrap();
    let copy = dir.path().join("zenkai");
    fs::copy(env!("CARGO_BIN_EXE_zenkai"), &copy).unwrap();
    // Progress is told at a terminal only.
    let mut command = Command::new("script");
    let line = format!("{} doctor --fix {SLOW_START} --probe", copy.display());
    command.args(["-qec", &line, "/dev/null"]).env("SHELL", "/bin/sh").current_dir(dir.path());
    if is_root() {
        let open = PermissionsExt::from_mode(0o755);
        fs::set_permissions(dir.path(), open).unwrap();
        command.uid(65534).gid(65534);
    }
    let Ok(output) = command.stdin(Stdio::null()).output() else {
        eprintln!("SKIPPED: there is no script(1)");
        return;
    };
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(said.contains("only root may change this machine") && !said.contains("probing"), "{said}");
    assert_eq!(output.status.code(), Some(77), "{said}");
}

#[test]
#[ignore = "changes this machine for a moment; `cargo xtask test` runs it"]
fn a_finding_goes_and_comes_back() {
    if !inside("fixes::a_finding_goes_and_comes_back") {
        return;
    }
    let _before = PutBack(Watched::look());
    let sysctl = format!("/{SLOW_START_FILE}");
    let mut ailing = vec![(SLOW_START, sysctl, "1")];
    let queue = |disk: fs::DirEntry| disk.path().join("queue/read_ahead_kb");
    let disk = fs::read_dir("/sys/block").unwrap().flatten().map(queue).find(|path| {
        path.is_file()
            && ["vd", "sd", "nvme", "xvd"]
                .iter()
                .any(|bus| path.to_str().unwrap().contains(&format!("/{bus}")))
    });
    let Some(disk) = disk else {
        eprintln!("SKIPPED: no disk whose read-ahead could be fixed");
        return;
    };
    let disk_before = fs::read_to_string(&disk).unwrap();
    ailing.push(("block-read-ahead-off", disk.to_str().unwrap().to_owned(), "0"));
    for (_, path, bad) in &ailing {
        fs::write(path, bad).unwrap();
    }
    let fires = |check: &str| {
        let output = program(&["doctor", "--workload", "web", "--only", check]).output().unwrap();
        output.status.code() == Some(1)
    };
    let shown = |path: &str| fs::read_to_string(path).unwrap().trim().to_owned();
    let checks: Vec<&str> = ailing.iter().map(|(check, ..)| *check).collect();
    assert!(checks.iter().all(|check| fires(check)));
    let args = ["doctor", "--workload", "web", "--fix", checks[0], checks[1]];
    must(&[&args[..], &["--dry-run"]].concat(), 0);
    assert!(checks.iter().all(|check| fires(check)), "a plan changes nothing");
    let said = must(&args, 0);
    assert!(said.contains("done: 2 set") && said.contains("undo: zenkai undo"), "{said}");
    assert!(checks.iter().all(|check| !fires(check)), "the findings are gone");
    assert!(must(&["log"], 0).contains("fix block-read-ahead-off net-slow-start-after-idle"));
    let said = must(&args, 0);
    assert!(said.contains("found nothing wrong") && said.contains("nothing to change"), "{said}");
    must(&["undo"], 0);
    for (check, path, bad) in &ailing {
        assert!(fires(check) && shown(path) == *bad, "{check} after undo: {}", shown(path));
    }
    fs::write(disk, disk_before).unwrap();
}
