//! Experiments in guests: a governor that really decides about the speed, and a control group of version 2 with all its
//! controllers, which many machines do not have.

use serde_json::Value;
use zenkai_lab::{Job, machine_or_skip};

use crate::guests::program;

/// With virtual CPUs that wait for the part of the clock they lack, the lower clock is the explanation. A guest's time is
/// what a busy host leaves it, so the effect is a large one: 800 MHz against 3700 MHz.
///
/// The runs are long enough that each is sampled: a busy host starts the sampler late, and one run without a clock leaves
/// nothing to split by it.
#[test]
fn a_slower_governor_is_found_and_the_clock_explains_it() {
    let (Some(program), Some(guest)) = (program(), machine_or_skip("clock")) else { return };
    let script = r#"mkdir -p /var/lib
        of() { echo "set:/sys/devices/system/cpu/cpufreq/policy$1=$2"; }
        slow() { echo "$(of $1/scaling_governor powersave) + $(of $1/energy_performance_preference power)"; }
        zenkai compare now "$(slow 0) + $(slow 1)" --pairs 16 --settle 0s..0s --out trial > told 2>&1 \
            -- sh -c 'i=0; while [ $i -lt 12000 ]; do i=$((i+1)); done'
        code=$?
        cat told >&2
        cat /sys/devices/system/cpu/cpufreq/policy*/scaling_governor >&2
        zenkai report trial --format json
        exit $code"#;
    let outcome = guest.run(Job::shell(script).program(&program)).unwrap();
    let json: Value = serde_json::from_str(&outcome.stdout).unwrap();
    assert_eq!(json["verdict"], "different", "{}", outcome.stderr);
    let found = &json["comparisons"][0];
    let split = &found["explanation"]["splits"][0];
    let terms = split["terms"].as_array().unwrap();
    let theta = |term: &Value| term["theta"].as_f64().unwrap();
    let clock = terms.iter().find(|term| term["name"] == "clock").map(theta);
    let clock = clock.unwrap_or_else(|| panic!("{split} {}", outcome.stderr));
    // The logarithm of the ratio of 37 to 8 is 1.53.
    assert!(clock > 1.4 && clock < 1.65, "{clock}: {}", outcome.stderr);
    assert!(theta(split) > 0.0 && terms.iter().all(|term| theta(term) <= clock), "{}", outcome.stderr);
    let sentence = found["explanation"]["sentences"][0].as_str().unwrap_or_default();
    assert!(sentence.contains("clock × "), "{sentence}");
    assert!(outcome.stderr.trim_end().ends_with("performance\nperformance"), "{}", outcome.stderr);
}

/// A share of the CPU by `cpu.max`, and what the group's own files say of each run.
#[test]
fn a_group_of_version_2_holds_a_workload_back_and_counts_what_it_takes() {
    let (Some(program), Some(guest)) = (program(), machine_or_skip("plain")) else { return };
    let script = r"mkdir -p /var/lib
        echo 'i=0; while [ $i -lt 6000 ]; do i=$((i+1)); done; dd if=/dev/zero of=/tmp/x bs=1M count=4
            dd if=/dev/vda of=/dev/null bs=64k count=8 iflag=direct' > work
        zenkai compare now cpu-max:50 --fixed --pairs 6 --settle 0s..0s --interval 100ms --out out/trial -- sh work 2>&1";
    let outcome = guest.run(Job::shell(script).program(&program)).unwrap();
    assert_eq!(outcome.code, 0, "{}", outcome.stdout);
    let trials = String::from_utf8(outcome.files["trial/trials.jsonl"].clone()).unwrap();
    let trials: Vec<Value> = trials.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(trials.len(), 12);
    for trial in &trials {
        let of = |channel: &str| trial["channels"][format!("cgroup.{channel}")].as_f64();
        let held = trial["arm"] == 1;
        assert_eq!(of("throttled_periods").unwrap() > 0.0, held, "{trial}");
        assert!(!held || of("cpu").unwrap() < 0.6, "{trial}");
        assert!(of("memory_peak").unwrap() > 100_000.0 && of("usr").unwrap() > 0.0, "{trial}");
        assert!(of("pressure.cpu.some").is_some() && of("pressure.io.some").is_some(), "{trial}");
        // The group has no line for the disk before its first request.
        assert!(of("read_bytes").unwrap() > 0.0, "{trial}");
    }
}
