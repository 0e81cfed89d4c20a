//! `modules`: parameters of kernel modules, kept in `/etc/modprobe.d/tuned.conf`.
//!
//! Our lines stand between two marks, and what is written around them stays. (tuned keeps the comment at the top and
//! wipes the rest.)

use zenkai_host::{Act, Knob};

use super::{OptionSpec, Plugin, Wishes};
use crate::{Fault, Instance, OptionText, Scene, Want, When};

const FILE: &str = "/etc/modprobe.d/tuned.conf";
const BEGIN: &str = "# zenkai: begin, written anew with each profile";
const END: &str = "# zenkai: end";

pub(super) static PLUGIN: Plugin = Plugin {
    name: "modules",
    summary: "Sets parameters of kernel modules",
    options: &[OptionSpec {
        name: "*",
        help: "For the module of this name: its parameters as `name=value`, separated by blanks; `+r` in front \
               (`+r, name=value`) loads it anew at once, otherwise they act when it is next loaded",
        default: "",
    }],
    devices: None,
    plan,
};

fn plan(scene: &Scene, instance: &Instance, wishes: &mut Wishes) {
    let known = KnownModules::read(scene);
    let mut lines = Vec::new();
    let mut last = None;
    let mut reloads = Vec::new();
    for option in &instance.options {
        let value = option.value.trim();
        let (reload, parameters) = value
            .strip_prefix("+r")
            .map_or((false, value), |rest| (true, rest.trim_start().trim_start_matches(',').trim_start()));
        if !is_name(&option.name) || parameters.contains(['\n', '#', '\\']) {
            let why = format!("`{}={value}` is no module with parameters on one line", option.name);
            wishes.cannot(option, "", Fault::Profile, why);
        } else if !known.has(scene, &option.name) {
            wishes.cannot(option, "", Fault::Machine, format!("this kernel has no module {}", option.name));
        } else {
            if !parameters.is_empty() {
                lines.push(format!("options {} {parameters}", option.name));
                last = Some(option);
            }
            if reload {
                reloads.push((option, parameters));
            }
        }
    }
    if let Some(option) = last.or(instance.options.first()) {
        file(scene, option, &lines, wishes);
    }
    for (option, parameters) in reloads {
        load(scene, &known, option, parameters, wishes);
    }
}

/// The whole file, as one wish: a knob is written once.
fn file(scene: &Scene, option: &OptionText, lines: &[String], wishes: &mut Wishes) {
    // Text that cannot be read cannot be kept.
    let old = match scene.host.read(FILE) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Some(String::new()),
        result => result.ok().and_then(|bytes| String::from_utf8(bytes).ok()),
    };
    let Some(old) = old else {
        wishes.cannot(option, "", Fault::Reading, format!("{FILE} cannot be read as text"));
        return;
    };
    if lines.is_empty() && !old.lines().any(|line| line == BEGIN) {
        return;
    }
    match merged(&old, lines) {
        Ok(text) => {
            let to = text.into();
            let when = When::AfterReboot;
            wishes.want(option, "", Want::Set { knob: Knob::File(FILE.into()), to, when });
        }
        Err(line) => {
            let why = format!("{FILE}:{line}: our mark has no counterpart; please remove the line");
            wishes.cannot(option, "", Fault::Reading, why);
        }
    }
}

/// The file's text with our part replaced; or the line of a mark that stands alone.
fn merged(old: &str, lines: &[String]) -> Result<String, usize> {
    let mut text = String::new();
    let mut opened = None;
    let mut ours = String::new();
    if !lines.is_empty() {
        ours = format!("{BEGIN}\n{}\n{END}\n", lines.join("\n"));
    }
    let mut placed = false;
    for (at, line) in old.lines().enumerate() {
        match (line, opened) {
            (BEGIN, None) => opened = Some(at),
            (END, Some(_)) => {
                opened = None;
                if !placed {
                    text.push_str(&ours);
                }
                placed = true;
            }
            (BEGIN | END, _) => return Err(at + 1),
            (_, Some(_)) => {}
            (other, None) => {
                text.push_str(other);
                text.push('\n');
            }
        }
    }
    if let Some(at) = opened {
        return Err(at + 1);
    }
    if !placed {
        text.push_str(&ours);
    }
    Ok(text)
}

