//! From a merged profile to wishes: which units count here, whose device is whose, and what each plugin wants of them.

use std::collections::{BTreeMap, BTreeSet};

use zenkai_host::{Act, Query, Reply};

use crate::{
    Fault, Instance, OptionText, Scene, Want, Wish, library,
    plugins::{self, Plugin, Wishes},
    profile::{
        Expanded, Expander, Functions, MainConf, OptionValue, Profile, Unit, fnmatch,
        regex::{Flags, search},
    },
};

/// Everything that a profile wants of this machine, unit after unit. What cannot be used, such as an unknown plugin or
/// option or a unit without a device, is in the list too, with the reason.
///
/// Functions in the values are called now. `conf` says what stands for uname and `/proc/cpuinfo`, and where scripts lie.
pub fn wishes(scene: &Scene, profile: &Profile, conf: &MainConf, functions: Functions<'_>) -> Vec<Wish> {
    assemble(scene, profile, conf, functions).wishes
}

/// A unit that is used on this machine, with the devices that are its own.
#[derive(Clone)]
pub struct Assigned {
    /// The unit's name.
    pub unit: String,
    /// Its plugin.
    pub plugin: &'static Plugin,
    /// The devices; none where the plugin has no devices, or no free one matches.
    pub devices: Vec<String>,
}

/// Which units of the profile are used on this machine, and whose device is whose.
pub fn assigned(
    scene: &Scene,
    profile: &Profile,
    conf: &MainConf,
    functions: Functions<'_>,
) -> Vec<Assigned> {
    assemble(scene, profile, conf, functions).assigned
}

fn assemble<'a>(
    scene: &'a Scene<'a>,
    profile: &'a Profile,
    conf: &'a MainConf,
    functions: Functions<'a>,
) -> Assembly<'a> {
    let mut assembly = Assembly {
        scene,
        conf,
        expander: Expander::of(profile, functions),
        variables: variables(profile),
        taken: BTreeMap::new(),
        assigned: Vec::new(),
        wishes: Vec::new(),
    };
    let mut units: Vec<&Unit> = profile.units.iter().collect();
    units.sort_by_key(|unit| unit.priority);
    for unit in units {
        if let Err(obstacle) = assembly.unit(unit) {
            assembly.wishes.push(unit_wish(unit, obstacle));
        }
    }
    library::provide(scene, &mut assembly.wishes);
    assembly
}

/// Why a unit or an option is not used.
enum Obstacle {
    Leave(String),
    Cannot { why: String, fault: Fault },
}

impl From<Obstacle> for Want {
    fn from(obstacle: Obstacle) -> Self {
        match obstacle {
            Obstacle::Leave(why) => Self::Leave(why),
            Obstacle::Cannot { why, fault } => Self::Cannot { why, fault },
        }
    }
}

/// How tuned searches with the expressions of units.
const MULTILINE: Flags = Flags { multiline: true, dotall: false, ignore_case: false };

struct Assembly<'a> {
    scene: &'a Scene<'a>,
    conf: &'a MainConf,
    expander: Expander<'a>,
    variables: Vec<(String, String)>,
    /// The devices that a unit has already, for each plugin.
    taken: BTreeMap<&'static str, BTreeSet<String>>,
    assigned: Vec<Assigned>,
    wishes: Vec<Wish>,
}

