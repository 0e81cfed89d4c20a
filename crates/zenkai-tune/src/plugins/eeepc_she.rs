//! `eeepc_she`: the front side bus of Eee PCs (Documentation/ABI/testing/sysfs-platform-eeepc-laptop).

use super::{OptionSpec, Plugin, Wishes, shared::whole};
use crate::{Fault, Hold, Instance, Scene};

pub(super) static PLUGIN: Plugin = Plugin {
    name: "eeepc_she",
    summary: "Slows the bus of an Eee PC while it is idle",
    options: &[
        OptionSpec { name: "load_threshold_normal", help: "Load from which the bus is fast", default: "0.6" },
        OptionSpec { name: "load_threshold_powersave", help: "Load up to which it is slow", default: "0.4" },
        OptionSpec { name: "she_powersave", help: "Bus setting when slow", default: "2" },
        OptionSpec { name: "she_normal", help: "Bus setting when fast", default: "1" },
    ],
    devices: None,
    plan,
};

const CONTROLS: [&str; 2] = ["/sys/devices/platform/eeepc/cpufv", "/sys/devices/platform/eeepc-wmi/cpufv"];

fn plan(scene: &Scene, instance: &Instance, wishes: &mut Wishes) {
    let here = CONTROLS.iter().any(|path| scene.exists(path));
    for option in &instance.options {
        let fraction = |text: &str| {
            let number = text.trim().parse::<f64>().ok().filter(|number| (0.0..=1.0).contains(number));
            number.map(|_| ()).ok_or_else(|| format!("`{text}` is not within 0 to 1"))
        };
        let checked = if option.name.starts_with("load_threshold") {
            fraction(&option.value)
        } else {
            whole(&option.value, 0, 255).map(|_| ())
        };
        match checked {
            Err(why) => wishes.cannot(option, "", Fault::Profile, why),
            Ok(()) if !here => wishes.cannot(option, "", Fault::Machine, "this is no Eee PC"),
            Ok(()) => wishes.hold(option, "", Hold::Dynamic),
        };
    }
}

#[cfg(test)]
mod tests {
    use crate::plugins::testing::Bench;

    #[test]
    fn only_while_something_watches_the_load() {
        let here = Bench::new("eeepc_she", &[("/sys/devices/platform/eeepc/cpufv", "0x300\n")]);
        assert_eq!(here.plan(&[("she_normal", "1")]).lines(), "hold: Dynamic\n");
        assert_eq!(here.plan(&[("she_normal", "x"), ("load_threshold_normal", "2")]).mistakes().count(), 2);
        let none = Bench::new("eeepc_she", &[]).plan(&[("she_powersave", "2")]);
        assert_eq!(none.lines(), "cannot: this is no Eee PC\n");
    }
}
