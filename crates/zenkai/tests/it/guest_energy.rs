//! Energy and counters in guests: watts that a management controller tells over a real KCS interface, RAPL's counters as
//! the kernel's driver shows them, interrupts for heat, software counters of perf, and a CPU that goes offline meanwhile.

use std::path::Path;

use serde_json::Value;
use zenkai_lab::{Job, Outcome, machine_or_skip};

use crate::guests::program;

/// Waits until a recorder has a file open, and ends a recorder: on a busy host it begins seconds later, and what happens
/// meanwhile takes longer, so that a fixed time may be over before.
const RECORDER: &str = r#"begun() { until ls -l /proc/$1/fd | grep -q "$2"; do sleep 0.2; done; }
ended() { kill $1; wait $1; }
"#;

/// The job of a script that may call `begun PID FILE` and `ended PID`.
fn job(script: &str, program: &Path) -> Job {
    Job::shell(format!("{RECORDER}{script}")).program(program)
}

fn made(outcome: &Outcome, name: &str) -> Value {
    let text = outcome.files.get(name).unwrap_or_else(|| panic!("no {name}: {}", outcome.stderr));
    serde_json::from_slice(text).unwrap()
}

fn channel<'a>(recording: &'a Value, name: &str) -> Option<&'a Value> {
    recording["channels"].as_array().unwrap().iter().find(|each| each["channel"]["name"] == name)
}

fn of(recording: &Value, name: &str, what: &str) -> f64 {
    let found = channel(recording, name).unwrap_or_else(|| panic!("no {name}: {}", recording["missing"]));
    found[what].as_f64().unwrap()
}

/// Why something was not measured; empty where it was.
fn why<'a>(recording: &'a Value, what: &str) -> &'a str {
    let missing = recording["missing"].as_array().unwrap().iter();
    missing.clone().find(|each| each["what"] == what).map_or("", |each| each["why"].as_str().unwrap())
}

fn numbers(text: &str) -> Vec<f64> {
    text.split_whitespace().map(|word| word.parse().unwrap_or_else(|_| panic!("{text}"))).collect()
}

/// From 200 W to 400 W at a moment that the guest tells: no constant gives the energy that belongs to it.
#[test]
fn watts_of_the_controller_become_joules() {
    let (Some(program), Some(guest)) = (program(), machine_or_skip("bmc")) else { return };
    let script = r"asked() { set -- $(ipmitool raw 0x30 3); echo $((0x$1 + 256 * 0x$2)); }
        ipmitool raw 0x30 1 200 0 > /dev/null
        asked
        zenkai record --interval 100ms --json > out/r.json &
        begun $! ipmi0; sleep 7
        date +%s.%N; ipmitool raw 0x30 1 0x90 1 > /dev/null; date +%s.%N
        sleep 7; ended $!
        asked";
    let outcome = guest.run(job(script, &program)).unwrap();
    let recording = made(&outcome, "r.json");
    let [asked_before, earliest, latest, asked_after] = numbers(&outcome.stdout)[..] else {
        panic!("{}", outcome.stdout)
    };
    let energy = &recording["energy"];
    assert_eq!(energy["domain"], "bmc", "{energy}");
    assert!(energy["measured_as"].as_str().unwrap().contains("whole machine"), "{energy}");
    let joules = energy["joules"].as_f64().unwrap();
    let (begun, duration) =
        (recording["started_ns"].as_f64().unwrap() / 1e9, recording["duration_s"].as_f64().unwrap());
    let readings = of(&recording, "energy.bmc", "intervals");
    // The rise lies between two readings (100 W for one distance), and at both ends as much may be missing.
    let tolerance = 400.0 * duration / readings;
    let true_joules = |rise: f64| 200.0 * duration + 200.0 * (begun + duration - rise);
    let (least, most) = (true_joules(latest) - tolerance, true_joules(earliest) + tolerance);
    assert!(joules >= least && joules <= most, "{joules} J, not within {least} to {most}");
    for (what, watts) in [("min", 200.0), ("max", 400.0)] {
        assert!((of(&recording, "energy.bmc", what) - watts).abs() < 0.01, "{what}: {recording}");
    }
    // Ten samples a second, but one question; each of them over the interface.
    let asked = asked_after - asked_before;
    assert!(asked > readings && asked <= duration + 4.0, "asked {asked} times in {duration} s");
}

