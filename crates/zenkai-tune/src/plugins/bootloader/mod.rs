//! `bootloader`: kernel arguments and an additional initial ramdisk, for the next boot.
//!
//! One file for each kind of loader. All of them read their files wholly before anything is planned; a file with a line
//! that is not understood is named, and then none is changed. Files are planned as whole texts, so that undoing gives
//! back exactly what was there, and no program of the loader is run.

mod arguments;
mod entries;
mod grub;
mod image;
mod initrd;

use std::{fmt, io};

use arguments::Edit;
use zenkai_host::{Knob, NotRecorded, Value};

use super::{OptionSpec, Plugin, Wishes};
use crate::{Fault, Instance, OptionText, Scene, Want, When};

/// Programs besides us read this file: tuned's `/etc/grub.d/00_tuned` and OpenShift's operator.
const BOOTCMDLINE: &str = "/etc/tuned/bootcmdline";
const ARGUMENTS: &str = "TUNED_BOOT_CMDLINE";
const INITRD: &str = "TUNED_BOOT_INITRD_ADD";
/// What changing a boot loader's file may cost.
pub const RISK: &str =
    "a wrong kernel argument can keep the machine from booting; the boot menu lets you edit it";

pub(super) static PLUGIN: Plugin = Plugin {
    name: "bootloader",
    summary: "Adds kernel arguments and an initial ramdisk for the next boot",
    options: &[
        OptionSpec {
            name: "cmdline*",
            help: "Kernel arguments; all options whose name begins so count together: `+` in front adds, `-` takes \
                   away what an earlier one added",
            default: "",
        },
        OptionSpec {
            name: "grub2_cfg_file",
            help: "The grub.cfg to edit, by its path",
            default: "found by itself",
        },
        OptionSpec {
            name: "initrd_dst_img",
            help: "Name of the additional ramdisk in /boot",
            default: "the name of the source",
        },
        OptionSpec {
            name: "initrd_add_img",
            help: "A ramdisk image to load besides the system's own",
            default: "",
        },
        OptionSpec {
            name: "initrd_add_dir",
            help: "A directory to build an additional ramdisk from",
            default: "",
        },
        OptionSpec {
            name: "initrd_remove_dir",
            help: "Whether the directory is removed after that: 1 or 0",
            default: "0",
        },
        OptionSpec {
            name: "skip_grub_config",
            help: "1 writes the arguments to /etc/tuned/bootcmdline only",
            default: "0",
        },
    ],
    devices: None,
    plan,
};

/// What the loaders' files are to say.
struct Request {
    edit: Edit,
    /// The `grub.cfg` the profile names.
    grub_config: Option<String>,
    /// The additional ramdisk as the loader sees it.
    initrd: Option<String>,
}

/// A file's text before and after; `None` for no file.
struct Change {
    path: String,
    old: Option<String>,
    new: Option<String>,
}

impl Change {
    fn new(path: &str, old: Option<String>, new: Option<String>) -> Self {
        Self { path: path.to_owned(), old, new }
    }
}

/// A file that is not understood; the line is 0 when the whole file is meant.
struct Unparsed {
    file: String,
    line: usize,
    why: String,
}

impl Unparsed {
    fn new(file: &str, line: usize, why: &str) -> Self {
        Self { file: file.to_owned(), line, why: why.to_owned() }
    }
}

impl fmt::Display for Unparsed {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.line {
            0 => write!(out, "{}: {}", self.file, self.why)?,
            line => write!(out, "{}:{line}: {}", self.file, self.why)?,
        }
        out.write_str("; nothing is changed, set the arguments with the boot loader's own tools")
    }
}

/// The file's text, or `None` when there is no such file.
fn read(scene: &Scene, path: &str) -> Result<Option<String>, Unparsed> {
    match scene.host.read(path) {
        Ok(bytes) => String::from_utf8(bytes).map(Some).map_err(|_| Unparsed::new(path, 0, "is no text")),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) if NotRecorded::is(&error) => Err(Unparsed::new(path, 0, "is not in this capture")),
        Err(error) => {
            Err(Unparsed::new(path, 0, &format!("cannot be read: {}", zenkai_host::errno_name(&error))))
        }
    }
}

/// The wants for kernel arguments that no profile brings, as a remedy does: `key=value` takes the place of every
/// argument of that key, and an empty value removes it. A caller adds [`RISK`] to each.
pub fn kernel_argument_wishes(scene: &Scene, settings: &[(String, String)]) -> Vec<Want> {
    let given = |(key, value): &(String, String)| format!("{key}={value}");
    let edit = Edit {
        ours: Vec::new(),
        keys: settings.iter().map(|(key, _)| key.clone()).collect(),
        add: settings.iter().filter(|(_, value)| !value.is_empty()).map(given).collect(),
    };
    wants(scene, &Request { edit, grub_config: None, initrd: None })
}

