//! Input from a stranger: a clear error or a reasoned "unavailable", never a panic, never a look outside.

use std::os::unix::fs::symlink;

use proptest::prelude::*;
use zenkai::cli::Exit;

use crate::{
    golden::{captures, hosts, unmarked},
    zenkai,
};

const READ_ONLY: [&[&str]; 4] =
    [&["doctor", "--json"], &["doctor", "--all"], &["facts"], &["facts", "--json"]];

fn run_all(capture: &str) {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("x.capture");
    std::fs::write(&path, capture).unwrap();
    for command in READ_ONLY {
        let mut args = command.to_vec();
        args.extend(["--capture", path.to_str().unwrap()]);
        let called = zenkai(&args);
        match called.exit {
            Exit::Fine | Exit::Findings | Exit::PartlyUnreadable => assert!(!called.out.is_empty()),
            Exit::Usage => assert!(called.err.contains("x.capture: line "), "{}", called.err),
            exit => panic!("{exit:?}: {}", called.err),
        }
        assert!(!called.out.contains('\x1b'), "an escape sequence reached the terminal");
    }
}

#[test]
fn captures_cut_short() {
    for path in captures(&hosts()) {
        let text = std::fs::read_to_string(&path).unwrap();
        // As it was before a capture said where it ends; in the middle of a line it is refused at once.
        let old = text.replacen("zenkai-capture 2", "zenkai-capture 1", 1);
        for part in [1, 3, 7] {
            let cut = old.lines().take(text.lines().count() * part / 8);
            run_all(&cut.fold(String::new(), |text, line| text + line + "\n"));
        }
    }
}

#[test]
fn a_capture_that_ends_before_its_end() {
    let dir = tempfile::tempdir().unwrap();
    let [whole, cut] = ["whole", "cut"].map(|name| dir.path().join(name).to_str().unwrap().to_owned());
    let text = std::fs::read_to_string(&captures(&hosts())[0]).unwrap();
    let lines: Vec<&str> = text.lines().collect();
    std::fs::write(&whole, &text).unwrap();
    // Before a capture told where it ends: it is read, with a note.
    std::fs::write(&cut, unmarked(&whole)).unwrap();
    for command in [
        &["doctor", "--capture", &cut][..],
        &["capture", "--capture", &cut],
        &["diff", &whole, &cut],
        &["settings", "--from", &cut, "--to", &whole],
    ] {
        let called = zenkai(command);
        assert_ne!(called.exit, Exit::Usage, "{command:?}: {}", called.err);
        let said = (called.out + &called.err).split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(said.contains("nothing tells whether it is whole"), "{command:?}: {said}");
    }
    for kept in [1, lines.len() / 2, lines.len() - 1] {
        std::fs::write(&cut, lines[..kept].join("\n") + "\n").unwrap();
        for command in [
            &["doctor", "--capture", &cut][..],
            &["diff", &whole, &cut],
            &["settings", "--from", &cut, "--to", &whole],
        ] {
            let called = zenkai(command);
            assert_eq!(called.exit, Exit::Usage, "{command:?}: {}", called.err);
            for said in
                [format!("{cut}: line {kept}: "), "cut short".to_owned(), "zenkai capture -o".to_owned()]
            {
                assert!(called.err.contains(&said), "{command:?}: {}", called.err);
            }
        }
    }
}

/// Replaces what some records say by something a kernel would not say.
fn spoil(text: &str, pick: usize, with: &str) -> String {
    let mut number = 0_usize;
    let spoilt = text.lines().map(|line| {
        let Some((head, _)) = line.split_once(" = ").filter(|_| line.starts_with("read ")) else {
            return line.to_owned();
        };
        number += 1;
        if number % 7 == pick % 7 { format!("{head} = {with}") } else { line.to_owned() }
    });
    spoilt.collect::<Vec<_>>().join("\n") + "\n"
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 12, ..ProptestConfig::default() })]
    #[test]
    fn values_no_kernel_would_give(
        pick in 0_usize..7,
        with in prop_oneof![
            Just("18446744073709551615".to_owned()),
            Just("-9223372036854775808".to_owned()),
            Just(String::new()),
            Just("0".to_owned()),
            Just("0-65535".to_owned()),
            Just("[".to_owned()),
            Just("\u{1b}[2J\u{202e}".to_owned()),
            "[ -~]{0,40}",
        ],
        host in 0_usize..64,
    ) {
        let paths = captures(&hosts());
        if let Some(path) = paths.get(host % paths.len().max(1)) {
            run_all(&spoil(&std::fs::read_to_string(path).unwrap(), pick, &with));
        }
    }
}

