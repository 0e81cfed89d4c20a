//! `audio`: power saving of sound codecs (Documentation/sound/designs/powersave.rst).

use zenkai_host::Knob;

use super::{
    OptionSpec, Plugin, Wishes,
    shared::{switch, whole},
};
use crate::{Fault, Instance, OptionText, Scene};

pub(super) static PLUGIN: Plugin = Plugin {
    name: "audio",
    summary: "Lets sound codecs sleep",
    options: &[
        OptionSpec { name: "timeout", help: "Seconds until an idle codec sleeps; 0 for never", default: "0" },
        OptionSpec { name: "reset_controller", help: "Whether the controller sleeps too", default: "1" },
    ],
    devices: Some(devices),
    plan,
};

fn devices(scene: &Scene) -> Vec<String> {
    let known = ["snd_ac97_codec", "snd_hda_intel"];
    known.into_iter().filter(|name| scene.exists(&format!("/sys/module/{name}"))).map(str::to_owned).collect()
}

/// Both options act when either is written, and also when none is: tuned sets what is not written to its default.
fn plan(_: &Scene, instance: &Instance, wishes: &mut Wishes) {
    for spec in PLUGIN.options {
        let default = || OptionText {
            name: spec.name.to_owned(),
            value: spec.default.to_owned(),
            origin: instance.origin.clone(),
        };
        let option = &instance.option(spec.name).cloned().unwrap_or_else(default);
        if instance.devices.is_empty() {
            wishes.cannot(option, "", Fault::Machine, "no sound driver with power saving is loaded");
        }
        for device in &instance.devices {
            let (file, value) = match option.name.as_str() {
                "timeout" => {
                    ("power_save", whole(&option.value, 0, i32::MAX.into()).map(|number| number.to_string()))
                }
                "reset_controller" => {
                    let refusal = || format!("`{}` is neither on nor off", option.value);
                    let value = switch(&option.value).map(|on| if on { "Y" } else { "N" }.to_owned());
                    ("power_save_controller", value.ok_or_else(refusal))
                }
                _ => continue,
            };
            let knob = Knob::Attribute(format!("/sys/module/{device}/parameters/{file}"));
            match value {
                Ok(value) => wishes.set(option, device, knob, value),
                Err(why) => wishes.cannot(option, device, Fault::Profile, why),
            };
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::plugins::testing::Bench;

    #[test]
    fn codecs() {
        let dir = "/sys/module/snd_hda_intel/parameters";
        let bench = Bench::new(
            "audio",
            &[(&format!("{dir}/power_save"), "1\n"), (&format!("{dir}/power_save_controller"), "Y\n")],
        );
        assert_eq!(
            bench.plan(&[("timeout", "10"), ("reset_controller", "True")]).lines(),
            format!("{dir}/power_save: 1 -> 10\n{dir}/power_save_controller: Y\n")
        );
        // What is not written is set to its default.
        let slept = format!("{dir}/power_save: 1 -> 0\n{dir}/power_save_controller: Y\n");
        assert_eq!(bench.plan(&[]).lines(), slept);
        assert_eq!(
            bench.plan(&[("reset_controller", "0")]).lines(),
            format!("{dir}/power_save: 1 -> 0\n{dir}/power_save_controller: Y -> N\n")
        );
        assert_eq!(bench.plan(&[("timeout", "-1"), ("reset_controller", "x")]).mistakes().count(), 2);
        assert!(Bench::new("audio", &[]).plan(&[("timeout", "1")]).lines().starts_with("cannot: no sound"));
    }
}
