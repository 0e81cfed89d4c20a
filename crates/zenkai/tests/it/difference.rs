//! `zenkai diff` and `zenkai settings` on captured machines.

use std::{collections::BTreeSet, path::Path, time::Duration};

use serde_json::Value;
use zenkai::cli::Exit;
use zenkai_host::{Capture, FakeHost};
use zenkai_lab::ailment::Ailment;
use zenkai_tune::{
    Plan, Scene,
    profile::{Functions, Library, MainConf},
    transaction::{Kind, Request, Session, Store},
    wishes,
};

use crate::{
    Called,
    golden::{captures, hosts, snapshot, unmarked},
    zenkai,
};

fn host(name: &str) -> String {
    hosts().join(format!("{name}.capture")).to_str().unwrap().to_owned()
}

fn json(args: &[&str]) -> Value {
    let called = zenkai(args);
    serde_json::from_str(&called.out).unwrap_or_else(|error| panic!("{args:?}: {error}: {}", called.err))
}

fn differences(a: &str, b: &str) -> Vec<Value> {
    let value = json(&["diff", a, b, "--json"]);
    assert_eq!(value["schema"], "zenkai.diff/1");
    value["differences"].as_array().unwrap().clone()
}

/// A capture in a file of its own.
fn written(dir: &Path, name: &str, text: &str) -> String {
    let path = dir.join(name);
    std::fs::write(&path, text).unwrap();
    path.to_str().unwrap().to_owned()
}

#[test]
fn a_machine_does_not_differ_from_itself() {
    for path in captures(&hosts()).iter().chain(&captures(&hosts().join("ailing"))) {
        let name = path.to_str().unwrap();
        let called = zenkai(&["diff", name, name]);
        assert_eq!(called.exit, Exit::Fine, "{name}: {}{}", called.out, called.err);
    }
}

#[test]
fn the_planted_ailment_comes_first() {
    /// Where another check speaks of the same ailment with more weight.
    const SAME: [(&str, &str); 1] = [("md-rebuilding", "md-degraded")];
    let ailments = Ailment::all().unwrap();
    let (mut first, mut table) = (0, String::new());
    for ailment in &ailments {
        let (a, b) = (host(&ailment.machine), host(&format!("ailing/{}", ailment.name)));
        let mut args = vec!["diff", "--json", &a, &b];
        args.extend(ailment.workload.iter().flat_map(|workload| ["--workload", workload.as_str()]));
        let value = json(&args);
        let top = &value["differences"][0];
        let check = top["slower"]["check"].as_str().unwrap_or("none");
        if ailment.expect.iter().any(|expected| expected == check) && top["slower"]["side"] == "b" {
            first += 1;
        } else if !SAME.contains(&(ailment.name.as_str(), check)) {
            table.push_str(&format!("{}: {check} instead of {:?}\n", ailment.name, ailment.expect));
        }
    }
    eprintln!("the planted ailment comes first in {first} of {}", ailments.len());
    assert!(table.is_empty(), "{table}");
    assert_eq!(first + SAME.len(), ailments.len());
}

#[test]
fn the_other_way_round_the_other_side_is_slower() {
    let (healthy, ailing) = (host("plain"), host("ailing/governor-powersave"));
    let sides = |a, b| differences(a, b)[0]["slower"]["side"].clone();
    assert_eq!((sides(&healthy, &ailing), sides(&ailing, &healthy)), ("b".into(), "a".into()));
    for pair in
        [("plain", "hwp"), ("storage", "nvme"), ("epyc", "numa"), ("nic", "firecracker"), ("xen", "bmc")]
    {
        let (a, b) = (host(pair.0), host(pair.1));
        let paths = |list: Vec<Value>| -> BTreeSet<String> {
            list.iter().map(|one| format!("{} {} {}", one["path"], one["what"], one["subject"])).collect()
        };
        let (there, back) = (differences(&a, &b), differences(&b, &a));
        assert_eq!(there.len(), back.len(), "{pair:?}");
        let folded = |paths: BTreeSet<String>| {
            paths.into_iter().filter(|path| !path.contains('↔')).collect::<Vec<_>>()
        };
        assert_eq!(folded(paths(there)), folded(paths(back)), "{pair:?}");
    }
}

