//! `selinux`: the size of the access vector cache (security/selinux/avc.c).

use zenkai_host::Knob;

use super::{OptionSpec, Plugin, Wishes, shared::whole};
use crate::{Fault, Instance, Scene};

pub(super) static PLUGIN: Plugin = Plugin {
    name: "selinux",
    summary: "Sets the size of SELinux's decision cache",
    options: &[OptionSpec {
        name: "avc_cache_threshold",
        help: "Decisions kept before old ones are dropped (512 at boot)",
        default: "",
    }],
    devices: None,
    plan,
};

fn plan(scene: &Scene, instance: &Instance, wishes: &mut Wishes) {
    let Some(option) = instance.option("avc_cache_threshold") else { return };
    let text = option.value.trim();
    if let Err(why) = whole(text.trim_start_matches(['>', '<']), 0, i32::MAX.into()) {
        wishes.cannot(option, "", Fault::Profile, why);
        return;
    }
    let path = "/sys/fs/selinux/avc/cache_threshold";
    if !scene.exists(path) {
        wishes.cannot(option, "", Fault::Machine, "SELinux is not in use");
        return;
    }
    wishes.set_modified(scene, option, "", Knob::Attribute(path.into()));
}

#[cfg(test)]
mod tests {
    use crate::plugins::testing::Bench;

    #[test]
    fn threshold() {
        let bench = Bench::new("selinux", &[("/sys/fs/selinux/avc/cache_threshold", "512\n")]);
        let lines = |value: &str| bench.plan(&[("avc_cache_threshold", value)]).lines();
        assert_eq!(lines("8192"), "/sys/fs/selinux/avc/cache_threshold: 512 -> 8192\n");
        assert_eq!(lines("512"), "/sys/fs/selinux/avc/cache_threshold: 512\n");
        assert!(lines(">256").starts_with("leave: "));
        assert_eq!(bench.plan(&[("avc_cache_threshold", "big")]).mistakes().count(), 1);
        let absent = Bench::new("selinux", &[]).plan(&[("avc_cache_threshold", "1")]);
        assert_eq!(absent.lines(), "cannot: SELinux is not in use\n");
    }
}
