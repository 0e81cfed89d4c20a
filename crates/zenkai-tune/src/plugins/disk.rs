//! `disk`: schedulers, read-ahead and power saving of disks (Documentation/ABI/stable/sysfs-block).

use zenkai_host::{DiskParameter, Knob};

use super::{
    OptionSpec, Plugin, Wishes,
    shared::{switch, whole},
};
use crate::{Fault, Hold, Instance, OptionText, Scene, Want};

pub(super) static PLUGIN: Plugin = Plugin {
    name: "disk",
    summary: "Sets schedulers, read-ahead and power saving of disks",
    options: &[
        OptionSpec { name: "dynamic", help: "Whether apm and spindown follow the load", default: "1" },
        OptionSpec { name: "elevator", help: "I/O scheduler", default: "" },
        OptionSpec { name: "apm", help: "Advanced power management, 1 to 254, 255 for off", default: "" },
        OptionSpec { name: "spindown", help: "Standby timer in the ATA encoding, 0 to 255", default: "" },
        OptionSpec { name: "readahead", help: "kB, or `N s` for sectors; >N only raises it", default: "" },
        OptionSpec {
            name: "readahead_multiply",
            help: "Factor for the read-ahead from before the profile",
            default: "",
        },
        OptionSpec { name: "scheduler_quantum", help: "Requests served in a row (CFQ)", default: "" },
    ],
    devices: Some(devices),
    plan,
};

/// Whole disks that cannot be taken out, on the buses that disks sit on or on none at all.
fn devices(scene: &Scene) -> Vec<String> {
    scene.names("/sys/block").into_iter().filter(|name| is_tunable(scene, name)).collect()
}

fn is_tunable(scene: &Scene, name: &str) -> bool {
    // Never removable, and on no bus.
    if reads_from_memory(name) {
        return true;
    }
    let dir = format!("/sys/block/{name}");
    if scene.text(&format!("{dir}/removable")).as_deref() != Some("0") {
        return false;
    }
    if !scene.exists(&format!("{dir}/device")) {
        return true;
    }
    let bus = scene.host.resolve(&format!("{dir}/device/subsystem")).unwrap_or_default();
    ["scsi", "virtio", "xen", "nvme", "mmc"].contains(&bus.rsplit('/').next().unwrap_or_default())
}

/// Devices whose data lies in memory or in a file that has a read-ahead of its own.
fn reads_from_memory(disk: &str) -> bool {
    ["loop", "zram", "ram"].iter().any(|kind| {
        disk.strip_prefix(kind).is_some_and(|rest| rest.bytes().all(|byte| byte.is_ascii_digit()))
    })
}

fn plan(scene: &Scene, instance: &Instance, wishes: &mut Wishes) {
    for option in &instance.options {
        if option.name == "dynamic" {
            dynamic(instance, option, wishes);
            continue;
        }
        if instance.devices.is_empty() {
            wishes.cannot(option, "", Fault::Machine, "no disks");
        }
        for disk in &instance.devices {
            match option.name.as_str() {
                "elevator" => elevator(scene, option, disk, wishes),
                "readahead" | "readahead_multiply" if reads_from_memory(disk) => {
                    let why =
                        format!("{disk} has its data in memory or in a file: read-ahead does not help it");
                    wishes.want(option, disk, Want::Leave(why));
                }
                "readahead" => readahead(scene, option, disk, wishes),
                "readahead_multiply" => multiply(scene, option, disk, wishes),
                "scheduler_quantum" => quantum(scene, option, disk, wishes),
                "apm" => apm(option, disk, wishes),
                "spindown" => spindown(option, disk, wishes),
                _ => {}
            }
        }
    }
}

