//! `sysfs`: any attribute below `/sys`, by its path; the path may be a glob.

use zenkai_host::Knob;

use super::{
    OptionSpec, Plugin, Wishes,
    shared::{glob_paths, unquoted},
};
use crate::{Fault, Instance, Scene};

pub(super) static PLUGIN: Plugin = Plugin {
    name: "sysfs",
    summary: "Sets attributes below /sys",
    options: &[OptionSpec { name: "/sys/*", help: "The value for every file the path matches", default: "" }],
    devices: None,
    plan,
};

fn plan(scene: &Scene, instance: &Instance, wishes: &mut Wishes) {
    for option in &instance.options {
        let option = &unquoted(option);
        let paths = glob_paths(scene.host, &option.name);
        if paths.is_empty() {
            wishes.cannot(option, "", Fault::Machine, format!("no file matches {}", option.name));
        }
        for path in paths {
            wishes.set(option, "", Knob::Attribute(path), option.value.as_str());
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::plugins::testing::Bench;

    #[test]
    fn every_match_is_set() {
        let bench =
            Bench::new("sysfs", &[("/sys/block/sda/queue/x", "1\n"), ("/sys/block/sdb/queue/x", "2\n")]);
        let plan = bench.plan(&[("/sys/block/sd*/queue/x", "2")]);
        assert_eq!(plan.lines(), "/sys/block/sda/queue/x: 1 -> 2\n/sys/block/sdb/queue/x: 2\n");
        let absent = bench.plan(&[("/sys/none", "2")]);
        assert_eq!(absent.lines(), "cannot: no file matches /sys/none\n");
    }
}
