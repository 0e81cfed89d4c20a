//! Real kernels with hardware that this machine lacks: guests of the laboratory. A machine whose images are not built
//! is skipped, visibly.

use std::{collections::BTreeSet, path::PathBuf};

use serde_json::Value;
use zenkai_lab::{Job, Machine, Outcome, machine_or_skip};

/// The static release binary; `cargo xtask test` names it.
pub(crate) fn program() -> Option<PathBuf> {
    let named = std::env::var_os("ZENKAI_BIN").map(PathBuf::from);
    if named.is_none() {
        eprintln!("SKIPPED: ZENKAI_BIN names no release binary; `cargo xtask test` does");
    }
    named
}

fn run(machine: &Machine, program: &PathBuf, script: &str) -> Outcome {
    machine.run(Job::shell(script).program(program)).unwrap()
}

fn json(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|error| panic!("{error}: {text}"))
}

fn checks(doctor: &Value) -> BTreeSet<String> {
    let findings = doctor["findings"].as_array().unwrap().iter();
    findings.map(|finding| format!("{} {}", finding["check"], finding["subject"])).collect()
}

/// On every machine: the capture of a guest gives the diagnosis that the guest itself gave.
#[test]
fn a_capture_of_a_guest_is_the_guest() {
    let Some(program) = program() else { return };
    for name in ["plain", "hwp", "epyc", "numa", "storage", "nic", "bmc", "meter", "xen", "tuned"] {
        let Some(machine) = machine_or_skip(name) else { continue };
        let script = "zenkai doctor --json; echo ----; zenkai capture -o c; zenkai doctor --json --capture c";
        let outcome = run(&machine, &program, script);
        let (live, replayed) = outcome.stdout.split_once("----\n").unwrap();
        let (live, replayed) = (json(live), json(replayed));
        assert_eq!(checks(&live), checks(&replayed), "{name}");
        assert_eq!(live["passed"], replayed["passed"], "{name}");
        assert_eq!(live["unjudged"], replayed["unjudged"], "{name}");
        assert_eq!(live["not_applicable"], replayed["not_applicable"], "{name}");
    }
}

#[test]
fn governors_are_the_kernel_s() {
    let (Some(program), Some(machine)) = (program(), machine_or_skip("plain")) else { return };
    let script = "cd /sys/devices/system/cpu/cpufreq/policy1; echo ondemand > scaling_governor; \
                  zenkai facts cpu --json; echo ----; cat scaling_governor cpuinfo_max_freq";
    let outcome = run(&machine, &program, script);
    let (facts, kernel) = outcome.stdout.split_once("----\n").unwrap();
    let policy = &json(facts)["frequency"]["policies"][1];
    let mut lines = kernel.lines();
    assert_eq!(policy["governor"], lines.next().unwrap());
    assert_eq!(policy["hardware_max_khz"].to_string(), lines.next().unwrap());
}

#[test]
fn hwp_shows_preferences_and_registers() {
    let (Some(program), Some(machine)) = (program(), machine_or_skip("hwp")) else { return };
    let script = "cd /sys/devices/system/cpu; echo power > cpu0/cpufreq/energy_performance_preference; \
                  zenkai facts --json; echo ----; cat cpu0/cpufreq/energy_performance_preference; rdmsr 0 0x1a0";
    let outcome = run(&machine, &program, script);
    let (facts, kernel) = outcome.stdout.split_once("----\n").unwrap();
    let facts = json(facts);
    let mut lines = kernel.lines();
    let preference = &facts["cpu"]["frequency"]["policies"][0]["energy_performance_preference"];
    assert_eq!(preference, lines.next().unwrap());
    assert_eq!(facts["cpu"]["frequency"]["intel_pstate"]["status"], "active");
    let register = u64::from_str_radix(lines.next().unwrap().trim().trim_start_matches("0x"), 16).unwrap();
    let shown = facts["msr"]["intel"][0]["misc_enable"].to_string();
    let digits: String = shown.trim_matches('"').trim_start_matches("0x").to_owned();
    let value = u64::from_str_radix(&digits, 16).ok().or(shown.parse().ok());
    assert_eq!(value, Some(register), "{shown}");
}

#[test]
fn numa_nodes_and_the_far_card() {
    let (Some(program), Some(machine)) = (program(), machine_or_skip("numa")) else { return };
    let facts = json(&run(&machine, &program, "zenkai facts --json").stdout);
    assert_eq!(facts["numa"]["nodes"].as_array().unwrap().len(), 2, "{}", facts["numa"]);
    assert_eq!(facts["cpu"]["topology"]["sockets"], 2);
    let interfaces = facts["net"]["interfaces"].as_array().unwrap();
    assert!(interfaces.iter().any(|interface| interface["hardware"]["numa_node"] == 1), "{}", facts["net"]);
}

