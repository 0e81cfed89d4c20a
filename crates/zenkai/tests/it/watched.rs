//! What a profile may change on a live machine: every writable file of the kernel's that can be read back, and the
//! files of configuration that tuned writes. A snapshot of some 1 800 of them takes a tenth of a second.

use std::{
    collections::BTreeMap,
    fs,
    os::unix::fs::{MetadataExt as _, PermissionsExt as _},
    path::Path,
};

/// Below these, every file that root may write and read is watched.
pub(crate) const KERNEL: [&str; 9] = [
    "/proc/sys",
    "/proc/irq",
    "/sys/block",
    "/sys/class/net",
    "/sys/class/scsi_host",
    "/sys/devices/system/cpu",
    "/sys/devices/virtual/workqueue",
    "/sys/kernel/mm",
    "/sys/module",
];

/// Below these, every file is watched; tuned's own notes on which profile is active, in `/etc/tuned`, are no setting.
pub(crate) const FILES: [&str; 5] =
    ["/etc/modprobe.d", "/etc/sysctl.d", "/etc/systemd", "/etc/default", "/boot/grub"];

/// Files that change by themselves, or whose reading or writing is an act rather than a value.
pub(crate) const RESTLESS: [&str; 8] = [
    "/proc/sys/kernel/random/",
    "/proc/sys/kernel/ns_last_pid",
    "/proc/sys/fs/binfmt_misc/",
    "/sys/module/damon",
    "/sys/kernel/mm/damon/",
    "/sys/kernel/mm/lru_gen/",
    "/bdi/max_bytes",
    "/bdi/min_bytes",
];

/// A longer file is no setting.
pub(crate) const LONGEST: usize = 65_536;

/// The content of every watched file, by path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Watched(pub(crate) BTreeMap<String, String>);

impl Watched {
    pub(crate) fn look() -> Self {
        let mut files = BTreeMap::new();
        for root in KERNEL {
            walk(Path::new(root), true, 0, &mut files);
        }
        for root in FILES {
            walk(Path::new(root), false, 0, &mut files);
        }
        Self(files)
    }

    /// What differs, with the content here and there; `None` where there is no such file.
    pub(crate) fn differences(&self, other: &Self) -> BTreeMap<String, (Option<String>, Option<String>)> {
        let paths = self.0.keys().chain(other.0.keys());
        let both = |path: &String| (self.0.get(path).cloned(), other.0.get(path).cloned());
        paths.map(|path| (path.clone(), both(path))).filter(|(_, (here, there))| here != there).collect()
    }

    /// Writes back what has changed since. Twice, since one value may disturb another (`dirty_bytes` and
    /// `dirty_ratio`); what cannot be written is seen in the next comparison.
    pub(crate) fn put_back(&self) {
        for _ in 0..2 {
            for (path, (here, _)) in self.differences(&Self::look()) {
                let Some(content) = here else {
                    fs::remove_file(&path).unwrap_or_default();
                    continue;
                };
                fs::write(&path, chosen(&content)).unwrap_or_default();
            }
        }
    }
}

/// The word in brackets of a list of choices, as the kernel wants it written, or the whole content.
fn chosen(content: &str) -> &str {
    match content.split_once('[').and_then(|(_, rest)| rest.split_once(']')) {
        Some((word, _)) if !content.starts_with('#') && content.lines().count() == 1 => word,
        _ => content,
    }
}

fn walk(directory: &Path, kernel: bool, depth: usize, files: &mut BTreeMap<String, String>) {
    let Ok(entries) = fs::read_dir(directory) else { return };
    for path in entries.flatten().map(|entry| entry.path()) {
        let name = path.to_string_lossy().into_owned();
        let Ok(kind) = fs::symlink_metadata(&path) else { continue };
        if RESTLESS.iter().any(|word| name.contains(word)) {
            continue;
        }
        if kind.is_dir() {
            walk(&path, kernel, depth + 1, files);
        } else if kind.is_symlink() && depth == 0 && kernel {
            // `/sys/block/vda` and its like lead into the tree of devices: only their settings, not their parts.
            for part in ["", "queue", "queue/iosched", "bdi"] {
                plain_files(&path.join(part), files);
            }
        } else if kind.is_file() && (!kernel || kind.permissions().mode() & 0o600 == 0o600) {
            keep(&path, files);
        }
    }
}

fn plain_files(directory: &Path, files: &mut BTreeMap<String, String>) {
    let Ok(entries) = fs::read_dir(directory) else { return };
    for path in entries.flatten().map(|entry| entry.path()) {
        let writable = |kind: fs::Metadata| kind.is_file() && kind.mode() & 0o600 == 0o600;
        if fs::symlink_metadata(&path).is_ok_and(writable) {
            keep(&path, files);
        }
    }
}

fn keep(path: &Path, files: &mut BTreeMap<String, String>) {
    let name = path.to_string_lossy().into_owned();
    // `uevent` repeats facts; writing to it makes an event.
    if name.ends_with("/uevent") || RESTLESS.iter().any(|word| name.contains(word)) {
        return;
    }
    if let Ok(content) = fs::read(path)
        && content.len() <= LONGEST
    {
        files.insert(name, String::from_utf8_lossy(&content).into_owned());
    }
}