impl Assembly<'_> {
    /// An error is why the whole unit is left out.
    fn unit(&mut self, unit: &Unit) -> Result<(), Obstacle> {
        if !unit.enabled {
            return Err(Obstacle::Leave("the unit is switched off (`enabled`)".to_owned()));
        }
        self.is_meant(unit)?;
        let plugin = plugins::find(&unit.plugin).ok_or_else(|| unknown_plugin(&unit.plugin))?;
        let devices = match plugin.devices {
            Some(list) => self.devices(unit, plugin, &list(self.scene)),
            None => Ok(Vec::new()),
        };
        let own = devices.as_ref().map(Vec::clone).unwrap_or_default();
        self.assigned.push(Assigned { unit: unit.name.clone(), plugin, devices: own });
        let devices = devices?;
        let mut usable = Vec::new();
        let mut obstacles = Vec::new();
        for (name, value) in &unit.options {
            match self.option(unit, plugin, name, value) {
                (option, Some(obstacle)) => obstacles.push((option, obstacle)),
                (option, None) => usable.push(option),
            }
        }
        let instance = Instance {
            name: unit.name.clone(),
            plugin: unit.plugin.clone(),
            origin: unit.origin.clone(),
            devices,
            options: usable,
            variables: self.variables.clone(),
            profile_dirs: self.conf.profile_directories.clone(),
        };
        let mut wishes = Wishes::new(&instance);
        for (option, want) in obstacles {
            wishes.want(&option, "", want.into());
        }
        self.device_script(&instance, "script_pre", unit.script_pre.as_ref(), &mut wishes);
        (plugin.plan)(self.scene, &instance, &mut wishes);
        self.device_script(&instance, "script_post", unit.script_post.as_ref(), &mut wishes);
        self.wishes.extend(wishes.into_list());
        Ok(())
    }

    /// Whether the unit is for this kind of machine.
    fn is_meant(&self, unit: &Unit) -> Result<(), Obstacle> {
        if let Some(pattern) = &unit.cpuinfo_regex {
            let text = self.conf.cpuinfo_string.clone().or_else(|| self.scene.text("/proc/cpuinfo"));
            self.found(pattern, text, "cpuinfo_regex", "/proc/cpuinfo")?;
        }
        if let Some(pattern) = &unit.uname_regex {
            let text = self.conf.uname_string.clone().or_else(|| uname(self.scene));
            self.found(pattern, text, "uname_regex", "uname")?;
        }
        Ok(())
    }

    fn found(&self, pattern: &str, text: Option<String>, key: &str, source: &str) -> Result<(), Obstacle> {
        let pattern = self.text(pattern)?;
        let Some(text) = text else {
            let why = format!("{key} cannot be judged: {source} cannot be read");
            return Err(Obstacle::Cannot { why, fault: Fault::Reading });
        };
        match search(&pattern, &text, MULTILINE) {
            Ok(true) => Ok(()),
            Ok(false) => Err(Obstacle::Leave(format!("the unit is for other machines ({key})"))),
            Err(why) => Err(Obstacle::Cannot { why: format!("{key}: {why}"), fault: Fault::Profile }),
        }
    }

    /// The free devices that the unit asks for; they are its own from now on.
    fn devices(&mut self, unit: &Unit, plugin: &Plugin, known: &[String]) -> Result<Vec<String>, Obstacle> {
        let taken = self.taken.entry(plugin.name).or_default();
        let free: Vec<&String> = known.iter().filter(|device| !taken.contains(*device)).collect();
        let asked = self.expander.expand(&unit.devices);
        let asked = usable(&unit.devices, &asked).map_or(Ok(asked.text.as_str()), Err)?;
        let chosen: Vec<String> = match &unit.devices_udev_regex {
            Some(pattern) => {
                let mut chosen = Vec::new();
                for device in free {
                    let properties = udev_properties(self.scene, plugin.name, device);
                    match search(pattern, &properties, MULTILINE) {
                        Ok(true) => chosen.push(device.clone()),
                        Ok(false) => {}
                        Err(why) => {
                            let why = format!("devices_udev_regex: {why}");
                            return Err(Obstacle::Cannot { why, fault: Fault::Profile });
                        }
                    }
                }
                chosen
            }
            None => free.into_iter().filter(|device| asks_for(asked, device)).cloned().collect(),
        };
        if chosen.is_empty() {
            let what = if unit.devices_udev_regex.is_some() {
                "devices_udev_regex".to_owned()
            } else {
                format!("`{asked}`")
            };
            let why = if known.iter().any(|device| asks_for(asked, device)) {
                format!("every device that {what} matches belongs to an earlier unit")
            } else {
                format!("no {} device here matches {what}", plugin.name)
            };
            return Err(Obstacle::Cannot { why, fault: Fault::Machine });
        }
        taken.extend(chosen.iter().cloned());
        Ok(chosen)
    }

    /// The option expanded, and what keeps it from being used.
    fn option(
        &self,
        unit: &Unit,
        plugin: &Plugin,
        name: &str,
        value: &OptionValue,
    ) -> (OptionText, Option<Obstacle>) {
        let option = |text: &str| OptionText {
            name: name.to_owned(),
            value: text.to_owned(),
            origin: value.origin.clone(),
        };
        if !plugin.has_option(name) {
            let known = plugin.options.iter().map(|option| option.name);
            let why = format!("the plugin {} has no option `{name}`{}", unit.plugin, suggestion(name, known));
            return (option(&value.raw), Some(Obstacle::Cannot { why, fault: Fault::Profile }));
        }
        let expanded = self.expander.expand(&value.raw);
        let obstacle = usable(&value.raw, &expanded);
        (option(&expanded.text), obstacle)
    }

    fn text(&self, raw: &str) -> Result<String, Obstacle> {
        let expanded = self.expander.expand(raw);
        usable(raw, &expanded).map_or(Ok(expanded.text), Err)
    }

    /// tuned calls `script_pre` and `script_post` once for each device, with the operation and the device.
    fn device_script(
        &self,
        instance: &Instance,
        key: &str,
        value: Option<&OptionValue>,
        wishes: &mut Wishes,
    ) {
        let Some(value) = value else { return };
        let origin = value.origin.clone();
        let option =
            |text: &str| OptionText { name: key.to_owned(), value: text.to_owned(), origin: origin.clone() };
        let path = match self.text(&value.raw) {
            Ok(path) => path,
            Err(want) => {
                wishes.want(&option(&value.raw), "", want.into());
                return;
            }
        };
        let option = option(&path);
        let inside = |dir: &String| path.strip_prefix(dir.as_str()).is_some_and(|rest| rest.starts_with('/'));
        if !self.conf.profile_directories.iter().any(inside) || path.split('/').any(|part| part == "..") {
            let why = format!("the script must lie in {}", self.conf.profile_directories.join(" or "));
            wishes.cannot(&option, "", Fault::Profile, why);
            return;
        }
        if instance.devices.is_empty() {
            wishes.cannot(&option, "", Fault::Machine, "there is no device to call the script for");
        }
        let environment: Vec<(String, String)> =
            instance.variables.iter().map(|(name, value)| (format!("TUNED_{name}"), value.clone())).collect();
        for device in &instance.devices {
            let act = |operations: &[&str]| Act::Script {
                path: path.clone(),
                arguments: operations.iter().chain([&device.as_str()]).map(ToString::to_string).collect(),
                environment: environment.clone(),
            };
            // As with `stop full_rollback` of the plugin script: nothing stays, also not for the next boot.
            let undo = Some(act(&["unapply", "full_rollback"]));
            let want = Want::Run { act: act(&["apply"]), undo, verify: Some(act(&["verify"])) };
            wishes.want(&option, device, want);
        }
    }
}

