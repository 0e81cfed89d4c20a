//! The laboratory itself, in real guests. Tests whose images are not built say so and pass; see `machine_or_skip`.
#![expect(clippy::disallowed_methods, reason = "the tests of a tool for developers")]

use std::time::Duration;

use zenkai_lab::ailment::{self, Ailment};
use zenkai_lab::{Job, LabError, Machine, machine_or_skip};

const POLICY: &str = "/sys/devices/system/cpu/cpu1/cpufreq";

#[test]
fn a_shell_command_gives_its_output_and_exit_code() {
    let Some(plain) = machine_or_skip("plain") else { return };
    let outcome =
        plain.run("echo out; echo err >&2; mkdir out/deep; echo kept > out/deep/file; exit 3").unwrap();
    assert_eq!((outcome.stdout.as_str(), outcome.stderr.as_str(), outcome.code), ("out\n", "err\n", 3));
    assert_eq!(outcome.files["deep/file"], b"kept\n");
    assert!(outcome.dmesg.contains("Linux version"), "{}", outcome.dmesg);
}

#[test]
fn the_frequency_follows_the_governor_of_its_own_cpu() {
    let Some(plain) = machine_or_skip("plain") else { return };
    let script = format!(
        "cd {POLICY}\ncat scaling_available_governors scaling_driver\nfor g in performance powersave; do\n\
         echo $g > scaling_governor; sleep 0.1; cat scaling_governor scaling_cur_freq; done\ncat ../../cpu0/cpufreq/scaling_governor"
    );
    let outcome = plain.run(script).unwrap();
    let lines: Vec<&str> = outcome.stdout.lines().map(str::trim).collect();
    assert!(lines[0].contains("performance") && lines[0].contains("powersave"), "{lines:?}");
    assert_eq!(lines[1], "acpi-cpufreq");
    assert_eq!(lines[2..6], ["performance", "2701000", "powersave", "800000"]);
    assert_ne!(lines[6], "powersave", "CPU 0 has a policy of its own");
}

#[test]
fn nothing_of_a_run_is_left_for_the_next() {
    let Some(plain) = machine_or_skip("plain") else { return };
    let before = plain.run(format!("cat {POLICY}/scaling_max_freq")).unwrap().stdout;
    let during =
        plain.run(format!("echo 800000 > {POLICY}/scaling_max_freq; cat {POLICY}/scaling_max_freq")).unwrap();
    assert_eq!(during.stdout, "800000\n");
    assert_eq!(plain.run(format!("cat {POLICY}/scaling_max_freq")).unwrap().stdout, before);
}

#[test]
fn a_hung_job_is_ended_at_its_limit_and_shows_the_console() {
    let Some(plain) = machine_or_skip("plain") else { return };
    // A slow host may need longer than the first limit until the job begins.
    for limit in [4, 60].map(Duration::from_secs) {
        match plain.run(Job::shell("echo about to hang > /dev/console; sleep 1000").limit(limit)) {
            Err(LabError::TimedOut { machine, console, .. }) => {
                assert_eq!(machine, "plain");
                if console.contains("about to hang") {
                    return;
                }
            }
            other => panic!("{other:?}"),
        }
    }
    panic!("the console does not show what the job wrote");
}

#[test]
fn a_guest_that_dies_shows_its_console() {
    let Some(plain) = machine_or_skip("plain") else { return };
    match plain.run("echo 1 > /proc/sys/kernel/sysrq; echo c > /proc/sysrq-trigger; sleep 10") {
        Err(LabError::GuestFailed { console, .. }) => assert!(console.contains("sysrq"), "{console}"),
        other => panic!("{other:?}"),
    }
}

