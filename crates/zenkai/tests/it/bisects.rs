//! `zenkai bisect` on this machine: a planted slow setting among ten harmless ones is found, and nothing stays changed.
//!
//! Counted are page faults of a program that fills 64 MiB: with huge pages one for 2 MiB, without one for each page.
//! That does not depend on who else is at work, as a time would.

use std::{fs, path::Path, process::Output};

use crate::{
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
    for (arguments, told) in [
        (&["--from", cut.to_str().unwrap()][..], "cut.capture"),
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
}
