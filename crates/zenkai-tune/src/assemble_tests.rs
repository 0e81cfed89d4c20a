use zenkai_host::FakeHost;

use super::*;
use crate::{Plan, State, profile::Library};

const DIR: &str = "/etc/tuned/profiles";

fn plan(host: &FakeHost) -> Plan {
    let functions = Functions { host, commands: None };
    let conf = MainConf::read(host).unwrap();
    let library = Library::new(host, conf.profile_directories.clone());
    let profile = library.load(&["p".to_owned()], None, &functions).unwrap();
    Plan::new(host, wishes(&Scene::new(host, true), &profile, &conf, functions))
}

/// What the profile text comes to on the machine: one line for each step.
fn lines(host: FakeHost, text: &str) -> String {
    let plan = plan(&host.file(&format!("{DIR}/p/tuned.conf"), text));
    let line = |step: &crate::Step| {
        let what = match &step.state {
            State::Same { value } => format!("is {value}"),
            State::Change { from, to, .. } => format!("{from} -> {to}"),
            State::Leave(why) => why.clone(),
            State::Cannot { why, fault } => format!("{fault:?}: {why}"),
            other => format!("{other:?}"),
        };
        let place = step.wish.origin.to_string().replace(&format!("{DIR}/p/tuned.conf"), "p");
        format!("{place} [{}] {what}\n", step.wish.unit)
    };
    plan.steps.iter().map(line).collect()
}

fn machine() -> FakeHost {
    FakeHost::new(&[
        ("/sys/a", "1\n"),
        ("/sys/b", "1\n"),
        ("/proc/cpuinfo", "vendor_id\t: GenuineIntel\nmodel name\t: X\n"),
    ])
}

#[test]
fn units_in_order_of_priority_and_only_where_they_are_meant() {
    let text = "[late]\ntype=sysfs\npriority=5\n/sys/b=2\n[early]\ntype=sysfs\npriority=-1\n/sys/a=1\n\
                [off]\ntype=sysfs\nenabled=0\n/sys/a=3\n\
                [intel]\ntype=sysfs\ncpuinfo_regex=^model name.*X$\n/sys/a=4\n\
                [amd]\ntype=sysfs\ncpuinfo_regex=AMD\n/sys/a=5\n";
    let out = lines(machine(), text);
    assert!(out.starts_with("p:8 [early] Overruled"), "{out}");
    assert!(out.contains("[off] the unit is switched off"), "{out}");
    assert!(out.contains("[intel] 1 -> 4"), "{out}");
    assert!(out.contains("[amd] the unit is for other machines (cpuinfo_regex)"), "{out}");
    assert!(out.ends_with("p:4 [late] 1 -> 2\n"), "{out}");
}

#[test]
fn mistakes_are_told_with_their_line_and_a_likely_name() {
    let out = lines(machine(), "[sysf]\n/sys/a=1\n[sysfs]\n/syz/a=1\n/sys/b=${nope}\n/sys/a=${f:nope:1}\n");
    assert!(out.contains("p:1 [sysf] Profile: there is no plugin `sysf`; did you mean `sysfs`?"), "{out}");
    assert!(out.contains("p:4 [sysfs] Profile: the plugin sysfs has no option `/syz/a`"), "{out}");
    assert!(out.contains("p:5 [sysfs] Profile: `${nope}` has a variable that is not defined"), "{out}");
    assert!(out.contains("p:6 [sysfs] Profile: ") && out.contains("nope"), "{out}");
    assert!(!out.contains("->"), "nothing of it reaches the machine: {out}");
}

#[test]
fn scripts_of_a_unit_are_called_for_each_device() {
    let host = FakeHost::new(&[
        ("/sys/block/sda/removable", "0\n"),
        ("/sys/block/sda/queue/read_ahead_kb", "128\n"),
        (&format!("{DIR}/p/s.sh"), "#!/bin/sh\n"),
    ]);
    let text = "[disk]\nreadahead=256\nscript_pre=${i:PROFILE_DIR}/s.sh\n";
    let plan = plan(&host.file(&format!("{DIR}/p/tuned.conf"), text));
    assert_eq!(
        plan.lines(),
        format!(
            "run: {DIR}/p/s.sh apply sda (undo: {DIR}/p/s.sh unapply full_rollback sda)\n\
             /sys/block/sda/queue/read_ahead_kb: 128 -> 256\n"
        )
    );
}

#[test]
fn lists_of_devices() {
    for (list, device, expected) in [
        ("*", "sda", true),
        ("sd*", "vda", false),
        ("sd*, !sda", "sda", false),
        ("sd*, !sda", "sdb", true),
        ("!sda", "vda", true),
        ("!sda", "sda", false),
        ("", "sda", false),
        ("vda sd[ab]", "sdb", true),
    ] {
        assert_eq!(asks_for(list, device), expected, "{list} {device}");
    }
}

#[test]
fn properties_of_a_device_as_udev_has_them() {
    let host = FakeHost::new(&[
        ("/sys/devices/pci0/block/sda/uevent", "MAJOR=8\nMINOR=0\nDEVNAME=sda\nDEVTYPE=disk\n"),
        ("/run/udev/data/b8:0", "S:disk/by-id/x\nE:ID_BUS=ata\nE:ID_MODEL=Fast=1\n"),
    ])
    .link("/sys/block/sda", "/sys/devices/pci0/block/sda");
    let scene = Scene::new(&host, true);
    assert_eq!(
        udev_properties(&scene, "disk", "sda"),
        "DEVNAME=/dev/sda\nDEVPATH=/devices/pci0/block/sda\nDEVTYPE=disk\nID_BUS=ata\nID_MODEL=Fast=1\nMAJOR=8\n\
         MINOR=0\n"
    );
    assert_eq!(udev_properties(&scene, "sysctl", "sda"), "");
}

#[test]
fn a_likely_name_is_near() {
    let known = ["sysctl", "sysfs", "scheduler"];
    assert_eq!(nearest("sysclt", known.into_iter()), Some("sysctl"));
    assert_eq!(nearest("xen", known.into_iter()), None);
    assert_eq!(nearest(&"s".repeat(5_000), known.into_iter()), None);
}