fn variables(profile: &Profile) -> Vec<(String, String)> {
    profile.variables.iter().map(|(name, value)| (name.clone(), value.raw.clone())).collect()
}

fn unit_wish(unit: &Unit, obstacle: Obstacle) -> Wish {
    Wish {
        origin: unit.origin.clone(),
        unit: unit.name.clone(),
        plugin: unit.plugin.clone(),
        option: String::new(),
        device: None,
        asked: String::new(),
        want: obstacle.into(),
        risk: None,
    }
}

fn unknown_plugin(name: &str) -> Obstacle {
    let known = plugins::PLUGINS.iter().map(|plugin| plugin.name);
    let why = format!("there is no plugin `{name}`{}", suggestion(name, known));
    Obstacle::Cannot { why, fault: Fault::Profile }
}

/// Why an expanded value must not reach the machine. A function or variable that stayed as it is written would
/// otherwise be written to a knob as it stands.
fn usable(raw: &str, expanded: &Expanded) -> Option<Obstacle> {
    if let Some(text) = &expanded.failed_assertion {
        return Some(Obstacle::Cannot { why: format!("the profile demands: {text}"), fault: Fault::Profile });
    }
    // A backslash before `${` asks for the text itself.
    let starts = expanded.text.matches("${").count();
    if starts <= raw.matches("\\${").count() {
        return None;
    }
    let why = if expanded.notes.is_empty() {
        format!("`{}` has a variable that is not defined", expanded.text)
    } else {
        expanded.notes.join("; ")
    };
    // Programs are not run for a look: what they would say is not known, and no mistake of the profile.
    let needs_program = ["${f:exec:", "${f:lscpu_check:"].iter().any(|call| expanded.text.contains(call));
    let fault = if needs_program { Fault::Reading } else { Fault::Profile };
    Some(Obstacle::Cannot { why, fault })
}

/// Whether a list of names, globs and `!`globs asks for the device. A list of negative ones alone means all others.
fn asks_for(list: &str, device: &str) -> bool {
    let mut positive = None;
    for pattern in list.split([' ', ',', '\n', '\t']).filter(|pattern| !pattern.is_empty()) {
        match pattern.strip_prefix('!') {
            Some(negative) if fnmatch(device, negative) => return false,
            Some(_) => {}
            None => positive = Some(positive.unwrap_or(false) || fnmatch(device, pattern)),
        }
    }
    // An empty list is what tuned reads as "no device".
    positive.unwrap_or_else(|| list.contains('!'))
}