#[test]
fn devices_are_matched_by_role() {
    let dir = tempfile::tempdir().unwrap();
    let text = std::fs::read_to_string(host("storage")).unwrap();
    // The same machine, on which the first disk was found as another one and reads less ahead.
    let renamed = text.replace("vda", "vdz").replace("vdb", "vdy");
    assert!(text.contains("/vdb/queue/read_ahead_kb = "), "the fixture has no such disk any more");
    let slower: String = renamed
        .lines()
        .map(|line| match line.split_once(" = ") {
            Some((head, _)) if head.ends_with("/vdy/queue/read_ahead_kb") => format!("{head} = 16\n"),
            _ => format!("{line}\n"),
        })
        .collect();
    // Records are sorted by path, and some names moved.
    let other = Capture::parse(&slower).map(|capture| capture.to_text());
    let b = written(dir.path(), "b.capture", &other.unwrap_or_else(|error| panic!("{error}")));
    let found = differences(&host("storage"), &b);
    let ahead: Vec<&Value> = found
        .iter()
        .flat_map(|one| std::iter::once(one).chain(one["facts"].as_array().into_iter().flatten()))
        .filter(|one| one["path"] == "block.disks.*.queue.read_ahead_kb")
        .collect();
    assert_eq!(ahead.len(), 1, "{found:#?}");
    let subject = ahead[0]["subject"].as_str().unwrap();
    assert!(subject.contains("vdb ↔ vdy"), "{subject}");
    assert!(found.iter().all(|one| one["what"] != "only on one side"), "{found:#?}");
}

#[test]
fn what_was_not_recorded_is_no_difference() {
    let dir = tempfile::tempdir().unwrap();
    let text = unmarked(host("plain"));
    let lines: Vec<&str> = text.lines().collect();
    // A sixth of the records, cut between two of them.
    let whole =
        (1..lines.len() / 6).rev().find(|at| !lines[*at].starts_with(['|', ':', '-', '#', '~'])).unwrap();
    let cut = written(dir.path(), "cut.capture", &(lines[..whole].join("\n") + "\n"));
    let value = json(&["diff", &host("plain"), &cut, "--json"]);
    let gaps = value["not_compared"].as_array().unwrap();
    assert!(gaps.iter().any(|gap| gap["side"] == "b" && gap["reason"] == "not in this capture"), "{gaps:#?}");
    for difference in value["differences"].as_array().unwrap() {
        assert_ne!(difference["b"]["unavailable"], "not in this capture", "{difference:#}");
    }
    let shown = zenkai(&["diff", &host("plain"), &cut]).out;
    assert!(shown.contains("values that only one side tells"), "{shown}");
    assert!(shown.contains("it may have been cut short"), "{shown}");
    assert!(!shown.contains("absent"), "{shown}");
}

#[test]
fn bad_input_is_named() {
    let dir = tempfile::tempdir().unwrap();
    let text = std::fs::read_to_string(host("plain")).unwrap();
    let newer = written(dir.path(), "newer", &text.replacen("zenkai-capture 2", "zenkai-capture 99", 1));
    let cut = written(dir.path(), "cut", text.get(..text.find("/proc/1/comm").unwrap()).unwrap());
    let plain = host("plain");
    let empty = dir.path().to_str().unwrap().to_owned();
    for (name, said) in [
        (newer.as_str(), "newer: line 1:"),
        (cut.as_str(), "cut: line "),
        ("no-such-label", "no-such-label is no file, no directory and no label"),
        ("../etc", "../etc is no file"),
        (empty.as_str(), "holds neither proc, sys nor etc"),
    ] {
        let Called { exit, out, err } = zenkai(&["diff", &plain, name]);
        assert_eq!((exit, out.as_str()), (Exit::Usage, ""), "{name}: {err}");
        assert!(err.contains(said), "{name}: {err}");
    }
}

