//! GRUB 2 without loader entries: `grub.cfg` for the next boot, and the files it is made of for later ones.

use super::{Change, Request, Unparsed, read};
use crate::Scene;

const DEFAULTS: &str = "/etc/default/grub";
const DROP_IN: &str = "/etc/default/grub.d/zz-zenkai.cfg";
const DROP_IN_START: &str =
    "# Written by zenkai with the active profile.\nGRUB_CMDLINE_LINUX_DEFAULT=\"$GRUB_CMDLINE_LINUX_DEFAULT ";
/// Where distributions have their `grub.cfg`: Red Hat's and SUSE's place, Debian's place, Red Hat's links.
const CONFIGS: [&str; 4] =
    ["/boot/grub2/grub.cfg", "/boot/grub/grub.cfg", "/etc/grub2.cfg", "/etc/grub2-efi.cfg"];

/// The `grub.cfg` that is there.
pub(super) fn config(scene: &Scene, request: &Request) -> Option<String> {
    let given = request.grub_config.clone();
    given.or_else(|| CONFIGS.iter().find(|path| scene.exists(path)).map(ToString::to_string))
}

/// Whether GRUB takes its kernels from loader entries (`blscfg`).
pub(super) fn uses_entries(scene: &Scene, config: &str) -> bool {
    let command = |text: String| text.lines().any(|line| line.split_whitespace().next() == Some("blscfg"));
    scene.text(config).is_some_and(command)
}

pub(super) fn changes(scene: &Scene, request: &Request, config: &str) -> Result<Vec<Change>, Unparsed> {
    let text = read(scene, config)?.ok_or_else(|| Unparsed::new(config, 0, "does not exist"))?;
    let (new, by_variable) = edited(config, &text, request)?;
    let mut changes = vec![Change::new(config, Some(text), Some(new))];
    // With tuned's variable in it, grub.cfg is made again from bootcmdline by /etc/grub.d/00_tuned.
    if !by_variable {
        let debian = scene.exists("/etc/debian_version") || scene.exists("/etc/default/grub.d");
        if debian {
            changes.push(drop_in(scene, request)?);
        }
        changes.extend(defaults(scene, request, !debian)?);
    }
    Ok(changes)
}

/// `grub.cfg` with every kernel line but the rescue ones edited, and whether that went by `$tuned_params`.
fn edited(file: &str, text: &str, request: &Request) -> Result<(String, bool), Unparsed> {
    let mut depth = 0_i64;
    let mut kernels = 0_usize;
    let by_variable = text.lines().any(|line| line.trim_start().starts_with("set tuned_params="))
        && text.contains("$tuned_params");
    let mut new = String::with_capacity(text.len() + 256);
    let mut rescue = false;
    let mut foreign = false;
    for (at, line) in text.lines().enumerate() {
        // grub-mkconfig marks each part with the script it comes from; this one lists other systems' kernels.
        foreign = match line.strip_prefix("### BEGIN ") {
            Some(part) => part.contains("os-prober"),
            None => foreign && !line.starts_with("### END "),
        };
        let problem = |why: &str| Unparsed::new(file, at + 1, why);
        let words = words(line).ok_or_else(|| problem("a quote or a line that goes on in the next"))?;
        for word in &words {
            depth += i64::from(*word == "{") - i64::from(*word == "}");
        }
        if depth < 0 {
            return Err(problem("a `}` too many"));
        }
        let line = match words.as_slice() {
            _ if foreign => line.to_owned(),
            ["linux" | "linux16" | "linuxefi" | "module" | "module2", path, arguments @ ..]
                if is_kernel(words[0], path) =>
            {
                if line.contains(';') || line.contains(" #") {
                    return Err(problem("more than a kernel line"));
                }
                kernels += 1;
                rescue = is_rescue(path, arguments);
                if rescue || by_variable { line.to_owned() } else { kernel_line(line, path, request) }
            }
            ["initrd" | "initrd16" | "initrdefi", ..] if !rescue && !by_variable => {
                initrd_line(line, &words, request)
            }
            ["set", variable, ..] if variable.starts_with("tuned_params=") => {
                format!("set tuned_params=\"{}\"", request.edit.add.join(" "))
            }
            ["set", variable, ..] if variable.starts_with("tuned_initrd=") => {
                format!("set tuned_initrd=\"{}\"", request.initrd.as_deref().unwrap_or_default())
            }
            _ => line.to_owned(),
        };
        new.push_str(&line);
        new.push('\n');
    }
    if depth != 0 {
        return Err(Unparsed::new(file, text.lines().count(), "a `}` is missing"));
    }
    if kernels == 0 {
        return Err(Unparsed::new(file, 0, "has no kernel line"));
    }
    Ok((new, by_variable))
}

