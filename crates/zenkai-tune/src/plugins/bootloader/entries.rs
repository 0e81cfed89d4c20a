//! Boot Loader Specification entries (`loader/entries/*.conf`), which GRUB and systemd-boot both read.

use super::{Change, Request, Unparsed, read};
use crate::Scene;

/// Where the boot partition or the EFI system partition is mounted.
const DIRS: [&str; 3] = ["/boot/loader/entries", "/efi/loader/entries", "/boot/efi/loader/entries"];
/// What kernel-install(8) gives to kernels installed later.
const FOR_LATER: &str = "/etc/kernel/cmdline";
const ENVIRONMENTS: [&str; 2] = ["/boot/grub2/grubenv", "/boot/grub/grubenv"];
/// `GRUB_ENVBLK_DEFCFG` in GRUB: the block has exactly this size, for GRUB writes it in place.
const ENVIRONMENT_SIZE: usize = 1024;
const ENVIRONMENT_HEAD: &str = "# GRUB Environment Block\n";

/// The entries' paths.
pub(super) fn paths(scene: &Scene) -> Vec<String> {
    DIRS.iter()
        .flat_map(|dir| scene.names(dir).into_iter().map(move |name| format!("{dir}/{name}")))
        .filter(|path| path.as_bytes().ends_with(b".conf"))
        .collect()
}

pub(super) fn changes(scene: &Scene, request: &Request) -> Result<Vec<Change>, Unparsed> {
    let mut changes = Vec::new();
    let mut variables: Vec<&str> = Vec::new();
    for path in paths(scene) {
        let Some(text) = read(scene, &path)? else { continue };
        if path.contains("rescue") {
            continue;
        }
        let new = entry(&path, &text, request, &mut variables)?;
        changes.push(Change::new(&path, Some(text), Some(new)));
    }
    variables.sort_unstable();
    variables.dedup();
    if !variables.is_empty() {
        changes.push(environment(scene, request, &variables)?);
    }
    if let Some(text) = read(scene, FOR_LATER)? {
        if text.trim_end().contains('\n') {
            return Err(Unparsed::new(FOR_LATER, 2, "more than one line"));
        }
        let new = request.edit.apply(text.trim_end());
        let new = if new == text.trim_end() { text.clone() } else { format!("{new}\n") };
        changes.push(Change::new(FOR_LATER, Some(text), Some(new)));
    }
    Ok(changes)
}

/// One entry with its options edited. Options that stand in GRUB's environment are noted in `variables`.
fn entry(
    path: &str,
    text: &str,
    request: &Request,
    variables: &mut Vec<&'static str>,
) -> Result<String, Unparsed> {
    let mut lines: Vec<String> = Vec::new();
    let mut last_options = None;
    let mut last_initrd = None;
    let (mut kernel, mut by_variable) = (false, false);
    for (at, line) in text.lines().enumerate() {
        let (key, value) = line.trim().split_once(char::is_whitespace).unwrap_or((line.trim(), ""));
        let is_key = key.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'-' || byte == b'_');
        if !is_key && !key.starts_with('#') {
            return Err(Unparsed::new(path, at + 1, "is no line of a boot loader entry"));
        }
        match key {
            "linux" => kernel = true,
            "initrd" => last_initrd = Some(at),
            "options" => {
                last_options = Some(at);
                for name in ["kernelopts", "tuned_params"] {
                    if value.split_whitespace().any(|word| word.strip_prefix('$') == Some(name)) {
                        variables.push(name);
                        by_variable = true;
                    }
                }
            }
            _ => {}
        }
        lines.push(line.to_owned());
    }
    // An entry that starts another EFI program has no kernel arguments.
    if !kernel {
        return Ok(text.to_owned());
    }
    let removing = super::Edit { add: Vec::new(), ..request.edit.clone() };
    for (at, line) in lines.iter_mut().enumerate() {
        let Some(value) = line.trim().strip_prefix("options").map(str::trim) else { continue };
        let here = Some(at) == last_options && !by_variable;
        let new = if here { request.edit.apply(value) } else { removing.apply(value) };
        if new != value {
            *line = format!("options {new}");
        }
    }
    if last_options.is_none() && !request.edit.add.is_empty() {
        lines.push(format!("options {}", request.edit.add.join(" ")));
    }
    if let (Some(image), Some(at)) = (&request.initrd, last_initrd)
        && !text.contains(image.as_str())
    {
        lines.insert(at + 1, format!("initrd {image}"));
    }
    let new = lines.join("\n");
    Ok(if new == text.trim_end_matches('\n') { text.to_owned() } else { format!("{new}\n") })
}

/// GRUB's environment with the arguments in one variable of it.
fn environment(scene: &Scene, request: &Request, variables: &[&str]) -> Result<Change, Unparsed> {
    let path = ENVIRONMENTS.into_iter().find(|path| scene.exists(path)).unwrap_or(ENVIRONMENTS[0]);
    let text = read(scene, path)?.ok_or_else(|| Unparsed::new(path, 0, "does not exist"))?;
    let body = text
        .strip_prefix(ENVIRONMENT_HEAD)
        .filter(|_| text.len() == ENVIRONMENT_SIZE)
        .ok_or_else(|| Unparsed::new(path, 1, "is no GRUB environment of 1024 bytes"))?;
    // tuned's own variable is meant for this; with it, the machine's arguments stay as they are.
    let target = if variables.contains(&"tuned_params") { "tuned_params" } else { "kernelopts" };
    let mut new = ENVIRONMENT_HEAD.to_owned();
    let mut found = false;
    for (at, line) in body.lines().filter(|line| !line.starts_with('#')).enumerate() {
        let (name, value) =
            line.split_once('=').ok_or_else(|| Unparsed::new(path, at + 2, "is no `name=value`"))?;
        if name != target {
            new.push_str(&format!("{line}\n"));
        } else if value.contains('\\') {
            return Err(Unparsed::new(path, at + 2, "has escaped letters"));
        } else {
            found = true;
            let tuned = target == "tuned_params";
            let value = if tuned { request.edit.add.join(" ") } else { request.edit.apply(value) };
            new.push_str(&format!("{name}={value}\n"));
        }
    }
    if !found && target == "kernelopts" {
        return Err(Unparsed::new(path, 0, "has no kernelopts, though the entries refer to it"));
    }
    if !found {
        new.push_str(&format!("{target}={}\n", request.edit.add.join(" ")));
    }
    let room = ENVIRONMENT_SIZE
        .checked_sub(new.len())
        .ok_or_else(|| Unparsed::new(path, 0, "has no room for these arguments"))?;
    new.push_str(&"#".repeat(room));
    Ok(Change::new(path, Some(text), Some(new)))
}