/// Wherever a file was cut: an error that names the line, or a whole capture of less.
#[test]
fn captures_cut_anywhere_never_change_a_value() {
    let dir = tempfile::tempdir().unwrap();
    let whole = std::fs::read_to_string(host("plain")).unwrap();
    // Before a capture told where it ends, less of it could be read, and what was read was true.
    let old = unmarked(host("plain"));
    let full: BTreeSet<&str> = old.lines().collect();
    let settings = old.find("read /proc/sys/vm/").unwrap();
    let everywhere = (0..old.len()).step_by(211);
    for at in everywhere.chain(settings..settings + 400).chain(old.len() - 3..old.len()) {
        let error = Capture::parse(whole.get(..at).unwrap_or_default()).unwrap_err();
        assert!(error.to_string().starts_with("line "), "{at}: {error}");
        let part = old.get(..at).unwrap_or_default();
        match Capture::parse(part) {
            Err(error) => assert!(error.to_string().starts_with("line "), "{at}: {error}"),
            Ok(capture) => {
                assert!(part.ends_with('\n') && capture.may_be_cut(), "{at}");
                let text = capture.to_text();
                let mut settings = text.lines().filter(|line| line.starts_with("read /proc/sys/"));
                assert!(settings.all(|line| full.contains(line)), "{at}");
            }
        }
    }
    for (name, text) in [("digit", &whole[..whole.len() - 2]), ("break", whole.trim_end())] {
        let cut = written(dir.path(), name, text);
        let Called { exit, err, .. } = zenkai(&["diff", &cut, &host("plain")]);
        assert_eq!(exit, Exit::Usage);
        assert!(err.contains(&format!("{name}: line ")) && err.contains("cut short"), "{err}");
        assert!(err.contains("zenkai capture -o FILE"), "{err}");
    }
}

#[test]
fn what_is_no_file_of_text_is_said() {
    let dir = tempfile::tempdir().unwrap();
    let path = |name: &str| dir.path().join(name).to_str().unwrap().to_owned();
    let noise: Vec<u8> = (0..20_000_u32).map(|at| at.wrapping_mul(2_654_435_761).to_le_bytes()[3]).collect();
    std::fs::write(path("noise"), noise).unwrap();
    std::fs::write(path("empty"), "").unwrap();
    std::fs::write(path("text"), "Dear reader\n").unwrap();
    let made = std::process::Command::new("mkfifo").arg(path("pipe")).status().unwrap();
    assert!(made.success());
    for (name, said) in [
        (path("noise"), "not UTF-8, so this is no capture"),
        (path("empty"), "line 1: the file is empty"),
        (path("text"), "line 1: this is no capture"),
        // Without a writer it would be waited for for ever.
        (path("pipe"), "not a regular file"),
        ("/dev/zero".to_owned(), "not a regular file"),
    ] {
        for args in
            [["diff", &name, &host("plain")], ["settings", "--from", &name], ["doctor", "--capture", &name]]
        {
            let Called { exit, out, err } = zenkai(&args);
            assert_eq!((exit, out.as_str()), (Exit::Usage, ""), "{args:?}: {err}");
            assert!(err.contains(said) && err.contains(&name), "{args:?}: {err}");
        }
    }
    let called = zenkai(&["doctor", "--capture", dir.path().to_str().unwrap()]);
    assert!(called.exit == Exit::Usage && called.err.contains("Is a directory"), "{}", called.err);
}

/// The capture of `plain` with these sysctls.
fn with_sysctls(values: &[(&str, &str)]) -> String {
    let text = unmarked(host("plain"));
    let line = |line: &str| {
        let head = line.split_once(" = ").map_or(line, |(head, _)| head);
        let value = values.iter().find(|(name, _)| head == format!("read /proc/sys/vm/{name}"));
        value.map_or_else(|| line.to_owned(), |(_, value)| format!("{head} = {value}"))
    };
    let text: Vec<String> = text.lines().map(line).collect();
    text.join("\n") + "\n"
}

