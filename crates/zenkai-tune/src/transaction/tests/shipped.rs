//! Every profile that comes with zenkai, and tuned's own where they are at hand: a stop at every call, on a machine
//! that has all that they ask for.

use zenkai_host::{Capture, LiveHost};

use super::*;
use crate::{
    Scene, State,
    profile::{Functions, Library, MainConf, ProfileError},
};

/// `cargo xtask test` unpacks tuned here.
const TUNED: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../target/tuned-oracle/usr/lib/tuned");
const FIXTURES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../fixtures/hosts");

const SYSCTLS: &[(&str, &str)] = &[
    ("kernel/nmi_watchdog", "1"),
    ("kernel/numa_balancing", "2"),
    ("kernel/sched_autogroup_enabled", "1"),
    ("net/core/busy_poll", "0"),
    ("net/core/busy_read", "0"),
    ("net/core/netdev_budget", "300"),
    ("net/core/netdev_budget_usecs", "2000"),
    ("net/core/netdev_max_backlog", "1000"),
    ("net/core/rmem_max", "212992"),
    ("net/core/somaxconn", "128"),
    ("net/core/wmem_max", "212992"),
    ("net/ipv4/tcp_fastopen", "1"),
    ("net/ipv4/tcp_max_syn_backlog", "512"),
    ("net/ipv4/tcp_rmem", "4096\t87380\t6291456"),
    ("net/ipv4/tcp_slow_start_after_idle", "1"),
    ("net/ipv4/tcp_wmem", "4096\t16384\t4194304"),
    ("net/ipv4/udp_mem", "1\t2\t3"),
    ("vm/dirty_background_bytes", "0"),
    ("vm/dirty_background_ratio", "5"),
    ("vm/dirty_bytes", "0"),
    ("vm/dirty_ratio", "15"),
    ("vm/dirty_writeback_centisecs", "500"),
    ("vm/min_free_kbytes", "67584"),
    ("vm/stat_interval", "1"),
    ("vm/swappiness", "60"),
    ("vm/vfs_cache_pressure", "100"),
    ("vm/zone_reclaim_mode", "1"),
];

const DEVICES: &[(&str, &str)] = &[
    ("/proc/cpuinfo", "processor\t: 0\nvendor_id\t: GenuineIntel\nmodel name\t: Test\nflags\t\t: fpu aes"),
    ("/proc/cmdline", "root=/dev/sda"),
    ("/proc/sys/kernel/random/boot_id", "first"),
    ("/proc/sys/kernel/osrelease", "6.1.0"),
    ("/sys/devices/system/cpu/online", "0-1"),
    ("/sys/devices/system/cpu/possible", "0-1"),
    ("/sys/devices/system/cpu/present", "0-1"),
    ("/sys/devices/system/cpu/intel_pstate/no_turbo", "1"),
    ("/sys/devices/system/cpu/intel_pstate/min_perf_pct", "20"),
    ("/sys/devices/system/cpu/intel_pstate/max_perf_pct", "80"),
    ("/sys/devices/system/cpu/intel_pstate/status", "active"),
    ("/sys/devices/system/cpu/cpufreq/boost", "0"),
    ("/sys/firmware/acpi/platform_profile", "quieter"),
    ("/sys/firmware/acpi/platform_profile_choices", "low-power quieter balanced performance"),
    ("/sys/block/sda/removable", "0"),
    ("/sys/block/sda/device/type", "0"),
    ("/sys/block/sda/queue/read_ahead_kb", "64"),
    ("/sys/block/sda/queue/nr_requests", "64"),
    ("/sys/bus/scsi/uevent", ""),
    ("/sys/class/scsi_host/host0/link_power_management_policy", "max_performance"),
    ("/sys/module/snd_hda_intel/parameters/power_save", "0"),
    ("/sys/module/snd_hda_intel/parameters/power_save_controller", "N"),
    ("/sys/kernel/mm/ksm/run", "0"),
];

/// Two CPUs, a disk, sound, and every sysctl at a value that no profile asks for.
fn rich() -> FakeHost {
    let mut host = FakeHost::new(&[]);
    for (name, value) in SYSCTLS {
        host = host.file(&format!("/proc/sys/{name}"), &format!("{value}\n"));
    }
    for (path, value) in DEVICES {
        host = host.file(path, &format!("{value}\n"));
    }
    for cpu in 0..2 {
        let dir = format!("/sys/devices/system/cpu/cpu{cpu}");
        for (name, value) in [
            ("power/energy_perf_bias", "7"),
            ("cpufreq/scaling_governor", "userspace"),
            ("cpufreq/scaling_available_governors", "userspace performance powersave schedutil"),
            ("cpufreq/energy_performance_preference", "none"),
            (
                "cpufreq/energy_performance_available_preferences",
                "none default performance balance_performance balance_power power",
            ),
            ("cpufreq/scaling_driver", "intel_pstate"),
        ] {
            host = host.file(&format!("{dir}/{name}"), &format!("{value}\n"));
        }
    }
    let select = |host: FakeHost, path: &str, text: &str| host.file(path, text).rule(path, StoreRule::Select);
    host = select(host, "/sys/kernel/mm/transparent_hugepage/enabled", "always madvise [never]\n");
    host = select(host, "/sys/kernel/mm/transparent_hugepage/defrag", "always madvise [never]\n");
    host = select(host, "/sys/block/sda/queue/scheduler", "none mq-deadline [bfq] kyber\n");
    for (one, other) in [
        ("dirty_bytes", "dirty_ratio"),
        ("dirty_ratio", "dirty_bytes"),
        ("dirty_background_bytes", "dirty_background_ratio"),
        ("dirty_background_ratio", "dirty_background_bytes"),
    ] {
        let path = |name: &str| format!("/proc/sys/vm/{name}");
        host = host.rule(&path(one), StoreRule::Couple { path: path(other), value: "0".into() });
    }
    host.link("/sys/block/sda/device/subsystem", "/sys/bus/scsi")
}

