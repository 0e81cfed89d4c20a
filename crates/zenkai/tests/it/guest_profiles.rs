//! Our profiles on real kernels with hardware that this machine lacks: applied, verified, taken off, and everything as
//! before. A machine whose images are not built is skipped, visibly.

use std::collections::BTreeSet;

use zenkai_lab::{Job, machine_or_skip};

use crate::guests::program;

const SCRIPT: &str = include_str!("guest_profiles.sh");

/// Options whose value the kernel of a machine takes without keeping it, so that `verify` rightly objects.
const NOT_KEPT: [(&str, &str); 1] = [("plain", "energy_perf_bias")];

/// What is applied where. Profiles that turn the same knobs of a machine are applied to one machine only, since each
/// costs a guest seconds; together they are all of them.
const PLACES: [(&str, &[&str]); 6] = [
    (
        "plain",
        &[
            "database",
            "hpc-compute",
            "latency-performance",
            "network-latency",
            "storage-server",
            "throughput-performance",
            "virtual-guest",
            "web-server",
        ],
    ),
    ("hwp", &["balanced", "latency-performance", "powersave", "throughput-performance"]),
    ("numa", &["hpc-compute", "throughput-performance", "virtual-host"]),
    ("storage", &["storage-server", "virtual-guest"]),
    ("nic", &["network-latency", "network-throughput"]),
    ("xen", &["xen-dom0"]),
];

#[test]
fn every_profile_is_applied_somewhere() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../profiles");
    let files = std::fs::read_dir(folder).unwrap();
    let names = files.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let names: BTreeSet<String> =
        names.filter_map(|name| name.strip_suffix(".conf").map(str::to_owned)).collect();
    let applied = PLACES.iter().flat_map(|(_, profiles)| *profiles).map(|&name| name.to_owned()).collect();
    assert_eq!(names, applied);
}

/// Applies profiles to a machine, takes them off, and expects that some of them turn these knobs: the profile, the end of
/// the knob's name and the value.
fn come_and_go(machine: &str, turned: &[(&str, &str, &str)]) {
    let (_, profiles) = PLACES.iter().find(|(name, _)| *name == machine).unwrap();
    let (Some(program), Some(guest)) = (program(), machine_or_skip(machine)) else { return };
    let script = format!("PROFILES='{}'\n{SCRIPT}", profiles.join(" "));
    let outcome = guest.run(Job::shell(script).program(&program)).unwrap();
    let out = outcome.stdout;
    let watched =
        out.lines().find_map(|line| line.strip_prefix("LINES ")).and_then(|n| n.trim().parse().ok());
    assert!(watched > Some(1000), "{machine}: {watched:?} settings watched\n{out}\n{}", outcome.stderr);
    assert!(!out.contains("RESIDUE"), "{machine}: {out}");
    for profile in *profiles {
        let mark = format!("RESULT {profile} ");
        let result = out.lines().find_map(|line| line.strip_prefix(mark.as_str()));
        let as_asked = match result {
            Some("apply=0 verify=0 off=0") => true,
            Some("apply=0 verify=1 off=0") => only_not_kept(machine, profile, &out),
            _ => false,
        };
        assert!(as_asked, "{machine}: {profile}: {result:?}\n{out}");
    }
    for (profile, knob, value) in turned {
        let (start, end) = (format!("CHANGED {profile} "), format!("{knob}:{value}"));
        let turned = out.lines().any(|line| line.starts_with(&start) && line.trim_end().ends_with(&end));
        assert!(turned, "{machine}: {profile} does not set {end}\n{out}");
    }
}

/// Whether all that differs after a profile is what the machine is known not to keep.
fn only_not_kept(machine: &str, profile: &str, out: &str) -> bool {
    let mark = format!("VERIFY {profile} ");
    let json: String = out.lines().filter_map(|line| line.strip_prefix(mark.as_str())).collect();
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    let steps = json["steps"].as_array().unwrap();
    steps.iter().filter(|step| step["verdict"] == "differs").all(|step| {
        NOT_KEPT.iter().any(|(name, option)| *name == machine && step["wish"]["option"] == *option)
    })
}

