//! `mounts`: write barriers of file systems (ext4(5), `barrier=`).

use zenkai_host::{Knob, unescape_mount};

use super::{OptionSpec, Plugin, Wishes, shared::switch};
use crate::{Fault, Instance, Scene, Want};

pub(super) static PLUGIN: Plugin = Plugin {
    name: "mounts",
    summary: "Turns write barriers off",
    options: &[OptionSpec {
        name: "disable_barriers",
        help: "1 where no disk has a volatile write cache, force for everywhere",
        default: "",
    }],
    devices: Some(|scene| mounts(scene).into_iter().map(|mount| mount.point).collect()),
    plan,
};

/// A file system on a disk.
struct Mount {
    point: String,
    kind: String,
    /// `major:minor`.
    device: String,
}

/// From `/proc/self/mountinfo` (proc_pid_mountinfo(5)); the last mount on a point is the one that shows.
fn mounts(scene: &Scene) -> Vec<Mount> {
    let mut list: Vec<Mount> = Vec::new();
    for line in scene.text("/proc/self/mountinfo").unwrap_or_default().lines() {
        let Some((left, right)) = line.split_once(" - ") else { continue };
        let mut left = left.split(' ').skip(2);
        let (Some(device), Some(_), Some(point)) = (left.next(), left.next(), left.next()) else { continue };
        let mut right = right.split(' ');
        let (Some(kind), Some(source)) = (right.next(), right.next()) else { continue };
        // A name that is no UTF-8 is none that a profile or a knob could have.
        let Ok(point) = String::from_utf8(unescape_mount(point)) else { continue };
        list.retain(|mount| mount.point != point);
        if source.starts_with('/') {
            let (kind, device) = (kind.to_owned(), device.to_owned());
            list.push(Mount { point, kind, device });
        }
    }
    list
}

fn plan(scene: &Scene, instance: &Instance, wishes: &mut Wishes) {
    let Some(option) = instance.option("disable_barriers") else { return };
    let force = option.value.trim().eq_ignore_ascii_case("force");
    match switch(&option.value) {
        Some(false) => {
            wishes.want(option, "", Want::Leave("barriers stay as they are".into()));
            return;
        }
        None if !force => {
            let why = format!("`{}` is neither a switch nor `force`", option.value);
            wishes.cannot(option, "", Fault::Profile, why);
            return;
        }
        _ => {}
    }
    let mounts = mounts(scene);
    for point in &instance.devices {
        let Some(mount) = mounts.iter().find(|mount| mount.point == *point) else { continue };
        if !mount.kind.starts_with("ext") {
            let why = format!("{} has no barrier that can be turned off", mount.kind);
            wishes.cannot(option, point, Fault::Machine, why);
        } else if !force && !is_write_through(scene, &mount.device) {
            let why = "its disk may have a volatile write cache, and a power cut would cost data";
            wishes.want(option, point, Want::Leave(why.into()));
        } else {
            let wish = wishes.set(option, point, Knob::Barriers(point.clone()), "off");
            wish.risk = Some("a power cut may destroy the file system".into());
        }
    }
}

/// Whether the disk says that written data is safe (`queue/write_cache`). A partition's queue is its disk's; where
/// nothing is said, as by a stack of devices, the answer is no: tuned takes it for safe, and it need not be.
fn is_write_through(scene: &Scene, device: &str) -> bool {
    let cache = ["queue", "../queue"]
        .iter()
        .find_map(|queue| scene.text(&format!("/sys/dev/block/{device}/{queue}/write_cache")));
    cache.as_deref() == Some("write through")
}

#[cfg(test)]
mod tests {
    use zenkai_host::{FakeHost, Knob, Query, Reply};

    use crate::plugins::testing::Bench;

    const MOUNTS: &str = "1 0 8:1 / / rw - ext4 /dev/sda1 rw\n2 1 8:16 / /b rw - ext4 /dev/sdb rw\n\
                          3 1 8:32 / /x rw - xfs /dev/sdc rw\n4 1 0:5 / /proc rw - proc proc rw\nbroken\n\
                          5 1 8:48 / /a\\040b rw - ext4 /dev/sdd rw\n";

    #[test]
    fn only_where_it_is_safe_or_forced() {
        let bench = Bench::new(
            "mounts",
            &[
                ("/proc/self/mountinfo", MOUNTS),
                ("/sys/dev/block/8:1/../queue/write_cache", "write back\n"),
                ("/sys/dev/block/8:16/queue/write_cache", "write through\n"),
            ],
        );
        let plan = bench.plan(&[("disable_barriers", "1")]);
        assert_eq!(
            plan.lines(),
            "leave: its disk may have a volatile write cache, and a power cut would cost data\n\
             cannot: barriers of /b does not exist here\n\
             cannot: xfs has no barrier that can be turned off\n\
             leave: its disk may have a volatile write cache, and a power cut would cost data\n"
        );
        assert!(bench.plan(&[("disable_barriers", "force")]).lines().starts_with("cannot: barriers of /"));
        assert_eq!(bench.plan(&[("disable_barriers", "x")]).mistakes().count(), 1);
        assert!(bench.plan(&[("disable_barriers", "0")]).lines().starts_with("leave: "));
    }

    #[test]
    fn on_and_off_already() {
        let lines = |point: &str, now: &str| {
            let knob = Query::Knob(Knob::Barriers(point.into()));
            let host =
                FakeHost::new(&[("/proc/self/mountinfo", MOUNTS)]).reply(&knob, Reply::Text(now.into()));
            Bench::on("mounts", host).plan_for(&[point.to_owned()], &[("disable_barriers", "force")]).lines()
        };
        assert_eq!(lines("/b", "on"), "barriers of /b: on -> off\n");
        assert_eq!(lines("/b", "off"), "barriers of /b: off\n");
        assert_eq!(lines("/a b", "on"), "barriers of /a b: on -> off\n");
    }
}