#[test]
fn a_controller_without_watts_is_a_reason_and_no_value() {
    let (Some(program), Some(guest)) = (program(), machine_or_skip("bmc")) else { return };
    // An answer is waited for 3 s, and QEMU goes on without it after 4 s. The driver takes 30 at once.
    let script = r"for mood in 2 3 4 5 1; do
            ipmitool raw 0x30 2 $mood > /dev/null
            zenkai record --for $((mood == 1 ? 9 : 3))s --json > out/$mood.json
        done
        sleep 4
        ipmitool raw 0x30 2 0 > /dev/null
        for i in $(seq 31); do sh -c 'exec 4<>/dev/ipmi0 && exec sleep 900' & done 2> /dev/null
        until [ $(ls -l /proc/[0-9]*/fd 2> /dev/null | grep -c ipmi0) -ge 30 ]; do sleep 0.2; done
        zenkai record --for 1s --json > out/busy.json
        rm /dev/ipmi0
        zenkai record --for 1s --json > out/absent.json";
    let outcome = guest.run(job(script, &program)).unwrap();
    for (name, what, reason) in [
        ("1", "ipmi.bmc", "no answer"),
        ("2", "ipmi.bmc", "0xc0 (busy)"),
        ("3", "ipmi.bmc", "does not know this command"),
        ("4", "ipmi.bmc", "does not measure power at the moment"),
        ("5", "ipmi.bmc", "measures nothing"),
        ("busy", "ipmi", "/dev/ipmi0: Device or resource busy"),
        ("absent", "ipmi", "there is no BMC"),
    ] {
        let recording = made(&outcome, &format!("{name}.json"));
        assert!(why(&recording, what).contains(reason), "{name}: {}", recording["missing"]);
        assert!(channel(&recording, "energy.bmc").is_none(), "{name}: {recording}");
        let energy = recording["energy"]["why"].as_str().unwrap();
        assert!(energy.starts_with("no energy counter") && energy.contains(reason), "{name}: {energy}");
        assert!(of(&recording, "cpu.idle", "mean") > 0.0, "the rest is recorded");
    }
}

#[test]
fn a_controller_that_is_busy_for_long_leaves_a_gap() {
    let (Some(program), Some(guest)) = (program(), machine_or_skip("bmc")) else { return };
    let script = r"zenkai record --json > out/r.json &
        begun $! ipmi0; sleep 4; ipmitool raw 0x30 2 2 > /dev/null
        sleep 9; ipmitool raw 0x30 2 0 > /dev/null
        sleep 4; ended $!";
    let outcome = guest.run(job(script, &program)).unwrap();
    let recording = made(&outcome, "r.json");
    assert!(why(&recording, "ipmi.bmc").contains("busy"), "{}", recording["missing"]);
    for what in ["min", "mean", "max"] {
        assert!((of(&recording, "energy.bmc", what) - 245.0).abs() < 0.01, "{what}: {recording}");
    }
    let energy = recording["energy"]["why"].as_str().unwrap();
    assert!(energy.contains("bmc was not counted for"), "{energy}");
}

/// From 300 W to 500 W, by a driver that has its files at the device and reads the ACPI table's method once a second.
#[test]
fn a_power_meter_is_seen_and_recorded() {
    let (Some(program), Some(guest)) = (program(), machine_or_skip("meter")) else { return };
    let script = r#"byte() { printf "\\$(printf %o $2)" | dd of=/dev/port bs=1 seek=$(($1)) conv=notrunc 2> /dev/null; }
        watts() { byte 0x8b $(($1 % 256)); byte 0x8f $(($1 / 256)); }
        watts 300; sleep 2
        zenkai facts power --json > out/facts.json
        zenkai record --json > out/r.json &
        begun $! proc/stat; sleep 7
        date +%s.%N; watts 500; date +%s.%N
        sleep 7; ended $!"#;
    let outcome = guest.run(job(script, &program)).unwrap();
    let facts = made(&outcome, "facts.json");
    assert_eq!(facts["meters"][0]["average_uw"], 300_000_000, "{facts}");
    let recording = made(&outcome, "r.json");
    let [earliest, latest] = numbers(&outcome.stdout)[..] else { panic!("{}", outcome.stdout) };
    let name = "energy.hwmon0.power_meter.power1";
    for (what, watts) in [("min", 300.0), ("max", 500.0)] {
        assert!((of(&recording, name, what) - watts).abs() < 0.01, "{what}: {recording}");
    }
    let energy = &recording["energy"];
    assert_eq!(energy["domain"], "hwmon0.power_meter.power1", "{energy}");
    let joules = energy["joules"].as_f64().unwrap();
    let (begun, duration) =
        (recording["started_ns"].as_f64().unwrap() / 1e9, recording["duration_s"].as_f64().unwrap());
    // The driver and our thread each keep a reading for a second, and a sample takes what there is.
    let tolerance = 200.0 * (2.0 + 2.0 * duration / of(&recording, name, "intervals"));
    let true_joules = |rise: f64| 300.0 * duration + 200.0 * (begun + duration - rise);
    let (least, most) = (true_joules(latest) - tolerance, true_joules(earliest) + tolerance);
    assert!(joules >= least && joules <= most, "{joules} J, not within {least} to {most}");
}

