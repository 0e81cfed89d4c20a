//! `uncore`: the clock of what CPUs share (Documentation/admin-guide/pm/intel_uncore_frequency_scaling.rst).

use zenkai_host::Knob;

use super::{OptionSpec, Plugin, Wishes, shared::whole};
use crate::{Fault, Instance, OptionText, Scene};

pub(super) static PLUGIN: Plugin = Plugin {
    name: "uncore",
    summary: "Limits the clock of caches and memory controllers",
    options: &[
        OptionSpec { name: "max_freq_khz", help: "Highest clock in kHz, or N% of its range", default: "" },
        OptionSpec { name: "min_freq_khz", help: "Lowest clock in kHz, or N% of its range", default: "" },
    ],
    devices: Some(devices),
    plan,
};

const DIR: &str = "/sys/devices/system/cpu/intel_uncore_frequency";

/// The clusters where there are any; a package then only hands its limits on to them.
fn devices(scene: &Scene) -> Vec<String> {
    let names = scene.names(DIR);
    let clusters: Vec<String> = names.iter().filter(|name| name.starts_with("uncore")).cloned().collect();
    if clusters.is_empty() {
        names.into_iter().filter(|name| name.starts_with("package_")).collect()
    } else {
        clusters
    }
}

fn plan(scene: &Scene, instance: &Instance, wishes: &mut Wishes) {
    for option in &instance.options {
        if instance.devices.is_empty() {
            wishes.cannot(option, "", Fault::Machine, "the CPUs have no uncore clock that can be set");
        }
        for device in &instance.devices {
            match clock(scene, option, device) {
                Ok(khz) => {
                    let knob = Knob::Attribute(format!("{DIR}/{device}/{}", option.name));
                    wishes.set(option, device, knob, khz.to_string())
                }
                Err((fault, why)) => wishes.cannot(option, device, fault, why),
            };
        }
    }
}

fn clock(scene: &Scene, option: &OptionText, device: &str) -> Result<i64, (Fault, String)> {
    let bound = |name: &str| {
        let text = scene.text(&format!("{DIR}/{device}/initial_{name}_freq_khz"));
        let unknown = || (Fault::Reading, format!("the range of {device} is not known"));
        text.and_then(|text| text.parse::<i64>().ok()).ok_or_else(unknown)
    };
    let asked = option.value.trim();
    let wrong = |why| (Fault::Profile, why);
    let percent = asked.strip_suffix('%').map(|number| whole(number, 0, 100)).transpose().map_err(wrong)?;
    let number = if percent.is_none() { whole(asked, 0, i64::from(u32::MAX)).map_err(wrong)? } else { 0 };
    let (lowest, highest) = (bound("min")?, bound("max")?);
    if lowest < 0 || lowest > highest || highest > i64::from(u32::MAX) {
        return Err((Fault::Reading, format!("the range of {device} makes no sense")));
    }
    let khz = percent.map_or(number, |percent| lowest + (highest - lowest) * percent / 100);
    if (lowest..=highest).contains(&khz) {
        Ok(khz)
    } else {
        Err((Fault::Machine, format!("{khz} kHz is not within {lowest} to {highest}")))
    }
}

#[cfg(test)]
mod tests {
    use crate::plugins::testing::Bench;

    #[test]
    fn clusters_before_packages() {
        let dir = "/sys/devices/system/cpu/intel_uncore_frequency";
        let bench = Bench::new(
            "uncore",
            &[
                (&format!("{dir}/package_00_die_00/max_freq_khz"), "2400000\n"),
                (&format!("{dir}/uncore00/max_freq_khz"), "2400000\n"),
                (&format!("{dir}/uncore00/min_freq_khz"), "800000\n"),
                (&format!("{dir}/uncore00/initial_min_freq_khz"), "800000\n"),
                (&format!("{dir}/uncore00/initial_max_freq_khz"), "2400000\n"),
            ],
        );
        assert_eq!(
            bench.plan(&[("max_freq_khz", "50%"), ("min_freq_khz", "800000")]).lines(),
            format!("{dir}/uncore00/max_freq_khz: 2400000 -> 1600000\n{dir}/uncore00/min_freq_khz: 800000\n")
        );
        assert_eq!(bench.plan(&[("max_freq_khz", "101%"), ("min_freq_khz", "x")]).mistakes().count(), 2);
        assert!(bench.plan(&[("max_freq_khz", "1")]).lines().contains("not within 800000 to 2400000"));
        let none = Bench::new("uncore", &[]).plan(&[("max_freq_khz", "1")]);
        assert_eq!(none.lines(), "cannot: the CPUs have no uncore clock that can be set\n");
    }
}
