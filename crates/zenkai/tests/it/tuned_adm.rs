//! `tuned-adm`: as the real one where that can be asked, and with its files, log lines and exit codes where it would need
//! its daemon.

use std::{
    env, fs,
    os::unix::fs::PermissionsExt,
    path::Path,
    process::{Command, Output},
};

use zenkai::cli::Exit;

use crate::{
    real_tuned::{PutBack, inside, zenkai},
    watched::Watched,
};

fn called(args: &[&str]) -> (Exit, String, String) {
    let (mut out, mut err) = (Vec::new(), Vec::new());
    let exit = zenkai::cli::run(std::iter::once(&"/usr/sbin/tuned-adm").chain(args), &mut out, &mut err);
    (exit, String::from_utf8(out).unwrap(), String::from_utf8(err).unwrap())
}

#[test]
fn mistakes_and_hostile_arguments() {
    for args in [&["nope"][..], &["verify", "-x"], &["-t", "soon", "active"], &["list", "\u{1b}[31m"]] {
        let (exit, out, err) = called(args);
        assert!(exit == Exit::Usage && out.is_empty(), "{args:?}: {err}");
        assert!(err.starts_with("usage: tuned-adm ") && err.contains(": error: "), "{err}");
        assert!(!err.contains('\u{1b}'), "an escape sequence reached the terminal");
    }
    let long = "x".repeat(5_000);
    for name in ["a\nb", "\u{1b}[31m", "ä", &long, " "] {
        let (exit, out, err) = called(&["profile", name]);
        assert!(exit == Exit::Findings && out.is_empty(), "{name:?}: {out}");
        assert_eq!(err.lines().last().unwrap(), "Unable to switch profile: Invalid profile_name");
    }
    let (exit, out, err) = called(&[]);
    assert!(exit == Exit::Findings && out.is_empty() && err.starts_with("usage: "), "{err}");
    let (exit, out, _) = called(&["--version"]);
    assert!(exit == Exit::Fine && out.starts_with("tuned-adm 2.28.0 "), "{out}");
}

#[test]
fn what_could_not_be_looked_at_is_no_success() {
    let dir = tempfile::tempdir().unwrap();
    let profile = dir.path().join("etc/tuned/profiles/p");
    fs::create_dir_all(&profile).unwrap();
    fs::create_dir(dir.path().join("proc")).unwrap();
    fs::write(profile.join("script.sh"), "#!/bin/sh\nexit 0\n").unwrap();
    fs::write(profile.join("tuned.conf"), "[script]\nscript=${i:PROFILE_DIR}/script.sh\n").unwrap();
    let root = dir.path().to_str().unwrap();
    let called = crate::zenkai(&["profile", "verify", "p", "--root", root]);
    assert_eq!(called.exit, Exit::PartlyUnreadable, "{}", called.out);
    assert!(called.out.contains("1 cannot be told") && called.out.contains("script.sh"), "{}", called.out);
}

/// What a program wrote, its exit code, and the last line of its errors, where argparse says what is wrong.
#[derive(Debug, PartialEq)]
struct Said {
    out: String,
    last: String,
    code: Option<i32>,
}

impl Said {
    fn of(output: &Output) -> Self {
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let errors = text(&output.stderr);
        // The real one says that its daemon is not there, and what it could not start.
        let noise = ["Cannot talk to TuneD daemon", " tuned.utils.commands: "];
        let last = errors.lines().rfind(|line| !noise.iter().any(|noise| line.contains(noise)));
        Self {
            out: text(&output.stdout),
            last: last.unwrap_or_default().to_owned(),
            code: output.status.code(),
        }
    }
}

fn theirs(args: &[&str]) -> Said {
    let root = env::var("ZENKAI_TUNED").unwrap();
    let mut python = Command::new("/usr/bin/python3");
    python.arg(Path::new(&root).join("usr/sbin/tuned-adm")).args(args).env("PYTHONDONTWRITEBYTECODE", "1");
    Said::of(&python.output().unwrap())
}

fn ours(args: &[&str]) -> Said {
    Said::of(&zenkai(&["tuned-adm"]).args(args).output().unwrap())
}

/// The real one at hand may be older than these commands.
fn without_newer(said: &mut Said) {
    for name in ["instance_acquire_devices", "get_instances", "instance_get_devices"] {
        said.last = said.last.replace(&format!(",{name}"), "").replace(&format!(", '{name}'"), "");
    }
}

/// Ours beside theirs; profiles that only zenkai brings are left out.
fn without_own(ours: &mut Said, theirs: &Said) {
    let known: Vec<&str> = theirs.out.lines().collect();
    let kept = ours.out.lines().filter(|line| !line.starts_with("- ") || known.contains(line));
    ours.out = kept.map(|line| format!("{line}\n")).collect::<Vec<_>>().concat();
}

