//! Profiles on a small machine: list, show, plan and verify change nothing and say where everything is written.

use std::path::Path;

use zenkai::cli::Exit;

use crate::{Called, zenkai};

fn machine() -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    let file = |path: &str, content: &str| {
        let path = dir.path().join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, content).unwrap();
    };
    file("proc/cpuinfo", "processor\t: 0\n");
    file("sys/a", "1\n");
    file("sys/b", "2\n");
    for cpu in 0..5 {
        file(&format!("sys/devices/cpu{cpu}/knob"), "slow\n");
    }
    file("etc/tuned/profiles/base/tuned.conf", "[main]\nsummary=For a test\n[sysfs]\n/sys/a=2\n/sys/b=2\n");
    file(
        "etc/tuned/profiles/mine/tuned.conf",
        "[main]\ninclude=base\n[sysfs]\n/sys/devices/cpu*/knob=fast\n/sys/none=1\n[sysf]\nx=1\n",
    );
    file("etc/tuned/active_profile", "base\n");
    dir
}

fn on(root: &Path, args: &[&str]) -> Called {
    let mut all = vec!["profile"];
    all.extend(args);
    all.extend(["--root", root.to_str().unwrap()]);
    zenkai(&all)
}

#[test]
fn the_plan_folds_equal_knobs_and_names_lines() {
    let machine = machine();
    let called = on(machine.path(), &["plan", "mine", "--exit-code"]);
    assert_eq!(called.exit, Exit::Changes, "{}", called.err);
    for said in [
        "/sys/a: 1 → 2",
        "from /etc/tuned/profiles/base/tuned.conf:4",
        "/sys/devices/cpu0/knob, /sys/devices/cpu1/knob, /sys/devices/cpu2/knob and 2 more: slow → fast",
        "no file matches /sys/none",
        "did you mean `sysfs`?",
        "/etc/tuned/profiles/mine/tuned.conf:6",
        "6 to change now, 1 right already, 1 cannot act here, 1 wrong in the profile",
    ] {
        assert!(called.out.contains(said), "{said}\n{}", called.out);
    }
    assert_eq!(std::fs::read_to_string(machine.path().join("sys/a")).unwrap(), "1\n");
}

#[test]
fn verifying_is_planning_again() {
    let machine = machine();
    let called = on(machine.path(), &["verify"]);
    assert_eq!(called.exit, Exit::Findings, "{}", called.err);
    assert!(called.out.contains("1 differs, 1 is as asked"), "{}", called.out);
    std::fs::write(machine.path().join("sys/a"), "2\n").unwrap();
    let called = on(machine.path(), &["verify", "--json"]);
    assert_eq!(called.exit, Exit::Fine, "{}", called.out);
    let json: serde_json::Value = serde_json::from_str(&called.out).unwrap();
    assert_eq!(json["schema"], "zenkai.verify/1");
    assert_eq!(json["steps"][0]["verdict"], "same");
    assert_eq!(on(machine.path(), &["plan", "base", "--exit-code"]).exit, Exit::Fine);
}

/// What doctor says of the active profile, on the directory and on a capture of it.
#[test]
fn the_doctor_compares_with_the_active_profile() {
    const CHECK: &str = "tuned-profile-not-applied";
    let machine = machine();
    let root = machine.path().to_str().unwrap();
    let file = machine.path().join("x.capture");
    let file = file.to_str().unwrap();
    let doctor = |place: &str, name: &str| zenkai(&["doctor", "--only", CHECK, "--all", place, name]);
    let both = |said: &str, exit: Exit| {
        assert_eq!(zenkai(&["capture", "--root", root, "-o", file]).exit, Exit::Fine);
        for called in [doctor("--root", root), doctor("--capture", file)] {
            assert_eq!(called.exit, exit, "{}{}", called.out, called.err);
            assert!(called.out.contains(said), "{said}\n{}", called.out);
        }
    };
    both("1 of its 2 settings is not in force", Exit::Findings);
    both("2 (/etc/tuned/profiles/base/tuned.conf:4)", Exit::Findings);
    std::fs::write(machine.path().join("sys/a"), "2\n").unwrap();
    both("Passed (1)", Exit::Fine);
    let profile = machine.path().join("etc/tuned/profiles/base/tuned.conf");
    std::fs::write(profile, "[sysfs]\nno option\n").unwrap();
    both("tuned.conf:2", Exit::Fine);
    std::fs::write(machine.path().join("etc/tuned/active_profile"), "\n").unwrap();
    both("no profile is active", Exit::Fine);
}

#[test]
fn lists_and_shows() {
    let machine = machine();
    let called = on(machine.path(), &["list"]);
    assert!(called.out.contains("For a test"), "{}", called.out);
    let called = on(machine.path(), &["show", "mine"]);
    assert!(called.out.contains("/etc/tuned/profiles/base/tuned.conf:4"), "{}", called.out);
    let called = on(machine.path(), &["show", "mine", "--json"]);
    let json: serde_json::Value = serde_json::from_str(&called.out).unwrap();
    assert_eq!((&json["schema"], &json["names"][0]), (&"zenkai.profile/1".into(), &"mine".into()));
    let called = on(machine.path(), &["active"]);
    assert!(called.out.contains("base") && called.out.contains("manual"), "{}", called.out);
}

#[test]
fn hostile_names() {
    let machine = machine();
    let long = "x".repeat(5_000);
    for name in ["a\nb", "\u{1b}[31m", "../x", "a/b", "", ".", &long, "nope"] {
        for command in ["show", "plan", "verify"] {
            let called = on(machine.path(), &[command, name]);
            assert_eq!(called.exit, Exit::Usage, "{command} {name}");
            assert!(called.err.starts_with("zenkai: ") && called.err.len() < 400, "{}", called.err);
            assert!(!called.err.contains('\x1b'), "an escape sequence reached the terminal");
        }
    }
    let called = on(machine.path(), &["plan", "mien"]);
    assert!(called.err.contains("try: `mine`"), "{}", called.err);
    let called = zenkai(&["profile", "plan", "--root", machine.path().to_str().unwrap(), "--", "-rf"]);
    assert!(called.exit == Exit::Usage && called.err.contains("no profile's name"), "{}", called.err);
}

#[test]
fn a_link_called_tuned_adm() {
    let (mut out, mut err) = (Vec::new(), Vec::new());
    let exit = zenkai::cli::run(["/usr/sbin/tuned-adm", "profile_mode"], &mut out, &mut err);
    let out = String::from_utf8(out).unwrap();
    assert!(exit == Exit::Fine && out.starts_with("Profile selection mode: "), "{out}");
    let exit = zenkai::cli::run(["tuned-adm", "nope"], &mut Vec::new(), &mut err);
    assert_eq!(exit, Exit::Usage);
}
