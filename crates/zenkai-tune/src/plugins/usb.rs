//! `usb`: devices that sleep when idle (Documentation/driver-api/usb/power-management.rst).

use zenkai_host::Knob;

use super::{
    OptionSpec, Plugin, Wishes,
    shared::{switch, whole},
};
use crate::{Fault, Instance, Scene};

pub(super) static PLUGIN: Plugin = Plugin {
    name: "usb",
    summary: "Sets when idle USB devices sleep",
    options: &[OptionSpec {
        name: "autosuspend",
        help: "Seconds until an idle device sleeps, -1 for never; yes and no mean 1 and 0",
        default: "",
    }],
    devices: Some(devices),
    plan,
};

/// Interfaces (`1-1:1.0`) have no timer of their own.
fn devices(scene: &Scene) -> Vec<String> {
    scene.names("/sys/bus/usb/devices").into_iter().filter(|name| !name.contains(':')).collect()
}

fn plan(_: &Scene, instance: &Instance, wishes: &mut Wishes) {
    let Some(option) = instance.option("autosuspend") else { return };
    let seconds = match switch(&option.value) {
        Some(on) => Ok(i64::from(on)),
        // drivers/usb/core/sysfs.c, autosuspend_store().
        None => whole(&option.value, -1, i64::from(i32::MAX / 1000)),
    };
    let seconds = match seconds {
        Ok(seconds) => seconds.to_string(),
        Err(why) => {
            wishes.cannot(option, "", Fault::Profile, why);
            return;
        }
    };
    if instance.devices.is_empty() {
        wishes.cannot(option, "", Fault::Machine, "no USB devices");
    }
    for device in &instance.devices {
        let path = format!("/sys/bus/usb/devices/{device}/power/autosuspend");
        wishes.set(option, device, Knob::Attribute(path), seconds.as_str());
    }
}

#[cfg(test)]
mod tests {
    use crate::plugins::testing::Bench;

    #[test]
    fn timers() {
        let bench = Bench::new(
            "usb",
            &[
                ("/sys/bus/usb/devices/usb1/power/autosuspend", "0\n"),
                ("/sys/bus/usb/devices/1-1/power/autosuspend", "2\n"),
                ("/sys/bus/usb/devices/1-1:1.0/power/control", "auto\n"),
            ],
        );
        assert_eq!(
            bench.plan(&[("autosuspend", "False")]).lines(),
            "/sys/bus/usb/devices/1-1/power/autosuspend: 2 -> 0\n\
             /sys/bus/usb/devices/usb1/power/autosuspend: 0\n"
        );
        assert_eq!(bench.plan(&[("autosuspend", "soon")]).mistakes().count(), 1);
        assert_eq!(Bench::new("usb", &[]).plan(&[("autosuspend", "1")]).lines(), "cannot: no USB devices\n");
    }
}
