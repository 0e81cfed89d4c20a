//! The shell library that scripts of profiles read, in both shells that scripts are written for.
#![expect(clippy::unwrap_used, reason = "a test may stop here")]

use zenkai_host::{Act, Finished, LiveHost, TunableHost};

/// Runs a script that reads the library, with the library's root and stores in an empty directory.
fn run(shell: &str, body: &str, argument: &str) -> Finished {
    let dir = tempfile::tempdir().unwrap();
    let library = concat!(env!("CARGO_MANIFEST_DIR"), "/../../packaging/functions");
    let script = format!(
        "cd \"$1\"; ZENKAI_FUNCTIONS_ROOT=$1; mkdir -p sys etc/modprobe.d;\n{}\n\
         . {library}; STORAGE=$1/run; STORAGE_PERSISTENT=$1/var\n{}\nshift; process \"$@\"",
        body.split_once("---\n").map_or("", |(before, _)| before),
        body.split_once("---\n").map_or(body, |(_, after)| after),
    );
    let argv = [shell, "-c", &script, "script", dir.path().to_str().unwrap(), argument];
    LiveHost.run(&Act::Command { argv: argv.iter().map(ToString::to_string).collect() }).unwrap()
}

fn both(body: &str, argument: &str, code: i32, output: &str) {
    for shell in ["sh", "bash"] {
        let ended = run(shell, body, argument);
        assert_eq!(ended, Finished { code, output: output.to_owned() }, "{shell}: {body}");
    }
}

#[test]
fn process_calls_the_function_and_passes_its_code() {
    both("start() { echo started; return 3; }", "start", 3, "started\n");
    both("", "verify", 0, "");
    both("verify() { false; }", "verify", 1, "");
    both("", "stop", 16, "tuned: script function 'stop' is not implemented.\n");
    both("", "reload", 2, "Usage: script {start|stop|verify}\n");
    both("start() { die no luck; }", "start", 1, "no luck\n");
}

#[test]
fn values_are_kept_once_and_put_back() {
    let body = "echo 'a [b] c' >sys/x; echo 5 >sys/n\n---\n\
        start() {\n\
        save_set_sys x sys/x c; save_set_sys x sys/x a; get_stored_sys x; cat sys/x\n\
        restore_sys x sys/x; cat sys/x; restore_sys x sys/x z; cat sys/x\n\
        save_value v 1; restore_value v; restore_value v; parse_sys sys/n; parse_sys sys/none\n\
        set_sys sys/none 1; ls sys; }";
    both(body, "start", 0, "b\na\nb\nz\n1\n5\nn\nx\n");
}

#[test]
fn devices_are_set_and_restored() {
    let body = "for c in 0 1; do mkdir -p sys/devices/system/cpu/cpu$c/cpufreq\n\
        echo powersave$c >sys/devices/system/cpu/cpu$c/cpufreq/scaling_governor; done\n\
        mkdir -p sys/block/sda/queue; echo 'x [y]' >sys/block/sda/queue/scheduler\n\
        echo 128 >sys/block/sda/queue/read_ahead_kb\n---\n\
        start() {\n\
        set_cpu_governor fast; cat sys/devices/system/cpu/cpu*/cpufreq/scaling_governor\n\
        restore_cpu_governor; cat sys/devices/system/cpu/cpu*/cpufreq/scaling_governor\n\
        set_elevator 'sys/block/sd*/queue/scheduler' x; cat sys/block/sda/queue/scheduler\n\
        restore_elevator 'sys/block/sd*/queue/scheduler'; cat sys/block/sda/queue/scheduler\n\
        multiply_disk_readahead 1.5; cat sys/block/sda/queue/read_ahead_kb\n\
        ls -A run; echo $CPUS; }";
    both(body, "start", 0, "fast\nfast\npowersave0\npowersave1\nx\ny\n192\ncpu0 cpu1\n");
}

#[test]
fn sata_ports_with_a_cable_stay_at_full_power() {
    let body = "for port in 0:c017 1:4c017 2:20c017 3:; do mkdir -p sys/class/scsi_host/host${port%:*}\n\
        echo ${port#*:} >sys/class/scsi_host/host${port%:*}/ahci_port_cmd\n\
        echo old >sys/class/scsi_host/host${port%:*}/link_power_management_policy; done\n---\n\
        start() { set_disk_alpm min_power; cat sys/class/scsi_host/*/link*; }";
    both(body, "start", 0, "min_power\nmax_performance\nmax_performance\nold\n");
}

#[test]
fn kvm_and_ksm_through_their_programs() {
    let body = "mkdir -p sys/kernel/mm/ksm; echo 1 >sys/kernel/mm/ksm/run\n---\n\
        modinfo() { echo 'ple_gap:x (uint)'; }\n\
        systemctl() { case $1 in cat) ;; *) echo \"systemctl $*\";; esac; }\n\
        start() {\n\
        setup_kvm_mod_low_latency; cat etc/modprobe.d/kvm.rt.tuned.conf; teardown_kvm_mod_low_latency\n\
        ls etc/modprobe.d; disable_ksm; disable_ksm; cat sys/kernel/mm/ksm/run; enable_ksm; ls var; }";
    both(
        body,
        "start",
        0,
        "options kvm_intel ple_gap=0\nsystemctl --quiet --now mask ksm ksmtuned\n2\n\
         systemctl --quiet unmask ksm ksmtuned\n",
    );
}

#[test]
fn nothing_happens_on_a_machine_without_any_of_it() {
    let body = "start() { set_disk_alpm x; set_disk_scheduler_quantum 1; enable_usb_autosuspend\n\
        enable_wifi_powersave; enable_transparent_hugepages; restore_transparent_hugepages\n\
        set_hda_intel_powersave 1; set_radeon_powersave low; restore_radeon_powersave; eee_set_normal_fsb\n\
        disable_logs_syncing; restore_logs_syncing; irqbalance_banned_cpus_clear; enable_ksm; find sys etc -type f; }";
    both(body, "start", 0, "");
}

#[test]
fn logs_get_their_configuration_back() {
    let body = "printf 'a /var/log/x\\nb -/var/log/y\\n' >etc/rsyslog.conf\n---\n\
        start() { disable_logs_syncing; disable_logs_syncing; cat etc/rsyslog.conf\n\
        restore_logs_syncing; restore_logs_syncing; cat etc/rsyslog.conf; }";
    both(body, "start", 0, "a -/var/log/x\nb -/var/log/y\na /var/log/x\nb -/var/log/y\n");
}
