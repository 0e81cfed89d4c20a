//! Groups of the cpuset hierarchy, version 1 (Documentation/admin-guide/cgroup-v1/cpusets.rst).

use zenkai_facts::CpuSet;
use zenkai_host::Knob;

use super::flag;
use crate::{
    Fault, Instance, Scene,
    plugins::{Wishes, cpus::parse_cpus},
};

/// Where the hierarchy is usually mounted.
pub(super) const MOUNT: &str = "/sys/fs/cgroup/cpuset";

pub(super) fn plan(scene: &Scene, instance: &Instance, wishes: &mut Wishes) {
    let mount = instance.option("cgroup_mount_point").map_or(MOUNT, |option| option.value.trim());
    for option in &instance.options {
        let Some(name) = option.name.strip_prefix("cgroup.") else { continue };
        let hostile = |part: &str| part.is_empty() || part == "." || part == "..";
        if !mount.starts_with('/') || mount.split('/').skip(1).any(hostile) || name.split('/').any(hostile) {
            wishes.cannot(option, "", Fault::Profile, format!("{mount}/{name} is no path of a group"));
            continue;
        }
        let cpus = match parse_cpus(&option.value) {
            Ok(cpus) => cpus,
            Err(why) => {
                wishes.cannot(option, "", Fault::Profile, why);
                continue;
            }
        };
        let Some(mems) = scene.text(&format!("{mount}/cpuset.mems")) else {
            let why = format!("no cpuset hierarchy of version 1 is mounted at {mount}");
            wishes.cannot(option, "", Fault::Machine, why);
            continue;
        };
        let dir = format!("{mount}/{name}");
        let exists = scene.exists(&format!("{dir}/cpuset.cpus"));
        if !exists && !flag(instance, "cgroup_groups_init", true) {
            wishes.cannot(option, "", Fault::Machine, format!("{dir} does not exist"));
            continue;
        }
        wishes.set(option, "", Knob::Directory(dir.clone()), "present");
        if exists {
            wishes.set(option, "", Knob::Attribute(format!("{dir}/cpuset.mems")), mems);
            wishes.set(option, "", Knob::Attribute(format!("{dir}/cpuset.cpus")), cpus.to_string());
        } else {
            let why =
                format!("{dir} must be made first; its CPUs can be set when the profile is applied again");
            wishes.cannot(option, "", Fault::Machine, why);
        }
    }
}

/// The CPUs of a group that this profile describes.
pub(super) fn cpus_of(instance: &Instance, group: &str) -> Option<CpuSet> {
    parse_cpus(&instance.option(&format!("cgroup.{group}"))?.value).ok().filter(|cpus| !cpus.is_empty())
}