fn dynamic(instance: &Instance, option: &OptionText, wishes: &mut Wishes) {
    match switch(&option.value) {
        None => {
            let why = format!("`{}` is neither on nor off", option.value);
            wishes.cannot(option, "", Fault::Profile, why)
        }
        Some(true) if ["apm", "spindown"].iter().any(|name| instance.option(name).is_some()) => {
            wishes.hold(option, "", Hold::Dynamic)
        }
        Some(_) => wishes.want(option, "", Want::Leave("nothing here follows the load".into())),
    };
}

fn elevator(scene: &Scene, option: &OptionText, disk: &str, wishes: &mut Wishes) {
    let path = format!("/sys/block/{disk}/queue/scheduler");
    let asked = option.value.trim();
    let Some(shown) = scene.text(&path) else {
        wishes.cannot(option, disk, Fault::Machine, "the disk has no scheduler");
        return;
    };
    let known: Vec<&str> = shown.split_whitespace().map(|word| word.trim_matches(['[', ']'])).collect();
    if known.contains(&asked) {
        wishes.set(option, disk, Knob::Attribute(path), asked);
    } else {
        let why = format!("`{asked}` is none of its schedulers: {}", known.join(", "));
        wishes.cannot(option, disk, Fault::Machine, why);
    }
}

/// `N`, `N s` or `>N`: the limit of the sysfs file is an unsigned long of kB (block/blk-sysfs.c).
fn readahead(scene: &Scene, option: &OptionText, disk: &str, wishes: &mut Wishes) {
    let text = option.value.trim();
    let (sign, text) = match text.strip_prefix(['>', '<']) {
        Some(rest) => (&text[..1], rest.trim()),
        None => ("", text),
    };
    let mut words = text.split_whitespace();
    let kib = whole(words.next().unwrap_or_default(), 0, i64::from(i32::MAX)).map(|number| {
        let sectors = words.next().is_some_and(|unit| unit.starts_with('s'));
        if sectors { number / 2 } else { number }
    });
    match kib {
        Ok(kib) => {
            let value = format!("{sign}{kib}");
            let in_kib = OptionText { value, ..option.clone() };
            let wish = wishes.set_modified(scene, &in_kib, disk, file(disk));
            wish.asked.clone_from(&option.value);
        }
        Err(why) => {
            wishes.cannot(option, disk, Fault::Profile, why);
        }
    }
}

fn file(disk: &str) -> Knob {
    Knob::Attribute(format!("/sys/block/{disk}/queue/read_ahead_kb"))
}

/// The factor is for what was there before the profile in force, so that it counts once however often it is planned.
fn multiply(scene: &Scene, option: &OptionText, disk: &str, wishes: &mut Wishes) {
    let factor =
        option.value.trim().parse::<f64>().ok().filter(|factor| (0.0..=1_000_000.0).contains(factor));
    let Some(factor) = factor else {
        let why = format!("`{}` is no factor", option.value);
        wishes.cannot(option, disk, Fault::Profile, why);
        return;
    };
    let before = scene.before(&file(disk)).ok();
    let Some(before) = before.and_then(|value| value.text()?.parse::<u32>().ok()) else {
        wishes.cannot(option, disk, Fault::Machine, "the disk has no read-ahead");
        return;
    };
    let text = format!("{:.0}", (f64::from(before) * factor).floor());
    wishes.set(option, disk, file(disk), text);
}

fn quantum(scene: &Scene, option: &OptionText, disk: &str, wishes: &mut Wishes) {
    let path = format!("/sys/block/{disk}/queue/iosched/quantum");
    match whole(&option.value, 1, i64::from(i32::MAX)) {
        Err(why) => wishes.cannot(option, disk, Fault::Profile, why),
        Ok(_) if !scene.exists(&path) => {
            wishes.cannot(option, disk, Fault::Machine, "its scheduler has no quantum")
        }
        Ok(number) => wishes.set(option, disk, Knob::Attribute(path), number.to_string()),
    };
}

/// Only disks behind the SCSI layer take ATA commands.
fn takes_ata(disk: &str) -> bool {
    disk.starts_with("sd")
}