/// The kernel shows 0 for the form of a limit that is not in force, and zeroes one form when the other is written.
#[test]
fn of_a_limit_with_two_forms_the_one_in_force_is_carried() {
    let dir = tempfile::tempdir().unwrap();
    let limits = |bytes: &str, ratio: &str| with_sysctls(&[("dirty_bytes", bytes), ("dirty_ratio", ratio)]);
    for (a, b, carried) in [
        (("0", "40"), ("0", "20"), "vm.dirty_ratio=40"),
        (("268435456", "0"), ("0", "20"), "vm.dirty_bytes=268435456"),
        (("0", "20"), ("268435456", "0"), "vm.dirty_ratio=20"),
        (("268435456", "0"), ("134217728", "0"), "vm.dirty_bytes=268435456"),
    ] {
        let (from, to) =
            (written(dir.path(), "a", &limits(a.0, a.1)), written(dir.path(), "b", &limits(b.0, b.1)));
        let Called { exit, out, err } = zenkai(&["settings", "--from", &from, "--to", &to]);
        assert_eq!(exit, Exit::Fine, "{err}");
        let lines: Vec<&str> = out.lines().filter(|line| line.starts_with("vm.")).collect();
        assert_eq!(lines, [carried], "{a:?} {b:?}");
        assert!(err.contains("1 setting carried over"), "{err}");
    }
    // 0 where the other form was not read could mean either.
    let text = limits("0", "0").replace("read /proc/sys/vm/dirty_bytes = 0\n", "");
    let (from, to) = (written(dir.path(), "a", &text), host("plain"));
    let Called { out, err, .. } = zenkai(&["settings", "--from", &from, "--to", &to]);
    assert!(!out.contains("vm.dirty"), "{out}");
    assert!(
        err.contains("vm.dirty_ratio: it shows 0, and whether vm.dirty_bytes is in force is not known"),
        "{err}"
    );
}

#[test]
fn sysctls_that_no_check_knows_are_told_and_few_of_them_carried() {
    let dir = tempfile::tempdir().unwrap();
    let with = |name: &str, values: [&str; 4]| {
        let [panic, queue, namespaces, forwarding] = values;
        let more = format!(
            "read /proc/sys/kernel/panic = {panic}\nread /proc/sys/net/unix/max_dgram_qlen = {queue}\n\
             read /proc/sys/user/max_net_namespaces = {namespaces}\n\
             read /proc/sys/net/ipv4/conf/all/forwarding = {forwarding}\n"
        );
        written(dir.path(), name, &(unmarked(host("plain")) + &more))
    };
    let (a, b) = (with("a", ["7", "512", "900", "1"]), with("b", ["0", "10", "100", "0"]));
    let found: Vec<(String, String)> = differences(&a, &b)
        .iter()
        .map(|one| (one["what"].as_str().unwrap().to_owned(), one["suspicion"].as_str().unwrap().to_owned()))
        .collect();
    let expected = [
        ("kernel.panic", "setting"),
        ("net.ipv4.conf.all.forwarding", "setting"),
        ("net.unix.max_dgram_qlen", "setting"),
        ("user.max_net_namespaces", "derived"),
    ];
    assert_eq!(found, expected.map(|(what, suspicion)| (what.to_owned(), suspicion.to_owned())));
    let Called { out, err, .. } = zenkai(&["settings", "--from", &a, "--to", &b]);
    assert!(out.ends_with("[sysctl]\nnet.unix.max_dgram_qlen=512\n"), "{out}");
    assert!(err.contains("left out: kernel.panic: no check knows what it does"), "{err}");
    // Its flags can only be added to.
    let tainted = std::fs::read_to_string(host("plain")).unwrap();
    assert!(tainted.contains("read /proc/sys/kernel/tainted = 0\n"));
    let tainted =
        written(dir.path(), "tainted", &tainted.replace("kernel/tainted = 0\n", "kernel/tainted = 4096\n"));
    assert!(
        differences(&tainted, &host("plain"))
            .iter()
            .any(|one| one["path"].as_str().unwrap().contains("taint"))
    );
    let called = zenkai(&["settings", "--from", &tainted, "--to", &host("plain")]);
    assert!(!called.out.contains("kernel.tainted"), "{}", called.out);
    // A folder that stands for a machine tells as much as a capture of it.
    let root = dir.path().join("root/proc/sys/kernel");
    std::fs::create_dir_all(&root).unwrap();
    std::fs::write(root.join("panic"), "9\n").unwrap();
    let found = differences(dir.path().join("root").to_str().unwrap(), &b);
    assert!(found.iter().any(|one| one["what"] == "kernel.panic" && one["a"]["value"] == "9"), "{found:#?}");
    // A capture of a version that did not hold them says nothing of them.
    assert!(differences(&host("plain"), &b).is_empty());
}

