//! `sysctl`: kernel parameters by their dotted names.

use std::collections::HashMap;

use zenkai_facts::{Reader, sysctl_files};
use zenkai_host::{Knob, value};

use super::{OptionSpec, Plugin, Wishes, shared::unquoted};
use crate::{Fault, Instance, OptionText, Scene, Want, same};

pub(super) static PLUGIN: Plugin = Plugin {
    name: "sysctl",
    summary: "Sets kernel parameters",
    options: &[OptionSpec {
        name: "*",
        help: "The value of this kernel parameter; >N only raises it, <N only lowers it",
        default: "",
    }],
    devices: None,
    plan,
};

/// Names that the kernel keeps for old programs; both have a successor in milliseconds (net/core/neighbour.c).
const DEPRECATED: [&str; 2] = ["base_reachable_time", "retrans_time"];

/// What the administrator's files say about one parameter.
struct Kept {
    value: String,
    at: String,
}

fn plan(scene: &Scene, instance: &Instance, wishes: &mut Wishes) {
    let kept = if scene.reapply_sysctl && !instance.options.is_empty() {
        administrators_values(scene)
    } else {
        HashMap::new()
    };
    for option in &instance.options {
        let option = &unquoted(option);
        let knob = Knob::Sysctl(option.name.clone());
        if let Some(why) = refusal(option, &knob) {
            wishes.cannot(option, "", Fault::Profile, why);
            continue;
        }
        let now = value(scene.host, &knob).ok();
        if now.as_ref().and_then(|value| value.text()).is_some_and(|text| text.contains('\n')) {
            let why = format!("{} has several lines, which cannot be put back in one write", option.name);
            wishes.cannot(option, "", Fault::Profile, why);
            continue;
        }
        match knob.path().and_then(|path| kept.get(&path)) {
            Some(kept) if now.as_ref().is_some_and(|now| same(now, &kept.value.as_str().into())) => {
                let why = format!("{} sets {} to {}", kept.at, option.name, kept.value);
                wishes.want(option, "", Want::Leave(why));
            }
            // The files are what the administrator wants after every boot: that value, and not the profile's.
            Some(kept) => {
                wishes.set(option, "", knob, kept.value.as_str());
            }
            None => {
                wishes.set_modified(scene, option, "", knob);
            }
        }
    }
}

fn refusal(option: &OptionText, knob: &Knob) -> Option<String> {
    let Some(path) = knob.path() else {
        return Some(format!("`{}` is no name of a kernel parameter", option.name));
    };
    let last = path.rsplit('/').next().unwrap_or_default();
    if DEPRECATED.contains(&last) {
        return Some(format!("{} is deprecated; set {last}_ms", option.name));
    }
    option.value.trim().contains('\n').then(|| "the value has several lines".to_owned())
}

/// The values in `/run/sysctl.d`, `/etc/sysctl.d` and `/etc/sysctl.conf` by path below `/proc/sys`; the last of these
/// counts, and of several files the one applied last.
fn administrators_values(scene: &Scene) -> HashMap<String, Kept> {
    const LAST: &str = "/etc/sysctl.conf";
    let mut assignments = sysctl_files::assignments(&Reader::new(scene.host), |file| {
        file == LAST || file.starts_with("/etc/sysctl.d/") || file.starts_with("/run/sysctl.d/")
    });
    assignments.sort_by_key(|assignment| assignment.at.file == LAST);
    let known = assignments.into_iter().filter_map(|assignment| {
        let path = Knob::Sysctl(assignment.key).path()?;
        Some((path, Kept { value: assignment.value, at: assignment.at.to_string() }))
    });
    known.collect()
}

#[cfg(test)]
mod tests {
    use crate::plugins::testing::Bench;

    #[test]
    fn values_and_comparisons() {
        let bench = Bench::new(
            "sysctl",
            &[
                ("/proc/sys/vm/swappiness", "60\n"),
                ("/proc/sys/net/ipv4/tcp_rmem", "4096\t131072\t6291456\n"),
                ("/proc/sys/net/ipv4/conf/eth0.1/forwarding", "0\n"),
            ],
        );
        let plan = bench.plan(&[
            ("vm.swappiness", ">10"),
            ("net.ipv4.tcp_rmem", "4096 131072 6291456"),
            ("net.ipv4.conf.eth0/1.forwarding", "1"),
            ("kernel.none", "1"),
        ]);
        assert_eq!(
            plan.lines(),
            "leave: vm.swappiness is 60, not below 10\n\
             net.ipv4.tcp_rmem: 4096\t131072\t6291456\n\
             net.ipv4.conf.eth0/1.forwarding: 0 -> 1\n\
             cannot: kernel.none does not exist here\n"
        );
    }

    #[test]
    fn quotes_around_a_value_are_tuned_s() {
        let bench = Bench::new("sysctl", &[("/proc/sys/kernel/printk", "7\t4\t1\t7\n")]);
        let plan = bench.plan(&[("kernel.printk", "\"4 4 1 7\"")]);
        assert_eq!(plan.lines(), "kernel.printk: 7\t4\t1\t7 -> 4 4 1 7\n");
    }

    #[test]
    fn what_cannot_be_asked() {
        let bench = Bench::new("sysctl", &[("/proc/sys/a/lines", "1\n2\n"), ("/etc/x", "1\n")]);
        let plan = bench.plan(&[
            ("net.ipv4.neigh.default.retrans_time", "1"),
            ("kernel.//.//.etc.x", "2"),
            ("a.lines", "1"),
            ("vm.swappiness", "1\n2"),
            ("vm.swappiness", ">x"),
        ]);
        assert_eq!(plan.mistakes().count(), 5, "{}", plan.lines());
    }

    #[test]
    fn the_administrators_files_win() {
        let bench = Bench::new(
            "sysctl",
            &[
                ("/proc/sys/vm/swappiness", "60\n"),
                ("/proc/sys/vm/dirty_ratio", "20\n"),
                ("/proc/sys/vm/laptop_mode", "0\n"),
                ("/etc/sysctl.d/99-x.conf", "vm.swappiness=60\nvm.dirty_ratio=15\n"),
                ("/etc/sysctl.conf", "vm.dirty_ratio=30\n"),
                ("/usr/lib/sysctl.d/50-y.conf", "vm.laptop_mode=0\n"),
            ],
        );
        let plan = bench.plan(&[("vm.swappiness", "10"), ("vm.dirty_ratio", "40"), ("vm.laptop_mode", "5")]);
        assert_eq!(
            plan.lines(),
            "leave: /etc/sysctl.d/99-x.conf:1 sets vm.swappiness to 60\n\
             vm.dirty_ratio: 20 -> 30\n\
             vm.laptop_mode: 0 -> 5\n"
        );
    }
}