/// At the same watts the longer one of two commands uses more energy, in proportion.
#[test]
fn joules_of_two_commands_are_compared() {
    let (Some(program), Some(guest)) = (program(), machine_or_skip("bmc")) else { return };
    // Energy takes five readings, one a second.
    let script = r"mkdir -p /var/lib
        zenkai compare --metric joules --fixed --pairs 6 --settle 0s..0s --out out/trial cmd:'sleep 9' cmd:'sleep 13' >&2
        zenkai report out/trial --format json
        zenkai report out/trial --format text >&2";
    let outcome = guest.run(job(script, &program)).unwrap();
    let json: Value = serde_json::from_str(&outcome.stdout).unwrap_or_else(|_| panic!("{}", outcome.stderr));
    assert_eq!(json["verdict"], "different", "{}", outcome.stderr);
    assert!(outcome.stderr.contains("BMC, whole machine, 1 s"), "{}", outcome.stderr);
    let trials = String::from_utf8(outcome.files["trial/trials.jsonl"].clone()).unwrap();
    let (mut joules, mut seconds) = (0.0, 0.0);
    for trial in trials.lines().map(|line| serde_json::from_str::<Value>(line).unwrap()) {
        assert_eq!(trial["energy_domain"], "bmc", "{trial}");
        let (used, took) = (trial["value"].as_f64().unwrap(), trial["elapsed_s"].as_f64().unwrap());
        // 245 W all the time, of which both ends may be missing: a reading is a second old.
        assert!(used > 0.0 && used < 250.0 * took, "{used} J in {took} s: {trial}");
        let sign = if trial["arm"] == 1 { 1.0 } else { -1.0 };
        (joules, seconds) = (joules + sign * used, seconds + sign * took);
    }
    // What is missing at the ends is the same in both arms.
    assert!((joules / seconds - 245.0).abs() < 60.0, "{joules} J in {seconds} s: {trials}");
}

/// The register counts the emulator's time stamps, so that the driver's counter comes round about every half a minute.
#[test]
fn a_package_is_counted_round_and_its_memory_once() {
    let (Some(program), Some(guest)) = (program(), machine_or_skip("hwp")) else { return };
    let script = r"dir=/sys/class/powercap/intel-rapl:0; range=$(cat $dir/max_energy_range_uj)
        look() { read now rest < /proc/uptime; read uj < $dir/energy_uj; echo $now $uj; }
        near=$((range / 5 * 4))
        while look > at; read now uj < at; [ $uj -lt $near ]; do sleep 0.2; done
        echo $range; cat at
        zenkai record --for 10s --interval 100ms --json > out/r.json
        look";
    let outcome = guest.run(job(script, &program)).unwrap();
    let recording = made(&outcome, "r.json");
    let [range, then, first, now, last] = numbers(&outcome.stdout)[..] else { panic!("{}", outcome.stdout) };
    assert!(last < first, "it came round: {}", outcome.stdout);
    let watts = (range - first + last) / 1e6 / (now - then);
    let found = of(&recording, "energy.package-0", "mean");
    let duration = recording["duration_s"].as_f64().unwrap();
    assert!((found / watts - 1.0).abs() < 0.1, "{found} W, and {watts} W by hand");
    assert!(of(&recording, "energy.package-0", "min") > 0.0, "{recording}");
    let memory = of(&recording, "energy.package-0.dram", "mean");
    assert!(memory > 0.0 && memory < found, "{memory} W");
    assert_eq!(recording["energy"]["domain"], "package-0 + package-0.dram");
    let joules = recording["energy"]["joules"].as_f64().unwrap();
    assert!((joules / ((found + memory) * duration) - 1.0).abs() < 0.01, "{joules} J");
}

