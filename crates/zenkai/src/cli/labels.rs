//! Captures that are kept on this machine under a name: `zenkai capture --label before-upgrade`.

use std::{
    fs::{DirBuilder, OpenOptions},
    io::{self, Write},
    os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt},
    path::PathBuf,
};

use anyhow::{Context as _, anyhow};
use zenkai_report::Block;
use zenkai_tune::transaction::Store;

use super::{CommandError, Exit, change::is_root, output};

/// A longer name helps nobody.
const LONGEST: usize = 64;

/// Whether a text can be a label: letters, digits, `_`, `.` and `-`, beginning with a letter or digit. `now` is taken.
pub(super) fn is_label(name: &str) -> bool {
    name != "now"
        && name.len() <= LONGEST
        && name.starts_with(|letter: char| letter.is_ascii_alphanumeric())
        && name.chars().all(|letter| letter.is_ascii_alphanumeric() || "_.-".contains(letter))
}

fn folder() -> String {
    state_folder("captures")
}

/// A folder of the state directory.
pub(super) fn state_folder(name: &str) -> String {
    format!("{}/{name}", Store::DEFAULT)
}

/// Makes a folder of the state directory that only root can write to, or refuses the one that is there.
pub(super) fn make_state_folder(name: &str) -> Result<String, CommandError> {
    // Makes the state directory and refuses one that others could write to.
    drop(Store::open(Store::DEFAULT)?);
    let folder = state_folder(name);
    match DirBuilder::new().mode(0o700).create(&folder) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => {
            return Err(anyhow::Error::new(error).context(folder).into());
        }
        _ => {}
    }
    let shape = PathBuf::from(&folder).symlink_metadata().with_context(|| folder.clone())?;
    if !shape.is_dir() || shape.uid() != 0 || shape.mode() & 0o022 != 0 {
        return Err(CommandError::not_permitted(anyhow!("{folder} could be written by others than root"))
            .hint(format!("look at it, then `chown root {folder}; chmod 700 {folder}`")));
    }
    Ok(folder)
}

/// Where the capture of this label is, or would be.
pub(super) fn path(label: &str) -> PathBuf {
    PathBuf::from(format!("{}/{label}.capture", folder()))
}

/// Where the recording of this label is, or would be.
pub(super) fn recording(label: &str) -> PathBuf {
    PathBuf::from(format!("{}/{label}", state_folder("recordings")))
}

/// The directory of the recording that is called so: a directory, or a label.
pub(super) fn find_recording(name: &str) -> Result<PathBuf, CommandError> {
    let path = PathBuf::from(name);
    let is_absent =
        |path: &PathBuf| path.metadata().is_err_and(|error| error.kind() == io::ErrorKind::NotFound);
    if !is_absent(&path) || !is_label(name) {
        return Ok(path);
    }
    let kept = recording(name);
    if is_absent(&kept) {
        return Err(CommandError::usage(anyhow!("{name} is no directory and no label of a recording"))
            .hint("`zenkai capture --list` shows the labels")
            .hint(format!("zenkai record --runs 10 --label {name} -- COMMAND")));
    }
    Ok(kept)
}

/// Makes the directory of a recording, for root's eyes only.
pub(super) fn make_recording(label: &str) -> Result<PathBuf, CommandError> {
    make_state_folder("recordings")?;
    let dir = recording(label);
    DirBuilder::new().mode(0o700).create(&dir).with_context(|| dir.display().to_string())?;
    Ok(dir)
}

/// Refuses a label that cannot be used or is taken, and everybody but root.
pub(super) fn check(label: &str) -> Result<(), CommandError> {
    if !is_label(label) {
        return Err(CommandError::usage(anyhow!("a capture cannot be called {label:?}")).hint(format!(
            "letters, digits, `_`, `.` and `-`, at most {LONGEST} of them, the first a letter or digit; not `now`"
        )));
    }
    if !is_root() {
        return Err(CommandError::not_permitted(anyhow!("only root may keep labels in {}", Store::DEFAULT))
            .hint("`zenkai capture -o FILE` writes to a file of yours, `zenkai record --out DIR` to a directory"));
    }
    // Who types the same label after the upgrade would lose what was there before it.
    // Captures and recordings share their names, since `zenkai diff` takes both.
    for (what, kept) in [("capture", path(label)), ("recording", recording(label))] {
        if kept.symlink_metadata().is_ok() {
            let error = CommandError::usage(anyhow!("there is a {what} called {label} already"))
                .hint(format!("another name, or remove {} first", kept.display()));
            let goes_on = format!("zenkai record --resume {label}, where it was interrupted");
            return Err(if what == "recording" { error.hint(goes_on) } else { error });
        }
    }
    Ok(())
}

/// Writes the capture, for root's eyes only, and says where.
pub(super) fn keep(label: &str, text: &str) -> Result<String, CommandError> {
    make_state_folder("captures")?;
    let path = path(label);
    let shown = path.display().to_string();
    let mut file = OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(&path)
        .with_context(|| format!("cannot write {shown}"))?;
    if let Err(error) = file.write_all(text.as_bytes()).and_then(|()| file.sync_all()) {
        // Half a capture would hold the name. The first error is the one worth telling.
        let _ = rustix::fs::unlink(&path);
        return Err(anyhow::Error::new(error).context(shown).into());
    }
    Ok(shown)
}

/// `zenkai capture --list`
#[expect(clippy::disallowed_methods, reason = "our own state directory")]
pub(super) fn list(out: &mut dyn Write) -> Result<Exit, CommandError> {
    let mut rows = Vec::new();
    for (what, folder) in [("capture", folder()), ("recording", state_folder("recordings"))] {
        let entries = match std::fs::read_dir(&folder) {
            Ok(entries) => entries,
            Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
            Err(error) => return Err(anyhow::Error::new(error).context(folder).into()),
        };
        for entry in entries {
            let entry = entry?;
            let name = entry.file_name().to_string_lossy().into_owned();
            let label = if what == "capture" { name.strip_suffix(".capture") } else { Some(name.as_str()) };
            let Some(label) = label.filter(|label| is_label(label)) else { continue };
            // A recording is a directory, whose own size says nothing.
            let size = entry.metadata().ok().filter(|_| what == "capture");
            let size = size.map_or(String::new(), |shape| format!("{} kB", shape.len() / 1000));
            rows.push(vec![label.to_owned(), what.to_owned(), size]);
        }
    }
    rows.sort();
    let none =
        "none; `zenkai capture --label NAME` and `zenkai record --runs N --label NAME` keep one".to_owned();
    output::write_blocks(out, &[if rows.is_empty() { Block::Text(none) } else { Block::Table(rows) }])?;
    Ok(Exit::Fine)
}

#[cfg(test)]
mod tests {
    use super::is_label;

    #[test]
    fn labels_are_plain_names() {
        assert!(is_label("before-upgrade") && is_label("6.1.0_a"));
        for bad in ["", "now", ".hidden", "-x", "../x", "a/b", "a b", "ä", &"x".repeat(65)] {
            assert!(!is_label(bad), "{bad}");
        }
    }
}
