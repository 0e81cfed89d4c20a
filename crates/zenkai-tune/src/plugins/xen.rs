//! `xen`: power settings that only the hypervisor has. (tuned has no such plugin.)

use zenkai_host::Knob;

use super::{OptionSpec, Plugin, Wishes};
use crate::{Fault, Instance, Scene};

/// Says `control_d` in the domain that may ask the hypervisor such things (`drivers/xen/xenfs/super.c`).
const CAPABILITIES: &str = "/proc/xen/capabilities";

pub(super) static PLUGIN: Plugin = Plugin {
    name: "xen",
    summary: "Sets the Xen hypervisor's frequency governor, lowest frequency and deepest idle state",
    options: &[
        OptionSpec {
            name: "governor",
            help: "Frequency governor: performance, powersave, ondemand or userspace",
            default: "",
        },
        OptionSpec { name: "min_frequency", help: "Lowest frequency in kHz", default: "" },
        OptionSpec {
            name: "max_cstate",
            help: "Deepest idle state by its number, or `unlimited`; 0 keeps processors spinning and hot",
            default: "",
        },
    ],
    devices: None,
    plan,
};

fn plan(scene: &Scene, instance: &Instance, wishes: &mut Wishes) {
    let may =
        scene.text(CAPABILITIES).is_some_and(|text| text.split(',').any(|word| word.trim() == "control_d"));
    for option in &instance.options {
        let value = option.value.trim();
        let number = value.parse::<u32>().is_ok();
        let letters = !value.is_empty() && value.bytes().all(|byte| byte.is_ascii_lowercase());
        let (knob, fits) = match option.name.as_str() {
            "governor" => ("governor", letters),
            "min_frequency" => ("min-frequency", number),
            _ => ("max-cstate", number || value == "unlimited"),
        };
        if !fits {
            wishes.cannot(option, "", Fault::Profile, format!("`{value}` is no value for {}", option.name));
        } else if !may {
            wishes.cannot(option, "", Fault::Machine, "this is not the control domain of a Xen machine");
        } else {
            let risk = matches!(value, "0" | "1").then(|| "idle processors draw much more power".to_owned());
            let wish = wishes.set(option, "", Knob::Xen(knob.to_owned()), value);
            if knob == "max-cstate" {
                wish.risk = risk;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use zenkai_host::{FakeHost, Knob, Query, Reply};

    use crate::plugins::testing::Bench;

    #[test]
    fn the_control_domain_sets_the_hypervisor() {
        let query = |name: &str| Query::Knob(Knob::Xen(name.into()));
        let host = FakeHost::new(&[("/proc/xen/capabilities", "control_d\n")])
            .reply(&query("governor"), Reply::Text("0:ondemand 1:performance".into()))
            .reply(&query("max-cstate"), Reply::Text("1".into()));
        let bench = Bench::on("xen", host);
        let plan = bench.plan(&[("governor", "performance"), ("max_cstate", "1"), ("min_frequency", "fast")]);
        assert_eq!(
            plan.lines(),
            "xen governor: 0:ondemand 1:performance -> performance\nxen max-cstate: 1\n\
             cannot: `fast` is no value for min_frequency\n"
        );
        assert!(plan.steps[1].wish.risk.is_some());
    }

    #[test]
    fn everywhere_else_it_cannot() {
        for bench in [Bench::new("xen", &[]), Bench::new("xen", &[("/proc/xen/capabilities", "\n")])] {
            let plan = bench.plan(&[("max_cstate", "unlimited")]);
            assert_eq!(plan.lines(), "cannot: this is not the control domain of a Xen machine\n");
            assert_eq!(plan.mistakes().count(), 0);
        }
    }
}