/// The vector of the interrupt that tells of heat, sent by hand, with the register saying that the core is too hot
/// (`intel_thermal_interrupt` in `drivers/thermal/intel/therm_throt.c`); and a CPU that is away for a while.
#[test]
fn a_cpu_that_goes_offline_leaves_gaps_and_comes_back() {
    let (Some(program), Some(guest)) = (program(), machine_or_skip("hwp")) else { return };
    let script = r"cpus=/sys/devices/system/cpu
        hot() { taskset 2 devmem 0xfee00300 32 0x000400fa; }
        mkdir /sys/fs/cgroup/work
        zenkai record --interval 250ms --cgroup /sys/fs/cgroup/work --json > out/r.json &
        recorder=$!; begun $recorder perf_event; sleep 5
        (echo 0 > /sys/fs/cgroup/work/cgroup.procs; exec sh -c 'while :; do :; done') &
        echo 0 > $cpus/cpu1/online; sleep 8; echo 1 > $cpus/cpu1/online; sleep 12
        wrmsr all 0x19c 0x88300001
        hot; hot; hot
        cat $cpus/cpu1/thermal_throttle/core_throttle_count
        ended $recorder; kill $!";
    let outcome = guest.run(job(script, &program).append("iomem=relaxed")).unwrap();
    let recording = made(&outcome, "r.json");
    assert_eq!(outcome.stdout.trim(), "3", "{}", outcome.stderr);
    assert!((of(&recording, "throttle.core_events", "total") - 3.0).abs() < 1e-9, "{recording}");
    assert!(
        why(&recording, "throttle.core_throttle_count/1").contains("No such"),
        "{}",
        recording["missing"]
    );
    assert!(why(&recording, "clock.cpu1").contains("No such device"), "{}", recording["missing"]);
    // Before and after it was measured, in between it was not: never zero.
    assert!(of(&recording, "clock.cpu1", "min") > 1e8, "{recording}");
    let seen = |name: &str| of(&recording, name, "intervals");
    assert!(seen("clock.cpu1") >= 8.0 && seen("clock.cpu1") <= seen("clock.cpu0") - 6.0, "{recording}");
    // The kernel takes counters off a CPU for good.
    assert!(why(&recording, "perf.task_clock").contains("offline"), "{}", recording["missing"]);
    assert!(of(&recording, "cgroup.cpu", "mean") > 0.1, "the group itself is counted on");
}

#[test]
fn software_counters_of_perf_agree_with_the_group() {
    let (Some(program), Some(guest)) = (program(), machine_or_skip("plain")) else { return };
    let script = r"mkdir /sys/fs/cgroup/work; stat=/sys/fs/cgroup/work/cpu.stat
        zenkai record --interval 100ms --cgroup /sys/fs/cgroup/work --json > out/r.json &
        recorder=$!; begun $recorder perf_event; sleep 2
        for each in 1 2; do
            (echo 0 > /sys/fs/cgroup/work/cgroup.procs
             exec sh -c 'i=0; while [ $i -lt 20000 ]; do i=$((i+1)); done; dd if=/dev/zero of=/dev/null bs=8M count=2') &
        done 2> /dev/null
        wait %2 %3
        sed -n 's/usage_usec //p' $stat
        ended $recorder";
    let outcome = guest.run(job(script, &program)).unwrap();
    let recording = made(&outcome, "r.json");
    let [used_us] = numbers(&outcome.stdout)[..] else { panic!("{}", outcome.stdout) };
    let counted = of(&recording, "perf.task_clock", "total");
    assert!((counted / (used_us / 1e6) - 1.0).abs() < 0.1, "{counted} s, the group says {used_us} µs");
    // Each dd touches the pages of its buffer: 2 048 of 4 KiB, unless huge ones are used.
    assert!(of(&recording, "perf.page_faults", "total") > 100.0, "{recording}");
    assert!(of(&recording, "perf.context_switches", "total") > 1.0, "{recording}");
    // The emulator has no hardware counters.
    for event in ["instructions", "cycles", "ref_cycles", "cache_misses", "branch_misses"] {
        let name = format!("perf.{event}");
        assert!(channel(&recording, &name).is_none(), "{recording}");
        assert!(why(&recording, &name).contains("perf_event_open"), "{}", recording["missing"]);
    }
}
