//! Directories of drop-in files with one set of rules: of files with one name the earliest directory's counts, and
//! files are applied in the order of their names.

use std::collections::BTreeMap;

use serde::Serialize;
use zenkai_host::EntryKind;

use crate::{Reader, reader::join};

/// The most files that are looked at.
const FILE_LIMIT: usize = 512;

/// One file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct SourceFile {
    /// Its path.
    pub path: String,
    /// Where it leads, when it is a link.
    pub target: Option<String>,
    /// The file, or `/dev/null`, that keeps it from being read.
    pub masked_by: Option<String>,
}

impl SourceFile {
    /// Whether it is read at all.
    pub fn counts(&self) -> bool {
        self.masked_by.is_none()
    }

    /// Whether it is, or leads to, this path.
    pub(super) fn leads_to(&self, path: &str) -> bool {
        self.path == path || self.target.as_deref() == Some(path)
    }
}

/// The files in these directories, in the order in which they are applied, the masked ones beside those that mask
/// them.
pub(super) fn files(reader: &Reader<'_>, dirs: &[&str]) -> Vec<SourceFile> {
    let mut by_name: BTreeMap<String, Vec<SourceFile>> = BTreeMap::new();
    let mut count = 0;
    for dir in dirs {
        // `/lib` is a link to `/usr/lib` nearly everywhere: the same files under another name.
        if dir.starts_with("/lib/") && reader.resolve(dir).text().is_some_and(|target| target != *dir) {
            continue;
        }
        let entries = reader.entries(dir);
        for entry in entries.get().into_iter().flatten() {
            let is_file = entry.kind != EntryKind::Directory && entry.name.strip_suffix(".conf").is_some();
            if !is_file || count >= FILE_LIMIT {
                continue;
            }
            count += 1;
            let path = join(dir, &entry.name);
            let target = (entry.kind == EntryKind::Link)
                .then(|| reader.resolve(&path).text().unwrap_or("(nowhere)").to_owned());
            let same_name = by_name.entry(entry.name.clone()).or_default();
            let masked_by = match same_name.first() {
                Some(first) => Some(first.path.clone()),
                None => target.clone().filter(|target| target == "/dev/null"),
            };
            same_name.push(SourceFile { path, target, masked_by });
        }
    }
    by_name.into_values().flatten().collect()
}
