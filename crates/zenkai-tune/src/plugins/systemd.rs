//! `systemd`: the CPUs that systemd gives to what it starts.

use zenkai_host::Knob;

use super::{OptionSpec, Plugin, Wishes};
use crate::{Fault, Instance, Scene, Want, When};

/// A drop-in of systemd-system.conf(5), where tuned has it.
const PATH: &str = "/etc/systemd/system.conf.d/00-tuned.conf";

pub(super) static PLUGIN: Plugin = Plugin {
    name: "systemd",
    summary: "Sets the CPUs that systemd and the services it starts run on",
    options: &[OptionSpec { name: "cpu_affinity", help: "CPU list for CPUAffinity=", default: "" }],
    devices: None,
    plan,
};

fn plan(scene: &Scene, instance: &Instance, wishes: &mut Wishes) {
    let Some(option) = instance.option("cpu_affinity") else { return };
    if !scene.exists("/etc/systemd") {
        wishes.cannot(option, "", Fault::Machine, "systemd is not installed");
        return;
    }
    let Some(cpus) = wishes.cpus(option) else { return };
    let numbers: Vec<String> = cpus.iter().map(|cpu| cpu.to_string()).collect();
    let to = format!("[Manager]\nCPUAffinity={}\n", numbers.join(" ")).into();
    let want = Want::Set { knob: Knob::File(PATH.to_owned()), to, when: When::AfterReboot };
    wishes.want(option, "", want).risk = Some(
        "services started before keep their CPUs; `systemctl daemon-reexec` makes it act on those started later"
            .to_owned(),
    );
}

#[cfg(test)]
mod tests {
    use crate::plugins::testing::Bench;

    #[test]
    fn a_drop_in_is_written() {
        let bench = Bench::new("systemd", &[("/etc/systemd/system.conf", "")]);
        assert_eq!(
            bench.plan(&[("cpu_affinity", "0-1,3")]).lines(),
            "file /etc/systemd/system.conf.d/00-tuned.conf: (none) -> [Manager]\\nCPUAffinity=0 1 3\\n\n"
        );
        assert_eq!(bench.plan(&[("cpu_affinity", "x")]).lines(), "cannot: `x` is no CPU list\n");
        let none = Bench::new("systemd", &[("/etc/x", "")]);
        assert_eq!(none.plan(&[("cpu_affinity", "0")]).lines(), "cannot: systemd is not installed\n");
    }
}
