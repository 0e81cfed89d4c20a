//! `irq`: which CPUs serve which interrupt.

use zenkai_facts::CpuSet;
use zenkai_host::Knob;

use super::{OptionSpec, Plugin, Wishes, cpus::mask_like};
use crate::{Fault, Instance, OptionText, Scene};

/// The affinity that interrupts get when they are made.
pub(super) const DEFAULT: &str = "/proc/irq/default_smp_affinity";

/// The kernel places the interrupts of multi-queue devices itself and answers EIO (`irq_can_set_affinity_usr()`).
pub(super) const RISK: &str =
    "an interrupt that the kernel manages itself refuses with EIO and stays where it is";

pub(super) static PLUGIN: Plugin = Plugin {
    name: "irq",
    summary: "Sets the CPUs that serve interrupts",
    options: &[
        OptionSpec { name: "affinity", help: "CPU list", default: "" },
        OptionSpec {
            name: "mode",
            help: "set, or intersect: of the CPUs an interrupt has, keep those in the list; all of the list if none is",
            default: "set",
        },
    ],
    devices: Some(devices),
    plan,
};

fn devices(scene: &Scene) -> Vec<String> {
    let mut devices: Vec<String> = numbers(scene).into_iter().map(|number| format!("irq{number}")).collect();
    if scene.exists(DEFAULT) {
        devices.push("DEFAULT".to_owned());
    }
    devices
}

/// The interrupts, ascending.
pub(super) fn numbers(scene: &Scene) -> Vec<u32> {
    let mut numbers: Vec<u32> =
        scene.names("/proc/irq").iter().filter_map(|name| name.parse().ok()).collect();
    numbers.sort_unstable();
    numbers
}

fn plan(scene: &Scene, instance: &Instance, wishes: &mut Wishes) {
    let intersect = match instance.option("mode") {
        Some(mode) if mode.value.trim() == "intersect" => true,
        Some(mode) if !matches!(mode.value.trim(), "" | "set") => {
            wishes.cannot(
                mode,
                "",
                Fault::Profile,
                format!("mode is set or intersect, not `{}`", mode.value),
            );
            return;
        }
        _ => false,
    };
    let Some(option) = instance.option("affinity").filter(|option| !option.value.trim().is_empty()) else {
        return;
    };
    let Some(cpus) = wishes.cpus(option) else { return };
    for device in &instance.devices {
        if device == "DEFAULT" {
            default_to(scene, option, &cpus, intersect, wishes);
        } else if let Some(number) = device.strip_prefix("irq").and_then(|number| number.parse().ok()) {
            one(scene, option, number, &cpus, intersect, wishes);
        }
    }
}

/// Wishes for these CPUs on one interrupt; when intersecting, for those of them that it has.
pub(super) fn one(
    scene: &Scene,
    option: &OptionText,
    number: u32,
    cpus: &CpuSet,
    intersect: bool,
    wishes: &mut Wishes,
) {
    let knob = Knob::Attribute(format!("/proc/irq/{number}/smp_affinity_list"));
    let device = format!("irq{number}");
    let to = if intersect {
        let before = scene.before(&knob).ok().and_then(|value| value.text()?.parse().ok());
        kept(before.as_ref(), cpus)
    } else {
        cpus.clone()
    };
    // The kernel refuses CPUs that are all offline, and shows those that are not.
    wishes.set(option, &device, knob, to.to_string()).risk = Some(RISK.to_owned());
}

/// The same for interrupts to come.
pub(super) fn default_to(
    scene: &Scene,
    option: &OptionText,
    cpus: &CpuSet,
    intersect: bool,
    wishes: &mut Wishes,
) {
    let knob = Knob::Attribute(DEFAULT.to_owned());
    let before = scene.before(&knob).ok();
    let before = before.as_ref().and_then(|value| value.text()).unwrap_or_default();
    let mask = CpuSet::from_mask(before).ok();
    let to = if intersect { kept(mask.as_ref(), cpus) } else { cpus.clone() };
    let to = mask_like(&to, before);
    wishes.set(option, "DEFAULT", knob, to);
}

/// What stays of the CPUs when only `allowed` may be used; all of `allowed` if nothing would.
pub(super) fn kept(now: Option<&CpuSet>, allowed: &CpuSet) -> CpuSet {
    let both = now.map(|now| now.intersection(allowed)).unwrap_or_default();
    if both.is_empty() { allowed.clone() } else { both }
}

#[cfg(test)]
mod tests {
    use crate::plugins::testing::Bench;

    fn bench() -> Bench {
        Bench::new(
            "irq",
            &[
                ("/proc/irq/default_smp_affinity", "0f\n"),
                ("/proc/irq/9/smp_affinity_list", "0-3\n"),
                ("/proc/irq/10/smp_affinity_list", "3\n"),
            ],
        )
    }

    #[test]
    fn set_moves_all() {
        assert_eq!(
            bench().plan(&[("affinity", "0,1")]).lines(),
            "/proc/irq/9/smp_affinity_list: 0-3 -> 0-1\n/proc/irq/10/smp_affinity_list: 3 -> 0-1\n\
             /proc/irq/default_smp_affinity: 0f -> 03\n"
        );
    }

    #[test]
    fn intersect_keeps_what_fits() {
        assert_eq!(
            bench().plan(&[("affinity", "2-5"), ("mode", "intersect")]).lines(),
            "/proc/irq/9/smp_affinity_list: 0-3 -> 2-3\n/proc/irq/10/smp_affinity_list: 3\n\
             /proc/irq/default_smp_affinity: 0f -> 0c\n"
        );
        assert_eq!(bench().plan(&[("affinity", "9-1")]).lines(), "cannot: `9-1` is no CPU list\n");
        assert!(bench().plan(&[("affinity", "1"), ("mode", "x")]).lines().starts_with("cannot: mode is"));
        assert_eq!(bench().plan(&[("affinity", "")]).lines(), "");
    }
}