/// What `uname` says, joined by blanks: system, node, release, version and architecture.
fn uname(scene: &Scene) -> Option<String> {
    let part = |name: &str| scene.text(&format!("/proc/sys/kernel/{name}"));
    let arch = match scene.host.query(&Query::Machine) {
        Ok(Reply::Text(arch)) => arch,
        // Since Linux 6.1 it is a file, too (kernel/utsname_sysctl.c).
        _ => part("arch").unwrap_or_default(),
    };
    let parts = [part("ostype")?, part("hostname")?, part("osrelease")?, part("version")?, arch];
    Some(parts.join(" ").trim_end().to_owned())
}

/// A device's udev properties as sorted `KEY=VALUE` lines: what the kernel says in `uevent`, and what udev's rules
/// added (`/run/udev/data`, the `E:` lines). Empty for what is no device to udev.
fn udev_properties(scene: &Scene, plugin: &str, device: &str) -> String {
    let directory = match plugin {
        "disk" => format!("/sys/block/{device}"),
        "net" => format!("/sys/class/net/{device}"),
        "cpu" => format!("/sys/devices/system/cpu/{device}"),
        "scsi_host" => format!("/sys/class/scsi_host/{device}"),
        "usb" => format!("/sys/bus/usb/devices/{device}"),
        _ => return String::new(),
    };
    let mut properties: BTreeMap<String, String> = BTreeMap::new();
    let mut add = |text: &str| {
        for (key, value) in text.lines().filter_map(|line| line.split_once('=')) {
            properties.insert(key.to_owned(), value.to_owned());
        }
    };
    if let Ok(path) = scene.host.resolve(&directory) {
        add(&format!("DEVPATH={}", path.strip_prefix("/sys").unwrap_or(&path)));
    }
    let subsystem = scene.host.resolve(&format!("{directory}/subsystem")).ok();
    let subsystem =
        subsystem.as_deref().and_then(|path| path.rsplit('/').next()).unwrap_or_default().to_owned();
    if !subsystem.is_empty() {
        add(&format!("SUBSYSTEM={subsystem}"));
    }
    let uevent = scene.text(&format!("{directory}/uevent")).unwrap_or_default();
    add(&uevent);
    let value = |key: &str| uevent.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix('='));
    let record = match (plugin, value("MAJOR"), value("MINOR")) {
        ("net", _, _) => scene.text(&format!("{directory}/ifindex")).map(|index| format!("n{index}")),
        ("disk", Some(major), Some(minor)) => Some(format!("b{major}:{minor}")),
        (_, Some(major), Some(minor)) => Some(format!("c{major}:{minor}")),
        _ => Some(format!("+{subsystem}:{device}")),
    };
    if let Some(text) = record.and_then(|record| scene.text(&format!("/run/udev/data/{record}"))) {
        text.lines().filter_map(|line| line.strip_prefix("E:")).for_each(add);
    }
    // /dev is where DEVNAME lies, which uevent leaves out and libudev adds.
    if let Some(name) = properties.get_mut("DEVNAME").filter(|name| !name.starts_with('/')) {
        name.insert_str(0, "/dev/");
    }
    properties.into_iter().fold(String::new(), |text, (key, value)| text + &key + "=" + &value + "\n")
}

/// Longer names than this are not compared.
const NAME_LIMIT: usize = 64;

/// `; did you mean …?` with the known name that differs by the fewest letters, or nothing when none is near.
fn suggestion<'n>(name: &str, known: impl Iterator<Item = &'n str>) -> String {
    nearest(name, known).map_or_else(String::new, |near| format!("; did you mean `{near}`?"))
}

/// The known name that differs from this one by the fewest letters, at most a third of them.
pub fn nearest<'n>(name: &str, known: impl Iterator<Item = &'n str>) -> Option<&'n str> {
    if name.len() > NAME_LIMIT {
        return None;
    }
    known
        .map(|other| (letters_between(name, other), other))
        .filter(|(letters, _)| *letters <= name.chars().count().div_ceil(3))
        .min()
        .map(|(_, other)| other)
}

/// How many letters must be changed, added or left out to get from one to the other (Levenshtein).
fn letters_between(one: &str, other: &str) -> usize {
    let other: Vec<char> = other.chars().collect();
    let mut row: Vec<usize> = (0..=other.len()).collect();
    for (at, letter) in one.chars().enumerate() {
        let mut corner = row[0];
        row[0] = at + 1;
        for (column, wanted) in other.iter().enumerate() {
            let changed = corner + usize::from(letter != *wanted);
            corner = row[column + 1];
            row[column + 1] = changed.min(corner + 1).min(row[column] + 1);
        }
    }
    row.last().copied().unwrap_or_default()
}

#[cfg(test)]
#[path = "assemble_tests.rs"]
mod tests;