/// Loads the module, or loads it anew when it runs with other parameters. Undoing goes the other way round with the
/// values it had.
fn load(scene: &Scene, known: &KnownModules, option: &OptionText, parameters: &str, wishes: &mut Wishes) {
    let name = option.name.as_str();
    let dir = format!("/sys/module/{}", name.replace('-', "_"));
    if known.is_builtin(name) || (scene.exists(&dir) && !scene.exists(&format!("{dir}/initstate"))) {
        wishes.want(option, "", Want::Leave(format!("{name} is built into the kernel")));
        return;
    }
    if !scene.exists(&dir) && known.loadable.is_none() {
        let why = format!("{name} is not loaded, and the list of this kernel's modules is not there");
        wishes.cannot(option, "", Fault::Machine, why);
        return;
    }
    if !scene.exists(&dir) {
        wishes.set(option, "", Knob::Module(name.to_owned()), "loaded");
        return;
    }
    let mut old = Vec::new();
    let mut differs = false;
    for (key, value) in parameters.split_whitespace().filter_map(|pair| pair.split_once('=')) {
        // Not every parameter shows in sysfs (`perm` of module_param()); such a one cannot be compared.
        if let Some(now) = scene.text(&format!("{dir}/parameters/{key}")) {
            differs |= !crate::plan::same(&now.as_str().into(), &value.into()) && !same_switch(&now, value);
            old.push(format!("{key}={now}"));
        }
    }
    if !differs {
        wishes.want(option, "", Want::Leave(format!("{name} is loaded with these parameters")));
        return;
    }
    if scene.text(&format!("{dir}/refcnt")).is_some_and(|count| count != "0") {
        let why = format!("{name} is in use; its parameters act when it is next loaded");
        wishes.want(option, "", Want::Leave(why));
        return;
    }
    let command = |words: &[&str], more: Vec<String>| Act::Command {
        argv: words.iter().map(ToString::to_string).chain(more).collect(),
    };
    let remove = command(&["modprobe", "-r", name], Vec::new());
    let new = parameters.split_whitespace().map(ToOwned::to_owned).collect();
    let risk = Some(format!("what uses {name} stops for a moment"));
    wishes.run(option, remove.clone(), Some(command(&["modprobe", name], old)), None).risk = risk;
    wishes.run(option, command(&["modprobe", name], new), Some(remove), None);
}

/// Switches show as `Y` and `N` and are written as `1` and `0` too (`param_get_bool()` in `kernel/params.c`).
fn same_switch(now: &str, value: &str) -> bool {
    let truth = |text: &str| match text {
        "Y" | "y" | "1" => Some(true),
        "N" | "n" | "0" => Some(false),
        _ => None,
    };
    truth(now).is_some() && truth(now) == truth(value)
}

fn is_name(name: &str) -> bool {
    let valid = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-';
    !name.is_empty() && !name.starts_with('-') && name.bytes().all(valid)
}

/// What depmod(8) knows; empty texts where it left nothing.
struct KnownModules {
    loadable: Option<String>,
    builtin: Option<String>,
}

impl KnownModules {
    fn read(scene: &Scene) -> Self {
        let release = scene.text("/proc/sys/kernel/osrelease").unwrap_or_default();
        let list = |name: &str| scene.text(&format!("/lib/modules/{release}/{name}"));
        Self { loadable: list("modules.dep"), builtin: list("modules.builtin") }
    }

    fn is_builtin(&self, name: &str) -> bool {
        self.builtin.as_deref().is_some_and(|list| mentions(list, name))
    }

    /// Without depmod's lists nothing is known, and nothing is refused.
    fn has(&self, scene: &Scene, name: &str) -> bool {
        self.loadable.as_deref().is_none_or(|list| mentions(list, name))
            || self.is_builtin(name)
            || scene.exists(&format!("/sys/module/{}", name.replace('-', "_")))
    }
}

