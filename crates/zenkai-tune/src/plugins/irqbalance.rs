//! `irqbalance`: CPUs that the irqbalance daemon leaves alone.

use zenkai_host::{Act, Knob, Value, value};

use super::{OptionSpec, Plugin, Wishes, cpus::parse_cpus};
use crate::{Fault, Instance, Scene, plan::same};

/// Where distributions have its settings: Red Hat and SUSE, Debian.
const FILES: [&str; 2] = ["/etc/sysconfig/irqbalance", "/etc/default/irqbalance"];
/// irqbalance(1).
const KEY: &str = "IRQBALANCE_BANNED_CPULIST";

pub(super) static PLUGIN: Plugin = Plugin {
    name: "irqbalance",
    summary: "Keeps irqbalance away from CPUs",
    options: &[OptionSpec { name: "banned_cpus", help: "CPU list that gets no interrupts", default: "" }],
    devices: None,
    plan,
};

fn plan(scene: &Scene, instance: &Instance, wishes: &mut Wishes) {
    let Some(option) = instance.option("banned_cpus") else { return };
    let cpus = match parse_cpus(&option.value) {
        Ok(cpus) => cpus,
        Err(why) => {
            wishes.cannot(option, "", Fault::Profile, why);
            return;
        }
    };
    let Some(path) = FILES.iter().find(|path| scene.exists(path)) else {
        wishes.cannot(option, "", Fault::Machine, "irqbalance is not installed");
        return;
    };
    let knob = Knob::File((*path).to_owned());
    let Ok(Value::Text(old)) = value(scene.host, &knob) else {
        wishes.cannot(option, "", Fault::Reading, format!("{path} cannot be read"));
        return;
    };
    let new = with_line(&old, &cpus.to_string());
    let restart = || Act::Command {
        argv: ["systemctl", "try-restart", "irqbalance.service"].map(str::to_owned).to_vec(),
    };
    let changes = !same(&old.as_str().into(), &new.as_str().into());
    if changes {
        // Undoing goes backwards: this comes after the file is back.
        let nothing = Act::Command { argv: vec!["true".to_owned()] };
        wishes.run(option, nothing, Some(restart()), None);
    }
    wishes.set(option, "", knob, new);
    if changes {
        wishes.run(option, restart(), None, None);
    }
}

/// The file with this value, in the place of the line that set it before.
fn with_line(old: &str, cpus: &str) -> String {
    let line = format!("{KEY}={cpus}\n");
    let is_ours = |text: &str| text.trim_start().strip_prefix(KEY).is_some_and(|rest| rest.starts_with('='));
    let mut new = String::new();
    let mut written = false;
    for text in old.lines() {
        if !is_ours(text) {
            new.extend([text, "\n"]);
        } else if !written {
            new.push_str(&line);
            written = true;
        }
    }
    if !written {
        new.push_str(&line);
    }
    new
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plugins::testing::Bench;

    #[test]
    fn the_line_is_replaced_where_it_stands() {
        assert_eq!(
            with_line("A=1\nIRQBALANCE_BANNED_CPULIST=3\nB=2", "0-1"),
            "A=1\nIRQBALANCE_BANNED_CPULIST=0-1\nB=2\n"
        );
        assert_eq!(
            with_line("# IRQBALANCE_BANNED_CPULIST=\n", "2"),
            "# IRQBALANCE_BANNED_CPULIST=\nIRQBALANCE_BANNED_CPULIST=2\n"
        );
    }

    #[test]
    fn the_daemon_is_told_only_of_a_change() {
        let bench = Bench::new("irqbalance", &[("/etc/default/irqbalance", "A=1\n")]);
        assert_eq!(
            bench.plan(&[("banned_cpus", "2,3")]).lines(),
            "run: true (undo: systemctl try-restart irqbalance.service)\n\
             file /etc/default/irqbalance: A=1\\n -> A=1\\nIRQBALANCE_BANNED_CPULIST=2-3\\n\n\
             run: systemctl try-restart irqbalance.service\n"
        );
        let done =
            Bench::new("irqbalance", &[("/etc/sysconfig/irqbalance", "IRQBALANCE_BANNED_CPULIST=2-3\n")]);
        let plan = done.plan(&[("banned_cpus", "2,3")]);
        assert!(plan.is_empty());
        assert_eq!(plan.lines(), "file /etc/sysconfig/irqbalance: IRQBALANCE_BANNED_CPULIST=2-3\\n\n");
        let none = Bench::new("irqbalance", &[("/x", "")]);
        assert_eq!(none.plan(&[("banned_cpus", "2")]).lines(), "cannot: irqbalance is not installed\n");
    }
}