#[test]
fn another_architecture_is_compared_as_far_as_it_goes() {
    let dir = tempfile::tempdir().unwrap();
    let text = std::fs::read_to_string(host("plain")).unwrap();
    assert!(text.contains("x86_64"));
    let arm = written(dir.path(), "arm.capture", &text.replace("x86_64", "aarch64"));
    let called = zenkai(&["diff", &host("plain"), &arm]);
    assert_eq!(called.exit, Exit::Findings, "{}", called.err);
    assert!(called.out.contains("the architectures differ (x86_64 and aarch64)"), "{}", called.out);
}

#[test]
fn golden_texts() {
    for (a, b, all) in [
        ("plain", "hwp", true),
        ("storage", "nvme", true),
        ("nic", "numa", false),
        ("tuned", "firecracker", false),
        ("plain", "ailing/governor-powersave", false),
    ] {
        let (left, right) = (host(a), host(b));
        let mut args = vec!["diff", left.as_str(), right.as_str()];
        args.extend(all.then_some("--all"));
        let text = zenkai(&args).out;
        let name = format!("{a}.diff-{}", b.replace("ailing/", ""));
        // Without the head and the last lines, which are wrapped to where the files lie.
        let lines = text.lines().skip_while(|line| !line.contains(" in ") || line.starts_with(' '));
        let said: Vec<&str> = lines.take_while(|line| !line.starts_with("To make B like A")).collect();
        assert!(said.len() > 5, "{text}");
        snapshot(&hosts(), &name, &said.join("\n"));
    }
}

/// A machine from a capture, as a host that can be written to.
fn machine(name: &str) -> FakeHost {
    let mut text = unmarked(host(name));
    // A capture never holds it, and a journal needs it.
    text.push_str("read /proc/sys/kernel/random/boot_id = 00000000-0000-4000-8000-000000000000\n");
    FakeHost::from_capture(Capture::parse(&text).unwrap())
}

/// The plan of a profile's text on a machine.
fn planned(machine: &FakeHost, profile: &str) -> Plan {
    let files = FakeHost::new(&[("/etc/tuned/profiles/like/tuned.conf", profile)]);
    let functions = Functions { host: &files, commands: None };
    let conf = MainConf::read(&files).unwrap();
    let library = Library::new(&files, conf.profile_directories.clone());
    let profile = library.load(&["like".to_owned()], None, &functions).unwrap();
    let scene = Scene::new(machine, false);
    Plan::new(machine, wishes(&scene, &profile, &conf, Functions { host: machine, commands: None }))
}

#[test]
fn settings_make_the_difference_go_away() {
    let mut carried = 0;
    for ailment in Ailment::all().unwrap() {
        // From the healthy machine to the ailing one: applied, whatever was carried differs no more.
        let ailing = format!("ailing/{}", ailment.name);
        let (a, b) = (host(&ailment.machine), host(&ailing));
        let called = zenkai(&["settings", "--from", &a, "--to", &b]);
        assert_eq!(called.exit, Exit::Fine, "{}", called.err);
        let host = machine(&ailing);
        let plan = planned(&host, &called.out);
        assert_eq!(plan.mistakes().count(), 0, "{}: {:#?}", ailment.name, plan.steps);
        let changes = plan.changes().count();
        carried += changes;
        if changes == 0 {
            continue;
        }
        let dir = tempfile::tempdir().unwrap();
        let store = Store::open(dir.path().join("state").to_str().unwrap()).unwrap();
        let session = Session::begin(&host, &store, "test", Duration::ZERO).unwrap();
        let request = Request {
            kind: Kind::Profile,
            label: "like".to_owned(),
            names: vec!["like".to_owned()],
            time: 0,
            command: String::new(),
            keep_going: false,
        };
        let report = session.apply(&host, &plan, &request).unwrap();
        let again = planned(&host, &called.out);
        assert_eq!(again.changes().count(), 0, "{}: {report:#?}", ailment.name);
    }
    eprintln!("{carried} changes were carried over");
    assert!(carried > 20, "{carried}");
}