/// The words of a line of GRUB's language; quotes keep theirs. `None` when a quote stays open or the line goes on.
fn words(line: &str) -> Option<Vec<&str>> {
    let mut quote = None;
    let mut start = None;
    let mut words = Vec::new();
    let mut escaped = false;
    for (at, letter) in line.char_indices() {
        if escaped {
            escaped = false;
            continue;
        }
        match (quote, letter) {
            (Some('\''), '\'') | (Some('"'), '"') => quote = None,
            (None | Some('"'), '\\') => {
                escaped = true;
                start = start.or(Some(at));
            }
            (None, '\'' | '"') => {
                quote = Some(letter);
                start = start.or(Some(at));
            }
            (None, '#') if start.is_none() => return Some(words),
            (None, letter) if letter.is_whitespace() || letter == ';' => {
                words.extend(start.take().map(|start| &line[start..at]));
            }
            _ => start = start.or(Some(at)),
        }
    }
    if quote.is_some() || escaped {
        return None;
    }
    words.extend(start.map(|start| &line[start..]));
    Some(words)
}

/// With Xen the kernel is a module of the hypervisor.
fn is_kernel(command: &str, path: &str) -> bool {
    let name = path.rsplit('/').next().unwrap_or(path);
    if command.starts_with("module") { name.starts_with("vmlinuz") } else { !name.starts_with("memtest") }
}

fn is_rescue(path: &str, arguments: &[&str]) -> bool {
    let rescue = ["single", "recovery", "rescue", "systemd.unit=rescue.target"];
    path.contains("rescue") || arguments.iter().any(|argument| rescue.contains(argument))
}

fn kernel_line(line: &str, path: &str, request: &Request) -> String {
    let Some(at) = line.find(path) else { return line.to_owned() };
    let (head, arguments) = line.split_at(at + path.len());
    let new = request.edit.apply(arguments);
    if new == arguments { line.to_owned() } else { format!("{head} {new}") }
}

fn initrd_line(line: &str, words: &[&str], request: &Request) -> String {
    match &request.initrd {
        Some(image) if !words.contains(&image.as_str()) => format!("{line} {image}"),
        _ => line.to_owned(),
    }
}

/// Debian reads `/etc/default/grub.d/*.cfg` after `/etc/default/grub`: a file of our own leaves the user's alone.
fn drop_in(scene: &Scene, request: &Request) -> Result<Change, Unparsed> {
    let old = read(scene, DROP_IN)?;
    let words = match &old {
        None => "",
        Some(text) => text
            .strip_prefix(DROP_IN_START)
            .and_then(|rest| rest.strip_suffix("\"\n"))
            .filter(|words| !words.contains(['"', '\n']))
            .ok_or_else(|| Unparsed::new(DROP_IN, 2, "is not as zenkai wrote it"))?,
    };
    let words = request.edit.apply(words);
    let new = (!words.is_empty()).then(|| format!("{DROP_IN_START}{words}\"\n"));
    Ok(Change::new(DROP_IN, old, new))
}

/// `/etc/default/grub`: arguments go from both lists, and are added to `GRUB_CMDLINE_LINUX` where there is no drop-in.
fn defaults(scene: &Scene, request: &Request, add: bool) -> Result<Option<Change>, Unparsed> {
    let Some(text) = read(scene, DEFAULTS)? else { return Ok(None) };
    let removing = super::Edit { add: Vec::new(), ..request.edit.clone() };
    let mut new = String::new();
    let mut added = false;
    let last = text
        .lines()
        .enumerate()
        .filter(|(_, line)| assigned(line).0 == "GRUB_CMDLINE_LINUX")
        .last()
        .map(|(at, _)| at);
    for (at, line) in text.lines().enumerate() {
        let (name, value) = assigned(line);
        if name != "GRUB_CMDLINE_LINUX" && name != "GRUB_CMDLINE_LINUX_DEFAULT" {
            new.push_str(line);
            new.push('\n');
            continue;
        }
        let plain = value
            .strip_prefix('"')
            .and_then(|rest| rest.strip_suffix('"'))
            .or_else(|| value.strip_prefix('\'').and_then(|rest| rest.strip_suffix('\'')))
            .unwrap_or(value);
        let here = add && Some(at) == last;
        added |= here;
        let words = if here { request.edit.apply(plain) } else { removing.apply(plain) };
        if words == plain {
            new.push_str(line);
        } else if plain.contains(['"', '\'', '`', '$', '\\']) {
            return Err(Unparsed::new(DEFAULTS, at + 1, "the value is more than plain words"));
        } else {
            new.push_str(&format!("{name}=\"{words}\""));
        }
        new.push('\n');
    }
    if add && !added && !request.edit.add.is_empty() {
        new.push_str(&format!("GRUB_CMDLINE_LINUX=\"{}\"\n", request.edit.add.join(" ")));
    }
    Ok(Some(Change::new(DEFAULTS, Some(text), Some(new))))
}

fn assigned(line: &str) -> (&str, &str) {
    line.split_once('=').map_or(("", ""), |(name, value)| (name.trim(), value.trim()))
}