const ASKED: &[&[&str]] = &[
    &[],
    &["list"],
    &["list", "profiles", "-v"],
    &["list", "-v", "profiles"],
    &["list", "nope"],
    &["list", "profiles", "extra"],
    &["list", "-x"],
    &["list", "-vx"],
    &["active"],
    &["active", "--"],
    &["profile"],
    &["profile", "--"],
    &["profile", "-rf"],
    &["profile_info"],
    &["profile_info", ""],
    &["profile_info", "nope"],
    &["profile_info", "a/../b"],
    &["profile_info", "a", "b"],
    &["profile_info", "--pro"],
    &["profile_mode"],
    &["profile_mode", "extra"],
    &["verify", "-x"],
    &["verify", "-ix"],
    &["nope"],
    &[""],
    &["a b"],
    &["it's"],
    &["--", "profile_mode"],
    &["-5", "active"],
    &["-a b"],
    &["-x", "profile_mode"],
    &["-t"],
    &["-t", "0", "list"],
    &["-t", "-5", "active"],
    &["--timeout=", "active"],
    &["--timeout=x", "profile_mode"],
    &["-l", "foo", "profile_mode"],
    &["--lo", "list"],
    &["--l", "debug", "profile_mode"],
    &["-dat5", "profile_mode"],
    &["-d", "-a", "--timeout=7", "--async", "profile_mode"],
    &["--debug=3", "profile_mode"],
    &["-d3", "profile_mode"],
    &["--async=1", "active"],
];

/// What a test writes to the state directory is its own.
fn own_state() {
    fs::create_dir_all("/var/lib/zenkai").unwrap();
    let mut mount = Command::new("mount");
    let status = mount.args(["-t", "tmpfs", "-o", "mode=0700", "tmpfs", "/var/lib/zenkai"]).status().unwrap();
    assert!(status.success());
}

#[test]
#[ignore = "needs the real tuned; `cargo xtask test` fetches it"]
fn says_what_the_real_one_says() {
    if !inside("tuned_adm::says_what_the_real_one_says") {
        return;
    }
    own_state();
    let mut wrong = Vec::new();
    let mut compare = |args: &[&str], situation: &str| {
        let (mut theirs, mut ours) = (theirs(args), ours(args));
        without_newer(&mut theirs);
        without_newer(&mut ours);
        without_own(&mut ours, &theirs);
        if ours != theirs {
            wrong.push(format!("{situation}: {args:?}\n  {ours:?}\n  {theirs:?}"));
        }
    };
    for args in ASKED {
        compare(args, "no profile");
    }
    let mut profiles = 0;
    for entry in fs::read_dir("/usr/lib/tuned").unwrap().flatten().filter(|entry| entry.path().is_dir()) {
        compare(&["profile_info", entry.file_name().to_str().unwrap()], "no profile");
        profiles += 1;
    }
    assert!(profiles > 20, "only {profiles} stock profiles");
    fs::write("/etc/tuned/recommend.conf", "[some]\nprocess=.*nothing.*\n[other]\n/etc/passwd=.*root\n")
        .unwrap();
    compare(&["recommend"], "rules of our own");
    fs::write("/etc/tuned/active_profile", "throughput-performance\n").unwrap();
    for args in [&["active"][..], &["list"], &["profile_mode"], &["profile_info"]] {
        compare(args, "chosen, not applied");
    }
    fs::write("/etc/tuned/post_loaded_profile", "balanced\n").unwrap();
    compare(&["active"], "with a post-loaded profile");
    fs::write("/etc/tuned/profile_mode", "nonsense\n").unwrap();
    for args in [&["active"][..], &["profile_mode"], &["profile_info"]] {
        compare(args, "a mode that is none");
    }
    assert!(wrong.is_empty(), "{} differ:\n{}", wrong.len(), wrong.join("\n"));
}

const PROFILE: &str = "[main]\nsummary=For a test\n[sysctl]\nvm.swappiness=11\nno.such.key=1\n\
                       [sysfs]\n/sys/kernel/mm/ksm/sleep_millisecs=31\n[cpu]\nboost=1\n\
                       [script]\nscript=${i:PROFILE_DIR}/script.sh\n";
const SCRIPT: &str = "#!/bin/sh\n. /usr/lib/tuned/functions\nstart() { echo started >/run/tadm-test; }\n\
                      stop() { echo \"stopped $*\" >/run/tadm-test; }\n\
                      verify() { [ \"$(cat /run/tadm-test)\" = started ]; }\nprocess \"$@\"\n";

