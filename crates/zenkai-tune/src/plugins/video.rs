//! `video`: power saving of Radeon cards and of panels (Documentation/gpu/amdgpu/thermal.rst, module-parameters).

use zenkai_host::Knob;

use super::{OptionSpec, Plugin, Wishes, shared::whole};
use crate::{Fault, Instance, OptionText, Scene};

pub(super) static PLUGIN: Plugin = Plugin {
    name: "video",
    summary: "Sets power saving of graphics cards and panels",
    options: &[
        OptionSpec {
            name: "radeon_powersave",
            help: "default, auto, low, mid, high, dynpm, dpm-battery, dpm-balanced or dpm-performance; several, \
                   best first",
            default: "",
        },
        OptionSpec { name: "panel_power_savings", help: "0 (off) to 4 (strongest)", default: "" },
    ],
    devices: Some(|scene| {
        scene.names("/sys/class/drm").into_iter().filter(|name| name.starts_with("card")).collect()
    }),
    plan,
};

fn plan(scene: &Scene, instance: &Instance, wishes: &mut Wishes) {
    for option in &instance.options {
        let mut found = false;
        for device in &instance.devices {
            found |= match option.name.as_str() {
                // A card's connectors (`card0-DP-1`) are devices too, but the clock is the card's.
                "radeon_powersave" if !device.contains('-') => radeon(scene, option, device, wishes),
                "panel_power_savings" => panel(scene, option, device, wishes),
                _ => false,
            };
        }
        if !found {
            wishes.cannot(option, "", Fault::Machine, format!("no graphics card has {}", option.name));
        }
    }
}

/// drivers/gpu/drm/radeon/radeon_pm.c: the method first, then what that method has.
fn radeon(scene: &Scene, option: &OptionText, device: &str, wishes: &mut Wishes) -> bool {
    let dir = format!("/sys/class/drm/{device}/device");
    if !scene.exists(&format!("{dir}/power_method")) {
        return false;
    }
    let words = option.value.split([' ', '\t', ',', ';', ':']).filter(|word| !word.is_empty());
    for word in words {
        let (method, second) = match word {
            "default" | "auto" | "low" | "mid" | "high" => ("profile", Some(("power_profile", word))),
            "dynpm" => ("dynpm", None),
            "dpm-battery" => ("dpm", Some(("power_dpm_state", "battery"))),
            "dpm-balanced" => ("dpm", Some(("power_dpm_state", "balanced"))),
            "dpm-performance" => ("dpm", Some(("power_dpm_state", "performance"))),
            _ => {
                wishes.cannot(option, device, Fault::Profile, format!("`{word}` is no radeon_powersave"));
                return true;
            }
        };
        if second.is_some_and(|(file, _)| !scene.exists(&format!("{dir}/{file}"))) {
            continue;
        }
        wishes.set(option, device, Knob::Attribute(format!("{dir}/power_method")), method);
        if let Some((file, value)) = second {
            wishes.set(option, device, Knob::Attribute(format!("{dir}/{file}")), value);
        }
        return true;
    }
    wishes.cannot(option, device, Fault::Machine, "the card has none of these");
    true
}

fn panel(scene: &Scene, option: &OptionText, device: &str, wishes: &mut Wishes) -> bool {
    let path = format!("/sys/class/drm/{device}/amdgpu/panel_power_savings");
    if !scene.exists(&path) {
        return false;
    }
    // drivers/gpu/drm/amd/display/amdgpu_dm, panel_power_savings_store().
    match whole(&option.value, 0, 4) {
        Ok(level) => wishes.set(option, device, Knob::Attribute(path), level.to_string()),
        Err(why) => wishes.cannot(option, device, Fault::Profile, why),
    };
    true
}

#[cfg(test)]
mod tests {
    use crate::plugins::testing::Bench;

    #[test]
    fn cards_and_panels() {
        let bench = Bench::new(
            "video",
            &[
                ("/sys/class/drm/card0/device/power_method", "profile\n"),
                ("/sys/class/drm/card0/device/power_profile", "default\n"),
                ("/sys/class/drm/card0-eDP-1/amdgpu/panel_power_savings", "0\n"),
            ],
        );
        assert_eq!(
            bench.plan(&[("radeon_powersave", "dpm-battery, auto"), ("panel_power_savings", "3")]).lines(),
            "/sys/class/drm/card0/device/power_method: profile\n\
             /sys/class/drm/card0/device/power_profile: default -> auto\n\
             /sys/class/drm/card0-eDP-1/amdgpu/panel_power_savings: 0 -> 3\n"
        );
        let wrong = bench.plan(&[("radeon_powersave", "fast"), ("panel_power_savings", "5")]);
        assert_eq!(wrong.mistakes().count(), 2);
        let none = Bench::new("video", &[]).plan(&[("panel_power_savings", "1")]);
        assert_eq!(none.lines(), "cannot: no graphics card has panel_power_savings\n");
    }
}