/// What is to be done to the loader that is here.
fn wants(scene: &Scene, request: &Request) -> Vec<Want> {
    if let Some(word) = arguments::unsafe_word(&request.edit.add) {
        let why = format!("the argument `{word}` has letters that boot loaders read as their own");
        return vec![Want::Cannot { why, fault: Fault::Profile }];
    }
    if image::is_image(scene) {
        return vec![image::want(scene, request)];
    }
    let changes = match grub::config(scene, request) {
        Some(config) if grub::uses_entries(scene, &config) && !entries::paths(scene).is_empty() => {
            entries::changes(scene, request)
        }
        Some(config) => grub::changes(scene, request, &config),
        None if entries::paths(scene).is_empty() => {
            let why = "no boot loader that zenkai knows: GRUB 2, boot loader entries, rpm-ostree".to_owned();
            return vec![Want::Cannot { why, fault: Fault::Machine }];
        }
        None => entries::changes(scene, request),
    };
    match changes {
        Err(problem) => vec![Want::Cannot { why: problem.to_string(), fault: Fault::Reading }],
        Ok(changes) => changes.into_iter().filter(|change| change.old != change.new).map(file).collect(),
    }
}

fn file(change: Change) -> Want {
    let to = change.new.map_or(Value::Absent, Value::Text);
    Want::Set { knob: Knob::File(change.path), to, when: When::AfterReboot }
}

fn plan(scene: &Scene, instance: &Instance, wishes: &mut Wishes) {
    let add = arguments::combined(&instance.options);
    let cmdline = instance.options.iter().rfind(|option| option.name.starts_with("cmdline"));
    let ramdisk = match initrd::wanted(scene, instance) {
        Ok(ramdisk) => ramdisk,
        Err((option, why)) => {
            wishes.cannot(option, "", Fault::Profile, why);
            return;
        }
    };
    let Some(option) = cmdline.or(ramdisk.as_ref().map(|ramdisk| ramdisk.option)) else { return };
    let old = match read(scene, BOOTCMDLINE) {
        Ok(text) => text.unwrap_or_default(),
        Err(problem) => {
            wishes.cannot(option, "", Fault::Reading, problem.to_string());
            return;
        }
    };
    let ours = assigned(&old, ARGUMENTS).split_whitespace().map(ToOwned::to_owned).collect();
    let request = Request {
        edit: Edit { ours, keys: Vec::new(), add },
        grub_config: instance.option("grub2_cfg_file").map(|option| option.value.trim().to_owned()),
        initrd: ramdisk.as_ref().map(|ramdisk| ramdisk.seen_by_loader.clone()),
    };
    let skip = instance.option("skip_grub_config").is_some_and(|option| is_true(&option.value));
    let wanted = if skip { Vec::new() } else { wants(scene, &request) };
    let refused = wanted.iter().any(|want| matches!(want, Want::Cannot { .. }));
    if let (Some(ramdisk), false, false) = (&ramdisk, skip, refused) {
        ramdisk.wish(wishes);
    }
    for want in wanted {
        wishes.want(option, "", want).risk = Some(RISK.to_owned());
    }
    if !refused {
        let text = patched(&old, &request.edit.add, request.initrd.as_deref().unwrap_or_default());
        if text != old {
            file_wish(wishes, option, text);
        }
        pending(scene, option, &request.edit, wishes);
    }
}

fn file_wish(wishes: &mut Wishes, option: &OptionText, text: String) {
    let want = Want::Set { knob: Knob::File(BOOTCMDLINE.into()), to: text.into(), when: When::AfterReboot };
    wishes.want(option, "", want);
}

/// Says what the running kernel lacks.
fn pending(scene: &Scene, option: &OptionText, edit: &Edit, wishes: &mut Wishes) {
    let Some(running) = scene.text("/proc/cmdline") else { return };
    let missing = edit.missing_in(&running);
    if !missing.is_empty() {
        let why = format!("the running kernel lacks {}; it needs a reboot", missing.join(" "));
        wishes.want(option, "", Want::Leave(why));
    }
}

/// The value of a shell assignment in the file.
fn assigned<'t>(text: &'t str, name: &str) -> &'t str {
    let value = text.lines().filter_map(|line| line.strip_prefix(name)?.strip_prefix('=')).next_back();
    value.unwrap_or_default().trim().trim_matches('"')
}

/// `bootcmdline` with both variables set; its other lines stay.
fn patched(old: &str, arguments: &[String], initrd: &str) -> String {
    let ours = |line: &&str| {
        [ARGUMENTS, INITRD]
            .iter()
            .any(|name| line.strip_prefix(name).is_some_and(|rest| rest.starts_with('=')))
    };
    let mut text = String::new();
    for line in old.lines().filter(|line| !ours(line)) {
        text.push_str(line);
        text.push('\n');
    }
    text.push_str(&format!("{ARGUMENTS}=\"{}\"\n{INITRD}=\"{initrd}\"\n", arguments.join(" ")));
    text
}

fn is_true(text: &str) -> bool {
    matches!(text.trim().to_ascii_lowercase().as_str(), "1" | "true" | "yes" | "y" | "on" | "t")
}

#[cfg(test)]
mod tests;