/// Whether a list of depmod's has the module: lines begin with its path, `kernel/fs/xfs/xfs.ko.zst:`.
fn mentions(list: &str, name: &str) -> bool {
    let name = name.replace('-', "_");
    list.lines().any(|line| {
        let path = line.split(':').next().unwrap_or(line);
        let file = path.rsplit('/').next().unwrap_or(path);
        file.split(".ko").next().is_some_and(|stem| stem.replace('-', "_") == name)
    })
}

#[cfg(test)]
mod tests {
    use zenkai_host::{FakeHost, Query, Reply};

    use super::*;
    use crate::plugins::testing::Bench;

    fn machine() -> FakeHost {
        FakeHost::new(&[
            ("/proc/sys/kernel/osrelease", "6.1.0\n"),
            (
                "/lib/modules/6.1.0/modules.dep",
                "kernel/a/snd-hda.ko.xz: kernel/b.ko\nkernel/kvm.ko:\nkernel/n.ko:\n",
            ),
            ("/lib/modules/6.1.0/modules.builtin", "kernel/drivers/cpufreq/cpufreq_conservative.ko\n"),
            ("/sys/module/kvm/initstate", "live\n"),
            ("/sys/module/kvm/refcnt", "0\n"),
            ("/sys/module/kvm/parameters/halt_poll_ns", "200000\n"),
        ])
    }

    #[test]
    fn foreign_text_survives() {
        let host = machine().file(FILE, "# mine\noptions x a=1\n");
        let bench = Bench::on("modules", host);
        let plan = bench.plan(&[("snd_hda", "power=1"), ("none", "a=1")]);
        let expected = format!(
            "cannot: this kernel has no module none\nfile {FILE}: # mine\\noptions x a=1\\n -> \
             # mine\\noptions x a=1\\n{BEGIN}\\noptions snd_hda power=1\\n{END}\\n\n"
        );
        assert_eq!(plan.lines(), expected);
        let ours = format!("a\n{BEGIN}\nold\n{END}\nb\n");
        assert_eq!(merged(&ours, &["new".into()]).unwrap(), format!("a\n{BEGIN}\nnew\n{END}\nb\n"));
        assert_eq!(merged(&ours, &[]).unwrap(), "a\nb\n");
        assert_eq!(merged(&format!("a\n{BEGIN}\nb\n"), &[]), Err(2));
        assert_eq!(merged(&format!("{END}\n"), &[]), Err(1));
    }

    #[test]
    fn reloading_goes_both_ways() {
        let bench = Bench::on("modules", machine());
        let plan = bench.plan(&[("kvm", "+r, halt_poll_ns=0")]);
        let lines = plan.lines();
        let acts: Vec<&str> = lines.lines().filter(|line| line.starts_with("run")).collect();
        assert_eq!(
            acts,
            [
                "run: modprobe -r kvm (undo: modprobe kvm halt_poll_ns=200000)",
                "run: modprobe kvm halt_poll_ns=0 (undo: modprobe -r kvm)",
            ]
        );
        let same = bench.plan(&[("kvm", "+r halt_poll_ns=200000")]);
        assert!(same.lines().ends_with("leave: kvm is loaded with these parameters\n"));
        let busy = Bench::on("modules", machine().file("/sys/module/kvm/refcnt", "3\n"));
        assert!(busy.plan(&[("kvm", "+r halt_poll_ns=0")]).lines().contains("leave: kvm is in use"));
    }

    #[test]
    fn a_bare_reload_loads_what_can_be_loaded() {
        let query = Query::Knob(Knob::Module("n".into()));
        let bench = Bench::on("modules", machine().reply(&query, Reply::Text("absent".into())));
        let plan = bench.plan(&[("cpufreq_conservative", "+r"), ("n", "+r")]);
        assert_eq!(
            plan.lines(),
            "leave: cpufreq_conservative is built into the kernel\nmodule n: absent -> loaded\n"
        );
        let wrong = bench.plan(&[("../x", "a=1"), ("kvm", "a=1\ninstall kvm rm")]);
        assert_eq!(wrong.mistakes().count(), 2);
        assert_eq!(wrong.changes().count(), 0);
    }
}