fn apm(option: &OptionText, disk: &str, wishes: &mut Wishes) {
    match whole(&option.value, 1, 255) {
        Err(why) => wishes.cannot(option, disk, Fault::Profile, why),
        Ok(_) if !takes_ata(disk) => wishes.cannot(option, disk, Fault::Machine, "it is no ATA disk"),
        Ok(level) => {
            let knob = Knob::Disk { device: disk.to_owned(), parameter: DiskParameter::Apm };
            wishes.set(option, disk, knob, level.to_string())
        }
    };
}

fn spindown(option: &OptionText, disk: &str, wishes: &mut Wishes) {
    match whole(&option.value, 0, 255) {
        Err(why) => wishes.cannot(option, disk, Fault::Profile, why),
        Ok(_) if !takes_ata(disk) => wishes.cannot(option, disk, Fault::Machine, "it is no ATA disk"),
        // The standby timer has no command that reads it (ACS-4, STANDBY).
        Ok(_) => {
            let why = "a disk does not tell its standby timer, so this could not be undone";
            wishes.cannot(option, disk, Fault::Machine, why)
        }
    };
}

#[cfg(test)]
mod tests {
    use zenkai_host::FakeHost;

    use crate::plugins::testing::Bench;

    fn bench() -> Bench {
        let host = FakeHost::new(&[
            ("/sys/block/loop0/removable", "0\n"),
            ("/sys/block/loop0/queue/read_ahead_kb", "128\n"),
            ("/sys/block/sda/removable", "0\n"),
            ("/sys/block/sda/device/type", "0\n"),
            ("/sys/block/sda/queue/read_ahead_kb", "128\n"),
            ("/sys/block/sda/queue/scheduler", "none [mq-deadline] bfq\n"),
            ("/sys/block/sdb/removable", "1\n"),
            ("/sys/block/nbd0/removable", "0\n"),
            ("/sys/block/nbd0/device/x", "0\n"),
            ("/sys/bus/scsi/uevent", "\n"),
        ])
        .link("/sys/block/sda/device/subsystem", "/sys/bus/scsi");
        Bench::on("disk", host)
    }

    #[test]
    fn which_disks_and_which_way() {
        let lines = |option: &str, value: &str| bench().plan(&[(option, value)]).lines();
        let memory = "leave: loop0 has its data in memory or in a file: read-ahead does not help it\n";
        let file = "/sys/block/sda/queue/read_ahead_kb";
        assert_eq!(lines("readahead", "4096"), format!("{memory}{file}: 128 -> 4096\n"));
        assert_eq!(lines("readahead", "256 s"), format!("{memory}{file}: 128\n"));
        assert_eq!(lines("readahead", ">64"), format!("{memory}leave: {file} is 128, not below 64\n"));
        assert_eq!(lines("readahead_multiply", "1.5"), format!("{memory}{file}: 128 -> 192\n"));
        assert_eq!(
            lines("elevator", "bfq"),
            "cannot: the disk has no scheduler\n/sys/block/sda/queue/scheduler: mq-deadline -> bfq\n"
        );
        assert!(lines("elevator", "cfq").contains("`cfq` is none of its schedulers: none, mq-deadline, bfq"));
        assert!(lines("spindown", "6").contains("could not be undone"));
    }

    #[test]
    fn nonsense() {
        let disks = ["sda".to_owned()];
        let options = [
            ("readahead", "x"),
            ("readahead", ">"),
            ("readahead_multiply", "nan"),
            ("scheduler_quantum", "0"),
            ("apm", "256"),
            ("spindown", "-1"),
            ("dynamic", "x"),
        ];
        let plan = bench().plan_for(&disks, &options);
        assert_eq!(plan.mistakes().count(), options.len(), "{}", plan.lines());
        assert_eq!(bench().plan_for(&[], &[("apm", "1")]).lines(), "cannot: no disks\n");
    }
}