/// What every file shows that is or could be written to.
fn all(host: &dyn Host, plan: &Plan) -> Vec<(String, Option<Value>)> {
    let sysctls = SYSCTLS.iter().map(|(name, _)| Knob::Attribute(format!("/proc/sys/{name}")));
    let devices = DEVICES.iter().map(|(path, _)| Knob::Attribute((*path).to_owned()));
    let planned = plan.changes().filter_map(|step| step.wish.knob().cloned());
    let knobs = sysctls.chain(devices).chain(planned);
    knobs.map(|knob| (knob.to_string(), value(host, &knob).ok())).collect()
}

fn try_plan(host: &FakeHost, name: &str) -> Result<Plan, ProfileError> {
    let conf = MainConf::read(host).unwrap();
    let functions = || Functions { host, commands: None };
    let library = Library::new(host, conf.profile_directories.clone());
    let profile = library.load(&[name.to_owned()], None, &functions())?;
    let scene = Scene::new(host, true);
    Ok(Plan::new(host, crate::wishes(&scene, &profile, &conf, functions())))
}

fn plan(host: &FakeHost, name: &str) -> Plan {
    try_plan(host, name).unwrap()
}

/// The names of all profiles that come with zenkai.
fn shipped() -> Vec<String> {
    let host = FakeHost::new(&[]);
    let names: Vec<String> =
        Library::new(&host, Vec::new()).list().into_iter().map(|(name, _)| name).collect();
    assert!(names.len() >= 13, "{names:?}");
    names
}

/// How many calls the change took; at each of them it was stopped.
fn crash(machine: impl Fn() -> FakeHost, name: &str) -> usize {
    let plan = plan(&machine(), name);
    let job = |host: &dyn TunableHost, store: &Store| {
        let session = Session::begin(host, store, "test", Duration::ZERO).unwrap();
        let report = session.apply(host, &plan, &request(Kind::Profile, name)).unwrap();
        assert_eq!(report.end, End::Done, "{name}: {:?}", report.rows);
    };
    crash_everywhere_seen(|host| all(host, &plan), |_| machine(), job, 5)
}

#[test]
fn every_shipped_profile_survives_a_stop_at_every_call() {
    for name in shipped() {
        let changes = plan(&rich(), &format!("zenkai/{name}")).changes().count();
        assert!(changes >= 3, "{name} changes {changes} knobs of the test's machine, which shows little");
        let calls = crash(rich, &format!("zenkai/{name}"));
        assert!(calls > 3 * changes, "{name}: {changes} changes in {calls} calls");
    }
}

#[test]
fn every_shipped_profile_makes_sense_everywhere() {
    let mut hosts = vec![("the test's machine".to_owned(), rich())];
    hosts.push(("nothing at all".to_owned(), FakeHost::new(&[])));
    for entry in LiveHost.list(FIXTURES).unwrap() {
        if entry.name.ends_with(".capture") {
            let text =
                String::from_utf8(LiveHost.read(&format!("{FIXTURES}/{}", entry.name)).unwrap()).unwrap();
            hosts.push((entry.name, FakeHost::from_capture(Capture::parse(&text).unwrap())));
        }
    }
    assert!(hosts.len() > 10, "the fixtures are missing");
    for (place, host) in &hosts {
        for name in shipped() {
            let plan = plan(host, &format!("zenkai/{name}"));
            assert!(!plan.steps.is_empty(), "{name} on {place} asks for nothing");
            let wrong: Vec<&State> = plan.mistakes().map(|step| &step.state).collect();
            assert!(wrong.is_empty(), "{name} on {place}: {wrong:?}");
        }
    }
}

/// tuned's profiles as installed, where `cargo xtask test` has put them.
fn stock() -> Vec<(String, Vec<u8>)> {
    let file = |name: String| {
        let content = LiveHost.read(&format!("{TUNED}/{name}/tuned.conf")).ok()?;
        Some((name, content))
    };
    let entries = LiveHost.list(TUNED).unwrap_or_default();
    entries.into_iter().filter_map(|entry| file(entry.name)).collect()
}

#[test]
fn tuned_s_own_profiles_survive_a_stop_at_every_call() {
    let stock = stock();
    let machine = || {
        let add = |host: FakeHost, (name, content): &(String, Vec<u8>)| {
            host.bytes(&format!("/usr/lib/tuned/{name}/tuned.conf"), content)
        };
        stock.iter().fold(rich(), add)
    };
    let mut crashed = 0;
    for (name, _) in &stock {
        // Some demand variables that an administrator must set first; those are refused as a whole.
        if try_plan(&machine(), name).is_ok_and(|plan| plan.mistakes().next().is_none()) {
            crash(machine, name);
            crashed += 1;
        }
    }
    assert!(stock.is_empty() || crashed >= 12, "only {crashed} of {} were tried", stock.len());
}