#[test]
fn a_strangers_capture_cannot_slip_commands_into_a_profile() {
    let dir = tempfile::tempdir().unwrap();
    let text = std::fs::read_to_string(host("plain")).unwrap();
    let spoilt: String = text
        .lines()
        .map(|line| match line.split_once(" = ") {
            Some((head, _)) if head.ends_with("/scaling_governor") || head.ends_with("/read_ahead_kb") => {
                format!("{head} = ${{f:exec:touch:/tmp/x}}\n")
            }
            Some((head, _)) if head.ends_with("/proc/sys/vm/swappiness") => format!("{head} = 10 # ${{x}}\n"),
            _ => format!("{line}\n"),
        })
        .collect();
    let a = written(dir.path(), "a.capture", &spoilt);
    let called = zenkai(&["settings", "--from", &a, "--to", &host("plain")]);
    assert_eq!(called.exit, Exit::Fine, "{}", called.err);
    assert!(!called.out.contains("${") && !called.out.contains("exec"), "{}", called.out);
    assert!(called.err.contains("vm.swappiness: its value is not plain"), "{}", called.err);
}

/// Nothing volatile leaks: the machine may be busy between the two looks.
#[test]
fn now_does_not_differ_from_now() {
    let _knobs = crate::live::KNOBS.lock();
    let dir = tempfile::tempdir().unwrap();
    let before = dir.path().join("before.capture");
    let before = before.to_str().unwrap();
    let taken = zenkai(&["capture", "-o", before]);
    assert_eq!(taken.exit, Exit::Fine, "{}", taken.err);
    // Some work for the disk, the memory and the CPU.
    let work: Vec<u8> =
        (0..8_u32 << 20).map(|number| number.wrapping_mul(2_654_435_761).to_le_bytes()[3]).collect();
    std::fs::write(dir.path().join("work"), &work).unwrap();
    assert_eq!(std::fs::read(dir.path().join("work")).unwrap(), work);
    for a in [before, "now"] {
        let called = zenkai(&["diff", a, "now"]);
        assert_eq!(called.exit, Exit::Fine, "{a}: {}{}", called.out, called.err);
    }
}

#[test]
fn values_no_kernel_would_give_do_no_harm() {
    let dir = tempfile::tempdir().unwrap();
    for (number, with) in
        ["18446744073709551615", "", "0-65535", "\u{1b}[2J\u{202e}", "[main]"].iter().enumerate()
    {
        let plain = host(["plain", "nic", "storage", "hwp", "numa"][number]);
        let text = std::fs::read_to_string(&plain).unwrap();
        let spoilt: String = text
            .lines()
            .enumerate()
            .map(|(line, text)| match text.split_once(" = ") {
                Some((head, _)) if head.starts_with("read ") && line % 3 == number % 3 => {
                    format!("{head} = {with}\n")
                }
                _ => format!("{text}\n"),
            })
            .collect();
        let spoilt = written(dir.path(), "spoilt.capture", &spoilt);
        for args in [["diff", &plain, &spoilt, "--all"], ["diff", &spoilt, &plain, "--json"]] {
            let called = zenkai(&args);
            assert_eq!(called.exit, Exit::Findings, "{}", called.err);
            assert!(!called.out.contains('\u{1b}') && !called.out.contains('\u{202e}'), "{args:?}");
        }
        let called = zenkai(&["settings", "--from", &spoilt, "--to", &plain]);
        assert_eq!(called.exit, Exit::Fine, "{}", called.err);
        assert!(called.out.chars().all(|letter| letter == '\n' || !letter.is_control()), "{}", called.out);
        assert_eq!(called.out.matches("[main]").count(), 1, "{}", called.out);
    }
}
