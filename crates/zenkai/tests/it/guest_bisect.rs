//! `zenkai bisect` in a guest whose governor really decides about the speed: of twenty differences it alone is to blame.

use std::time::Duration;

use serde_json::Value;
use zenkai_lab::{Job, machine_or_skip};

use crate::guests::program;

/// Seven experiments of runs of a second; on a busy host that takes minutes.
const LIMIT: Duration = Duration::from_secs(900);

/// Settings that a loop of the shell does not meet; each is made larger by one.
const HARMLESS: &str = "kernel/hung_task_timeout_secs \
    net/core/dev_weight net/core/netdev_budget net/core/netdev_budget_usecs net/core/netdev_max_backlog net/core/optmem_max net/core/rmem_max net/core/somaxconn \
    net/core/wmem_max net/ipv4/tcp_fin_timeout \
    vm/dirty_expire_centisecs vm/dirty_writeback_centisecs vm/laptop_mode vm/page-cluster vm/stat_interval \
    vm/swappiness vm/vfs_cache_pressure vm/watermark_boost_factor vm/watermark_scale_factor";

#[test]
fn the_governor_is_found_among_twenty_differences() {
    let (Some(program), Some(guest)) = (program(), machine_or_skip("clock")) else { return };
    // On a busy host the guest's time is what others leave it, so the effect is a large one: 800 MHz against 3700 MHz.
    // What is within 20 % does not matter then, and few runs are enough.
    let script = format!(
        r#"mkdir -p /var/lib
        shown() {{
            for key in {HARMLESS}; do echo "$key $(cat /proc/sys/$key)"; done
            cd /sys/devices/system/cpu/cpufreq
            grep . policy*/scaling_governor policy*/energy_performance_preference
            cd - > /dev/null
        }}
        zenkai capture -o good.capture
        for key in {HARMLESS}; do echo $(($(cat /proc/sys/$key) + 1)) > /proc/sys/$key; done
        for policy in /sys/devices/system/cpu/cpufreq/policy*; do
            echo powersave > $policy/scaling_governor
            echo power > $policy/energy_performance_preference
        done
        shown > before
        zenkai bisect --from good.capture --out out/search --json --no-sample --seed 7 --settle 0s..0s --rho 20% \
            --pairs 16 -- sh -c 'i=0; while [ $i -lt 3000 ]; do i=$((i+1)); done'
        code=$?
        shown > after
        diff before after > out/changed
        exit $code"#
    );
    let outcome = guest.run(Job::shell(script).program(&program).limit(LIMIT)).unwrap();
    assert_eq!(outcome.code, 0, "{}", outcome.stderr);
    assert_eq!(String::from_utf8_lossy(&outcome.files["changed"]), "", "{}", outcome.stderr);
    let found: Value = serde_json::from_str(&outcome.stdout).unwrap();
    let toggles = found["toggles"].as_array().unwrap();
    assert!(toggles.len() >= 20, "{}", outcome.stderr);
    let accused = found["outcome"]["accused"].as_array().unwrap();
    assert_eq!(accused.len(), 1, "{}", outcome.stderr);
    let numbers = accused[0]["toggles"].as_array().unwrap();
    assert_eq!(numbers.len(), 1, "{}", outcome.stderr);
    let number = usize::try_from(numbers[0].as_u64().unwrap()).unwrap();
    // intel_pstate shows another preference with another governor, so the two are one toggle.
    assert_eq!(toggles[number]["name"], "governor and preference", "{}", outcome.stderr);
    assert!(toggles[number]["a"].as_str().unwrap().contains("performance"), "{}", toggles[number]);
    assert!(accused[0]["alone"]["percent"].as_f64().unwrap() < -20.0, "{}", outcome.stderr);
    eprintln!("{}{}", outcome.stderr, found["outcome"]);
}
