//! Systems that are images (rpm-ostree, bootc): their own commands keep kernel arguments from image to image.

use zenkai_host::Act;

use super::{Request, entries};
use crate::{Scene, Want};

/// Made by ostree at boot (`ostree-prepare-root`).
pub(super) fn is_image(scene: &Scene) -> bool {
    scene.exists("/run/ostree-booted")
}

pub(super) fn want(scene: &Scene, request: &Request) -> Want {
    let edit = &request.edit;
    let next_boot: Vec<String> = entries::paths(scene).iter().filter_map(|path| scene.text(path)).collect();
    let command = |argv: Vec<String>| Act::Command { argv };
    let words = |words: &[&str]| words.iter().map(ToString::to_string).collect::<Vec<_>>();
    let has_all = |entry: &String| edit.apply(options(entry)) == options(entry);
    if next_boot.iter().any(has_all) {
        return Want::Leave("a boot entry has these arguments".to_owned());
    }
    if !scene.exists("/usr/bin/rpm-ostree") {
        let set = |options: String| {
            let mut argv = words(&["bootc", "loader-entries", "set-options-for-source", "--source", "tuned"]);
            argv.extend(["--options".to_owned(), options]);
            command(argv)
        };
        return Want::Run {
            act: set(edit.add.join(" ")),
            undo: Some(set(edit.ours.join(" "))),
            verify: None,
        };
    }
    let current = next_boot.first().map(|entry| options(entry)).unwrap_or_default();
    let gone: Vec<&str> = current
        .split_whitespace()
        .filter(|word| !edit.apply(current).split_whitespace().any(|kept| kept == *word))
        .collect();
    let new = edit.missing_in(current);
    let argv = |append: &[&str], delete: &[&str]| {
        let mut argv = words(&["rpm-ostree", "kargs"]);
        argv.extend(append.iter().map(|word| format!("--append-if-missing={word}")));
        argv.extend(delete.iter().map(|word| format!("--delete-if-present={word}")));
        command(argv)
    };
    Want::Run { act: argv(&new, &gone), undo: Some(argv(&gone, &new)), verify: None }
}

fn options(entry: &str) -> &str {
    entry.lines().find_map(|line| line.strip_prefix("options ")).map(str::trim).unwrap_or_default()
}