#[test]
fn a_directory_cannot_lead_outside() {
    let dir = tempfile::tempdir().unwrap();
    let root = dir.path().join("root");
    std::fs::create_dir_all(root.join("proc/sys/kernel")).unwrap();
    std::fs::create_dir_all(root.join("sys/devices/system/cpu")).unwrap();
    std::fs::write(dir.path().join("secret"), "outside-the-root").unwrap();
    symlink("../../../../../../../../secret", root.join("proc/cmdline")).unwrap();
    symlink(dir.path().join("secret"), root.join("proc/version")).unwrap();
    symlink("/proc", root.join("sys/block")).unwrap();
    symlink("class", root.join("sys/class")).unwrap();
    for command in READ_ONLY {
        let mut args = command.to_vec();
        args.extend(["--root", root.to_str().unwrap()]);
        let called = zenkai(&args);
        assert_ne!(called.exit, Exit::Usage, "{}", called.err);
        assert!(!called.out.contains("outside-the-root"));
    }
}

#[test]
fn ten_thousand_cpus() {
    let mut text = String::from("zenkai-capture 1\n");
    for name in ["online", "present", "possible"] {
        text.push_str(&format!("read /sys/devices/system/cpu/{name} = 0-9999\n"));
    }
    text.push_str("list /sys/devices/system/cpu/cpufreq\n");
    (0..10_000).for_each(|cpu| text.push_str(&format!("-d policy{cpu}\n")));
    text.push_str("list /sys/devices/system/cpu\n");
    (0..10_000).for_each(|cpu| text.push_str(&format!("-d cpu{cpu}\n")));
    run_all(&text);
}

#[test]
fn files_that_are_no_captures() {
    let cases: [(&[u8], &str); 5] = [
        (b"", "line 1"),
        (b"\x7fELF", "line 1"),
        (b"zenkai-capture 1\nread /a = \xff\n", "line 2"),
        (b"zenkai-capture 99\n", "newer zenkai"),
        (b"zenkai-capture 1\nread ../../etc/shadow = 1\n", "absolute path"),
    ];
    let dir = tempfile::tempdir().unwrap();
    for (content, said) in cases {
        let path = dir.path().join("bad");
        std::fs::write(&path, content).unwrap();
        let called = zenkai(&["doctor", "--capture", path.to_str().unwrap()]);
        assert_eq!(called.exit, Exit::Usage);
        assert!(called.err.contains(said), "{}", called.err);
    }
    let called = zenkai(&["doctor", "--capture", "/no/such/file"]);
    assert!(called.exit == Exit::Usage && called.err.contains("/no/such/file"), "{}", called.err);
    let empty = zenkai(&["doctor", "--root", dir.path().to_str().unwrap()]);
    assert!(empty.exit == Exit::Usage && empty.err.contains("neither proc"), "{}", empty.err);
    let called = zenkai(&["facts", "--root", "/no/such/dir"]);
    assert!(called.exit == Exit::Usage && called.err.contains("/no/such/dir"), "{}", called.err);
}

#[test]
fn names_that_do_not_exist() {
    for args in [&["explain", "cpu-goveror"][..], &["doctor", "--only", "cup"], &["facts", "cup"]] {
        let called = zenkai(args);
        assert_eq!(called.exit, Exit::Usage, "{args:?}");
        assert!(called.err.contains("try: "), "{}", called.err);
    }
    assert_eq!(zenkai(&["doctor", "--probe", "--capture", "x"]).exit, Exit::Usage);
    assert_eq!(zenkai(&["doctor", "--workload", "chess"]).exit, Exit::Usage);
}

#[test]
fn a_named_pipe_is_not_waited_for() {
    let dir = tempfile::tempdir().unwrap();
    let pipe = |name: &str| {
        let path = dir.path().join(name);
        let made = std::process::Command::new("mkfifo").arg(&path).status().unwrap();
        assert!(made.success());
        path.to_str().unwrap().to_owned()
    };
    pipe("experiment.json");
    let (capture, policy) = (pipe("x.capture"), pipe("policy.toml"));
    let experiment = dir.path().to_str().unwrap();
    for args in [
        &["analyze", experiment][..],
        &["report", experiment],
        &["export", experiment, "--to", "csv"],
        &["import", &capture, "--from", "csv"],
        &["doctor", "--capture", &capture],
        &["doctor", "--policy", &policy],
        &["diff", &capture, &capture],
    ] {
        let called = zenkai(args);
        assert_eq!(called.exit, Exit::Usage, "{args:?}: {}", called.err);
        assert!(called.err.contains("not a regular file"), "{args:?}: {}", called.err);
    }
}