fn read(path: &str) -> String {
    fs::read_to_string(path).unwrap_or_default()
}

fn said(args: &[&str], code: i32, out: &str, last: &str) {
    let wanted = Said { out: out.to_owned(), last: last.to_owned(), code: Some(code) };
    assert_eq!(ours(args), wanted, "{args:?}\n{}", read("/var/log/tuned/tuned.log"));
}

#[test]
#[ignore = "changes two settings of this machine for a moment; `cargo xtask test` runs it"]
fn switches_verifies_and_goes_back() {
    if !inside("tuned_adm::switches_verifies_and_goes_back") {
        return;
    }
    own_state();
    let before = PutBack(Watched::look());
    // As on a machine where tuned was removed.
    fs::remove_file("/usr/lib/tuned/functions").unwrap();
    fs::create_dir_all("/etc/tuned/profiles/mine").unwrap();
    fs::write("/etc/tuned/tuned-main.conf", "profile_dirs=/usr/lib/tuned,/etc/tuned/profiles\n").unwrap();
    fs::write("/etc/tuned/profiles/mine/tuned.conf", PROFILE).unwrap();
    let script = "/etc/tuned/profiles/mine/script.sh";
    fs::write(script, SCRIPT).unwrap();
    fs::set_permissions(script, fs::Permissions::from_mode(0o755)).unwrap();
    let swappiness = || read("/proc/sys/vm/swappiness").trim().to_owned();
    let was = swappiness();
    assert_ne!(was, "11");

    said(&["profile", "nope"], 1, "", "Unable to switch profile: Requested profile 'nope' doesn't exist.");
    said(
        &["profile", "mine nope"],
        1,
        "",
        "Unable to switch profile: Requested profile 'nope' doesn't exist.",
    );
    said(
        &["profile", "--", "-rf"],
        1,
        "",
        "Unable to switch profile: Requested profile '-rf' doesn't exist.",
    );
    assert_eq!(swappiness(), was);

    said(&["profile", "mine"], 0, "", "");
    assert_eq!((swappiness().as_str(), read("/run/tadm-test").as_str()), ("11", "started\n"));
    assert_eq!(read("/etc/tuned/active_profile"), "mine\n");
    assert_eq!(read("/etc/tuned/profile_mode"), "manual\n");
    let applied = "INFO     tuned.daemon.daemon: static tuning from profile 'mine' applied\n";
    assert!(read("/var/log/tuned/tuned.log").ends_with(applied));
    said(&["active"], 0, "Current active profile: mine\n", "");
    said(&["get_instances", "sysctl"], 0, "sysctl (sysctl)\n", "");

    // Without -i a switch that the machine lacks counts, as with tuned.
    let log = "See TuneD log file ('/var/log/tuned/tuned.log') for details.\n";
    let good = format!("Verification succeeded, current system settings match the preset profile.\n{log}");
    said(&["verify", "-i"], 0, &good, "");
    assert!(read("/var/log/tuned/tuned.log").contains("verify: passed: 'vm.swappiness' = '11'\n"));
    fs::write("/run/tadm-test", "somebody else\n").unwrap();
    let bad = ours(&["verify", "-i"]);
    assert!(bad.code == Some(1) && bad.out.starts_with("Verification failed, current system"), "{bad:?}");
    assert!(bad.out.ends_with(log), "{bad:?}");
    assert!(read("/var/log/tuned/tuned.log").ends_with(&format!("verify: failed: '{script}'\n")));

    said(&["auto_profile"], 0, "", "");
    assert_eq!(read("/etc/tuned/profile_mode"), "auto\n");
    assert_eq!(read("/run/tadm-test"), "stopped full_rollback\n");
    said(&["profile", "mine"], 0, "", "");
    said(&["off"], 0, "", "");
    assert_eq!(swappiness(), was);
    assert_eq!(read("/etc/tuned/active_profile"), "");
    assert_eq!(read("/etc/tuned/profile_mode"), "manual\n");
    assert!(!Path::new("/usr/lib/tuned/functions").exists(), "the library stayed behind");
    said(&["active"], 1, "No current active profile.\n", "");
    let choice = ["/etc/tuned/active_profile", "/etc/tuned/profile_mode"];
    let left: Vec<_> = before.0.differences(&Watched::look()).into_iter().collect();
    let left: Vec<_> =
        left.iter().filter(|(path, _)| !is_the_test_s(path) && !choice.contains(&path.as_str())).collect();
    assert!(left.is_empty(), "{left:?}");
}

/// Files that the test itself writes.
fn is_the_test_s(path: &str) -> bool {
    path.starts_with("/etc/tuned/profiles/mine/") || path == "/etc/tuned/tuned-main.conf"
}