/// The words of the kernel's watchdog stand for a real standstill, which cannot be had to order.
#[test]
fn a_guest_whose_kernel_stands_still_is_started_again_and_then_given_up() {
    let Some(plain) = machine_or_skip("plain") else { return };
    let script =
        "echo '<0>watchdog: BUG: soft lockup - CPU#0 stuck for 52s! [job:1]' > /dev/kmsg; sleep 1000";
    match plain.run(script) {
        Err(LabError::StoodStill { machine, line }) => {
            assert_eq!(machine, "plain");
            assert!(line.contains("stuck for 52s"), "{line}");
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn two_guests_run_side_by_side() {
    let Some(plain) = machine_or_skip("plain") else { return };
    let read = |governor: &str| {
        let script =
            format!("echo {governor} > {POLICY}/scaling_governor; sleep 0.5; cat {POLICY}/scaling_governor");
        plain.run(script).unwrap().stdout
    };
    let (one, two) = std::thread::scope(|scope| {
        let (one, two) = (scope.spawn(|| read("performance")), scope.spawn(|| read("powersave")));
        (one.join().unwrap(), two.join().unwrap())
    });
    assert_eq!((one.as_str(), two.as_str()), ("performance\n", "powersave\n"));
}

#[test]
fn files_are_put_beside_the_job_and_found_in_the_path() {
    let Some(plain) = machine_or_skip("plain") else { return };
    let dir = tempfile::tempdir().unwrap();
    let tool = dir.path().join("tool");
    std::fs::write(&tool, format!("#!/bin/sh\n# {}\necho ran \"$@\"\n", "x".repeat(200_000))).unwrap();
    let outcome = plain
        .run(Job::shell("cd /; zenkai facts --json; other").program(&tool).file("other", &tool))
        .unwrap();
    assert_eq!(outcome.stdout, "ran facts --json\nran\n");
}

#[test]
fn words_for_the_kernel_boot_the_machine_afresh() {
    let Some(plain) = machine_or_skip("plain") else { return };
    let outcome = plain.run(Job::shell("cat /sys/devices/system/cpu/isolated").append("isolcpus=1")).unwrap();
    assert_eq!(outcome.stdout, "1\n");
}

#[test]
fn a_machine_that_cannot_be_prepared_says_why() {
    let Some(plain) = machine_or_skip("plain") else { return };
    let dir = tempfile::tempdir().unwrap();
    let mut spec = plain.spec().clone();
    "unprepared".clone_into(&mut spec.name);
    "echo no such luck; exit 5".clone_into(&mut spec.prepare);
    // The builds of the real cache, but snapshots of its own.
    let real = zenkai_lab::Cache::open().unwrap();
    for entry in std::fs::read_dir(real.root()).unwrap().flatten() {
        if entry.file_name().to_string_lossy().starts_with("mini-") {
            std::os::unix::fs::symlink(entry.path(), dir.path().join(entry.file_name())).unwrap();
        }
    }
    let cache = zenkai_lab::Cache::at(dir.path()).unwrap();
    match Machine::from_spec(cache, spec) {
        Err(LabError::GuestFailed { what, console, .. }) => {
            assert!(what.contains("exit code 5"), "{what}");
            assert!(console.contains("no such luck"), "{console}");
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn registers_keep_what_is_written_and_the_snapshot_keeps_what_the_kernel_wrote() {
    let Some(hwp) = machine_or_skip("hwp") else { return };
    let outcome = hwp.run("rdmsr 0 0x770; wrmsr 1 0x1b0 15; rdmsr 0 0x1b0; rdmsr 1 0x1b0").unwrap();
    let values: Vec<&str> = outcome.stdout.lines().collect();
    assert_eq!(
        values,
        ["0x0000000000000001", "0x0000000000000006", "0x000000000000000f"],
        "{}",
        outcome.stderr
    );
}

#[test]
fn the_bmc_reports_its_watts() {
    let Some(bmc) = machine_or_skip("bmc") else { return };
    let outcome = bmc.run("ipmitool dcmi power reading").unwrap();
    assert!(outcome.stdout.contains("245 Watts"), "{} {}", outcome.stdout, outcome.stderr);
}

#[test]
fn an_ailment_is_there_on_the_ailing_machine_only() {
    let Some(plain) = machine_or_skip("plain") else { return };
    let all = Ailment::all().unwrap();
    let ailment = all.iter().find(|ailment| ailment.name == "governor-powersave").unwrap();
    let read = "cat /sys/devices/system/cpu/cpu0/cpufreq/scaling_governor";
    let on = |job| ailment::run(&plain, job);
    assert_eq!(on(ailment.ailing_job(read)).unwrap().stdout, "powersave\n");
    assert_ne!(on(ailment::healthy_job(&[ailment], read)).unwrap().stdout, "powersave\n");
    // What does not take is no ailment, and what has it is not healthy.
    let mut dud = ailment.clone();
    "true".clone_into(&mut dud.spoil);
    assert!(matches!(on(dud.ailing_job(read)), Err(LabError::GuestFailed { .. })));
    "true".clone_into(&mut dud.proof);
    assert!(matches!(on(ailment::healthy_job(&[&dud], read)), Err(LabError::GuestFailed { .. })));
}