#[test]
fn with_cpufreq() {
    let turned = [
        ("throughput-performance", "policy0/scaling_governor", "performance"),
        ("virtual-guest", "vda/queue/scheduler", "[none] mq-deadline"),
        ("hpc-compute", "vda/queue/read_ahead_kb", "4096"),
        ("database", "/vm/dirty_bytes", "629145600"),
        ("latency-performance", "transparent_hugepage/enabled", "always [madvise] never"),
        ("network-latency", "/net/core/busy_poll", "50"),
        ("storage-server", "/vm/vfs_cache_pressure", "50"),
        ("web-server", "/net/ipv4/tcp_max_syn_backlog", "8192"),
    ];
    come_and_go("plain", &turned);
}

#[test]
fn with_intel_pstate_and_hwp() {
    let turned = [
        ("throughput-performance", "policy1/scaling_governor", "performance"),
        ("throughput-performance", "policy1/energy_performance_preference", "performance"),
        ("throughput-performance", "cpu1/power/energy_perf_bias", "0"),
        // The first of the alternatives that the profile names, though the kernel takes the second one too.
        ("powersave", "policy0/energy_performance_preference", "balance_power"),
        ("powersave", "cpu0/power/energy_perf_bias", "15"),
    ];
    come_and_go("hwp", &turned);
}

#[test]
fn with_two_nodes() {
    let turned = [
        ("hpc-compute", "/kernel/numa_balancing", "0"),
        ("throughput-performance", "policy6/scaling_governor", "performance"),
    ];
    come_and_go("numa", &turned);
}

#[test]
fn with_arrays_and_volumes() {
    let turned = [
        ("storage-server", "sda/queue/read_ahead_kb", "8192"),
        ("virtual-guest", "sda/queue/scheduler", "[none] mq-deadline bfq kyber"),
    ];
    come_and_go("storage", &turned);
}

#[test]
fn with_network_cards() {
    let turned = [("network-throughput", "/net/core/netdev_budget", "600")];
    come_and_go("nic", &turned);
}

/// Two that steer one machine would undo each other's work.
#[test]
fn beside_a_running_tuned_nothing_is_changed() {
    let (Some(program), Some(guest)) = (program(), machine_or_skip("tuned")) else { return };
    let script = "cd /proc/sys/vm; cat vfs_cache_pressure; zenkai profile apply zenkai/storage-server 2>&1; echo \"exit $?\"
        cat vfs_cache_pressure; systemctl stop tuned
        zenkai profile apply zenkai/storage-server > /dev/null; echo \"exit $?\"; cat vfs_cache_pressure
        zenkai profile off > /dev/null; echo \"exit $?\"; cat vfs_cache_pressure";
    let outcome = guest.run(Job::shell(script).program(&program)).unwrap();
    let lines: Vec<&str> = outcome.stdout.lines().collect();
    assert!(lines[1].starts_with("zenkai: tuned is running"), "{lines:?}");
    let rest = ["exit 2", "100", "exit 0", "50", "exit 0", "100"];
    assert_eq!((lines[0], &lines[lines.len() - 6..]), ("100", rest.as_slice()), "{}", outcome.stdout);
}

/// Under Xen the hypervisor has the governors; `xenpm` shows them.
#[test]
fn under_xen() {
    let turned = [("xen-dom0", "current_governor     : performance cpu id               ", " 1")];
    come_and_go("xen", &turned);
}

/// The hypervisor's own numbers, as `xenpm` shows them before, during and after a profile that sets all of them.
#[test]
fn all_that_xen_lets_us_set() {
    let (Some(program), Some(guest)) = (program(), machine_or_skip("xen")) else { return };
    let script = r#"mkdir -p /etc/tuned/hyper
        printf '[xen]\ngovernor=powersave\nmin_frequency=1600000\nmax_cstate=0\n' > /etc/tuned/hyper/tuned.conf
        show() {
            xenpm get-cpufreq-para | sed -n 's/^current_governor *: //p; s/^scaling freq.*min \(.[0-9]*.\).*/\1/p' | sort -u
            xenpm get-cpuidle-states | sed -n 's/^Max possible C-state: //p'
        }
        for command in 'apply hyper' verify off; do show; zenkai profile $command > /dev/null; echo "exit $?"; done
        show"#;
    let outcome = guest.run(Job::shell(script).program(&program)).unwrap();
    let (before, during) = ("[800000] ondemand C1", "[1600000] powersave C0");
    let expected = [before, during, during, before].join(" exit 0 ");
    assert_eq!(
        outcome.stdout.split_whitespace().collect::<Vec<_>>().join(" "),
        expected,
        "{}",
        outcome.stderr
    );
}
