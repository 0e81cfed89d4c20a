//! `acpi`: the firmware's platform profile (Documentation/userspace-api/sysfs-platform_profile.rst).

use zenkai_host::Knob;

use super::{OptionSpec, Plugin, Wishes, shared::alternatives};
use crate::{Fault, Instance, Scene, Want};

pub(super) static PLUGIN: Plugin = Plugin {
    name: "acpi",
    summary: "Chooses the firmware's platform profile",
    options: &[OptionSpec {
        name: "platform_profile",
        help: "A platform profile, or several as a|b, best first",
        default: "",
    }],
    devices: None,
    plan,
};

const PROFILE: &str = "/sys/firmware/acpi/platform_profile";

fn plan(scene: &Scene, instance: &Instance, wishes: &mut Wishes) {
    let Some(option) = instance.option("platform_profile") else { return };
    let asked = alternatives(&option.value);
    if asked.is_empty() {
        wishes.cannot(option, "", Fault::Profile, "no platform profile is named");
        return;
    }
    let Some(offered) = scene.text("/sys/firmware/acpi/platform_profile_choices") else {
        wishes.cannot(option, "", Fault::Machine, "the firmware has no platform profiles");
        return;
    };
    let choices: Vec<String> =
        asked.into_iter().filter(|name| offered.split_whitespace().any(|known| known == name)).collect();
    if choices.is_empty() {
        let why = format!("the firmware has only the platform profiles {offered}");
        wishes.cannot(option, "", Fault::Machine, why);
        return;
    }
    wishes.want(option, "", Want::SetFirst { knob: Knob::Attribute(PROFILE.into()), choices });
}

#[cfg(test)]
mod tests {
    use crate::plugins::testing::Bench;

    #[test]
    fn the_first_that_the_firmware_has() {
        let bench = Bench::new(
            "acpi",
            &[
                ("/sys/firmware/acpi/platform_profile", "balanced\n"),
                ("/sys/firmware/acpi/platform_profile_choices", "low-power balanced performance\n"),
            ],
        );
        let lines = |value: &str| bench.plan(&[("platform_profile", value)]).lines();
        assert_eq!(
            lines("turbo|performance"),
            "/sys/firmware/acpi/platform_profile: balanced -> performance\n"
        );
        assert_eq!(lines("balanced"), "/sys/firmware/acpi/platform_profile: balanced\n");
        assert!(lines("turbo").starts_with("cannot: the firmware has only"));
        assert_eq!(bench.plan(&[("platform_profile", "|")]).mistakes().count(), 1);
        assert!(Bench::new("acpi", &[]).plan(&[("platform_profile", "x")]).lines().starts_with("cannot: "));
    }
}