#[test]
fn arrays_and_volumes_down_to_the_disks() {
    let (Some(program), Some(machine)) = (program(), machine_or_skip("storage")) else { return };
    let facts = json(&run(&machine, &program, "zenkai facts --json").stdout);
    let disks = facts["block"]["disks"].as_array().unwrap();
    let named = |name: &str| disks.iter().find(|disk| disk["name"] == name).unwrap();
    assert_eq!(named("md5")["md"]["level"], "raid5");
    assert_eq!(named("md5")["members"].as_array().unwrap().len(), 3);
    assert_eq!(named("dm-0")["dm"]["kind"], "lvm");
    assert_eq!(named("dm-0")["dm"]["targets"][0]["stripes"], 2);
    assert_eq!(named("dm-0")["dm"]["targets"][0]["stripe_bytes"], 128 << 10);
    let mounts = facts["block"]["mounts"].as_array().unwrap();
    assert!(mounts.iter().any(|mount| mount["target"] == "/srv/data"), "{mounts:?}");
}

#[test]
fn a_management_controller_tells_its_watts() {
    let (Some(program), Some(machine)) = (program(), machine_or_skip("bmc")) else { return };
    let facts = json(&run(&machine, &program, "zenkai facts power --json").stdout);
    assert_eq!(facts["bmc"]["power_reading"]["current_watts"], 245, "{facts}");
}

#[test]
fn xen_keeps_the_clock_to_itself() {
    let (Some(program), Some(machine)) = (program(), machine_or_skip("xen")) else { return };
    let outcome =
        run(&machine, &program, "zenkai doctor --json; echo ----; zenkai facts virtualisation --json");
    let (doctor, facts) = outcome.stdout.split_once("----\n").unwrap();
    assert_eq!(json(facts)["kind"], "xen-dom0");
    let doctor = json(doctor);
    let found = checks(&doctor);
    assert!(found.iter().any(|finding| finding.contains("xen-dom0-no-cpufreq")), "{found:?}");
    assert!(!found.iter().any(|finding| finding.contains("cpu-driver-missing")), "{found:?}");
}

/// The probe measures a clock in a guest too, and an ordinary user gets by without registers.
#[test]
fn the_probe_runs_where_registers_are_not_ours_to_read() {
    let (Some(program), Some(machine)) = (program(), machine_or_skip("plain")) else { return };
    let outcome = run(&machine, &program, "zenkai doctor --probe --json");
    let doctor = json(&outcome.stdout);
    assert_eq!(doctor["probe"]["cpus"].as_array().unwrap().len(), 2);
}

/// A capture reads every setting, changes none, and no kernel complains; what no check knows is seen by a comparison.
#[test]
fn a_capture_reads_all_settings_and_changes_none() {
    let Some(program) = program() else { return };
    for name in ["plain", "nic"] {
        let Some(machine) = machine_or_skip(name) else { continue };
        let script =
            "shown() { grep -rs . /proc/sys | grep -v 'random/\\|-nr:\\|-state:\\|pty/nr:\\|ns_last_pid:'; }
            shown > before; dmesg > log
            zenkai capture -o old.capture
            shown > after; dmesg > log.after
            diff before after > out/changed; diff log log.after > out/logged
            echo 77 > /proc/sys/net/unix/max_dgram_qlen
            echo 1 > /proc/sys/kernel/panic_on_oops
            grep -c '^read /proc/sys/' old.capture > out/count
            zenkai settings --from old.capture
            echo ----; zenkai diff old.capture now --json";
        let outcome = run(&machine, &program, script);
        let (settings, diff) = outcome.stdout.split_once("----\n").unwrap();
        for file in ["changed", "logged"] {
            assert_eq!(String::from_utf8_lossy(&outcome.files[file]), "", "{name}: {file}");
        }
        let count: usize = String::from_utf8_lossy(&outcome.files["count"]).trim().parse().unwrap();
        assert!(count > 400, "{name}: {count} sysctls");
        let diff = json(diff);
        let told: BTreeSet<&str> =
            diff["differences"].as_array().unwrap().iter().map(|one| one["what"].as_str().unwrap()).collect();
        assert_eq!(told, BTreeSet::from(["kernel.panic_on_oops", "net.unix.max_dgram_qlen"]), "{name}");
        assert!(settings.ends_with("[sysctl]\nnet.unix.max_dgram_qlen=10\n"), "{name}: {settings}");
        assert!(outcome.stderr.contains("left out: kernel.panic_on_oops"), "{name}: {}", outcome.stderr);
    }
}
