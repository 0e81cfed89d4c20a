//! An additional initial ramdisk.

use zenkai_host::Act;

use super::is_true;
use crate::{Instance, OptionText, Scene, Want, plugins::Wishes};

/// A ramdisk that is to be made, or is there.
pub(super) struct Ramdisk<'i> {
    pub(super) option: &'i OptionText,
    /// Its path on the file system that the loader reads.
    pub(super) seen_by_loader: String,
    wants: Vec<Want>,
}

impl Ramdisk<'_> {
    pub(super) fn wish(&self, wishes: &mut Wishes) {
        for want in &self.wants {
            wishes.want(self.option, "", want.clone()).risk = Some(super::RISK.to_owned());
        }
    }
}

/// What the profile says of a ramdisk; or the option that is wrong, and why.
pub(super) fn wanted<'i>(
    scene: &Scene,
    instance: &'i Instance,
) -> Result<Option<Ramdisk<'i>>, (&'i OptionText, String)> {
    let dir = instance.option("initrd_add_dir");
    let is_dir = dir.is_some();
    let Some(option) = dir.or(instance.option("initrd_add_img")) else { return Ok(None) };
    let source = option.value.trim().trim_end_matches('/');
    let name = instance.option("initrd_dst_img").map_or("", |option| option.value.trim());
    let name = if name.is_empty() { source.rsplit('/').next().unwrap_or_default() } else { name };
    let target = if name.starts_with('/') { name.to_owned() } else { format!("/boot/{name}") };
    if !source.starts_with('/') || source.split('/').any(|part| part == "..") {
        return Err((option, format!("`{source}` is no absolute path")));
    }
    // It becomes a word of the loader's configuration.
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"/._-+".contains(&byte);
    let file = target.strip_prefix("/boot/").unwrap_or_default().rsplit('/').next().unwrap_or_default();
    if file.is_empty() || !target.bytes().all(plain) || target.split('/').any(|part| part == "..") {
        return Err((option, format!("`{target}` is no plain name below /boot")));
    }
    let command = |words: &[&str]| Act::Command { argv: words.iter().map(ToString::to_string).collect() };
    let undo = Some(command(&["rm", "-f", "--", &target]));
    let mut wants = Vec::new();
    if !scene.exists(source) && !scene.exists(&target) {
        return Err((option, format!("{source} does not exist")));
    }
    if scene.exists(&target) && (is_dir || same_bytes(scene, source, &target)) {
        wants.push(Want::Leave(format!("{target} is there")));
    } else if is_dir {
        let script = "cd \"$1\" && find . | cpio -o -H newc > \"$2\"";
        let act = command(&["sh", "-c", script, "sh", source, &target]);
        wants.push(Want::Run { act, undo, verify: None });
        if instance.option("initrd_remove_dir").is_some_and(|option| is_true(&option.value)) {
            let act = command(&["rm", "-rf", "--one-file-system", "--", source]);
            wants.push(Want::Run { act, undo: None, verify: None });
        }
    } else {
        wants.push(Want::Run { act: command(&["cp", "--", source, &target]), undo, verify: None });
    }
    Ok(Some(Ramdisk { option, seen_by_loader: format!("{}{file}", boot_dir(scene)), wants }))
}

fn same_bytes(scene: &Scene, one: &str, other: &str) -> bool {
    matches!((scene.host.read(one), scene.host.read(other)), (Ok(one), Ok(other)) if one == other)
}

/// How GRUB calls `/boot`: the directory of `BOOT_IMAGE=(hd0,gpt2)/vmlinuz` in the kernel's own arguments.
fn boot_dir(scene: &Scene) -> String {
    let arguments = scene.text("/proc/cmdline").unwrap_or_default();
    let image =
        arguments.split_whitespace().find_map(|word| word.strip_prefix("BOOT_IMAGE=")).unwrap_or_default();
    let path = image.rsplit_once(')').map_or(image, |(_, path)| path);
    path.rsplit_once('/').map_or_else(|| "/".to_owned(), |(dir, _)| format!("{dir}/"))
}
