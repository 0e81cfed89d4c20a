//! Which stored experiments root goes on with: going on is doing what their files say, and arms are commands.

use std::{
    fs::DirBuilder,
    os::unix::fs::{DirBuilderExt as _, MetadataExt as _},
    path::{Path, PathBuf},
};

use anyhow::anyhow;
use zenkai_host::trusted_file;

use crate::cli::{CommandError, change::is_root};

/// The files of an experiment that say what is run and what has been run. With the first of them the directory is judged
/// too.
const FILES: [&str; 3] = ["experiment.json", "trials.jsonl", "samples"];

/// The experiment's directory with all links followed. Refused for root when others could have written what is in it,
/// or exchanged it for another.
pub(in crate::cli) fn dir(dir: &Path) -> Result<PathBuf, CommandError> {
    dir_with(dir, &FILES)
}

/// The same for a directory that another command laid down, of which these are the files.
pub(in crate::cli) fn dir_with(dir: &Path, files: &[&str]) -> Result<PathBuf, CommandError> {
    let first = files.first().copied().unwrap_or_default();
    let none = || {
        CommandError::usage(anyhow!("there is no {first} in {}", dir.display()))
            .hint("give the directory that zenkai named when it was interrupted")
    };
    let real = dir.canonicalize().map_err(|_| none())?;
    // Told here and not by the reading of it: until then somebody could put one there.
    real.join(first).canonicalize().map_err(|_| none())?;
    if is_root() {
        check(&real, files)?;
    }
    Ok(real)
}

/// How the directories of an experiment are made: whatever the umask lets the group do, root would refuse to go on with
/// what others can write to.
fn ours() -> DirBuilder {
    let mut builder = DirBuilder::new();
    builder.mode(0o755);
    builder
}

/// Makes a directory that is not there yet.
pub(super) fn make_new(dir: &Path) -> std::io::Result<()> {
    ours().create(dir)
}

/// Makes the directory that an experiment is kept in. Root keeps none in a directory of somebody else's, who could put a
/// link in the place of what is in it, and so decide where root writes.
pub(in crate::cli) fn make(dir: &Path) -> Result<(), CommandError> {
    let failed = |error: std::io::Error| anyhow::Error::new(error).context(dir.display().to_string());
    ours().recursive(true).create(dir).map_err(failed)?;
    let shape = dir.metadata().map_err(failed)?;
    if is_root() && (shape.uid() != 0 || shape.mode() & 0o022 != 0) {
        return Err(CommandError::not_permitted(anyhow!(
            "{} could be written by others than root, so root keeps no experiment there",
            dir.display()
        ))
        .hint("--out DIR with a directory that is not there yet"));
    }
    Ok(())
}

fn check(real: &Path, files: &[&str]) -> Result<(), CommandError> {
    for (nth, name) in files.iter().enumerate() {
        let path = real.join(name);
        let text = path.to_str().ok_or_else(|| CommandError::usage(anyhow!("the path is not UTF-8")))?;
        match trusted_file(text) {
            // In a directory that only root can write to, it stays away.
            Err(error) if nth > 0 && error.kind() == std::io::ErrorKind::NotFound => {}
            result => result.map_err(|error| refused(real, files, &error))?,
        }
    }
    Ok(())
}

fn refused(dir: &Path, files: &[&str], error: &std::io::Error) -> CommandError {
    let (shown, first) = (dir.display(), files.first().copied().unwrap_or_default());
    // Whoever made the directory chose its name, and somebody may paste this.
    let copy = ["cp", "-r", "--no-preserve=mode,ownership", "--", &dir.to_string_lossy(), "/root/"];
    let copy = zenkai_report::shell(&copy.map(str::to_owned));
    CommandError::not_permitted(anyhow!("{error}; the commands stored in {shown} are not run as root"))
        .hint(format!("look at {shown}/{first}, then `{copy}` and go on with the copy"))
}

#[cfg(test)]
#[expect(clippy::disallowed_methods, reason = "the tests make the directories that are judged")]
mod tests {
    use std::{fs, os::unix::fs::PermissionsExt};

    use super::*;
    use crate::cli::Kind;

    #[test]
    fn root_keeps_nothing_in_a_directory_of_others() {
        let top = tempfile::tempdir().unwrap();
        // The umask belongs to the whole process: here it is not touched, but a mode is a mode.
        make_new(&top.path().join("new")).unwrap();
        assert_eq!(fs::metadata(top.path().join("new")).unwrap().permissions().mode() & 0o022, 0);
        let dir = top.path().join("a/b");
        make(&dir).unwrap();
        assert_eq!(fs::metadata(&dir).unwrap().permissions().mode() & 0o022, 0);
        make(&dir).unwrap();
        if is_root() {
            fs::set_permissions(&dir, fs::Permissions::from_mode(0o777)).unwrap();
            assert_eq!(make(&dir).unwrap_err().kind, Kind::NotPermitted);
            fs::set_permissions(&dir, fs::Permissions::from_mode(0o755)).unwrap();
            std::os::unix::fs::chown(&dir, Some(65_534), None).unwrap();
            assert_eq!(make(&dir).unwrap_err().kind, Kind::NotPermitted);
        }
    }

    #[test]
    fn only_what_root_alone_can_write_is_trusted() {
        let top = tempfile::tempdir().unwrap();
        let dir = top.path().canonicalize().unwrap();
        fs::create_dir(dir.join("samples")).unwrap();
        let plan = dir.join("experiment.json");
        fs::write(&plan, "{}").unwrap();
        if !is_root() {
            assert_eq!(check(&dir, &FILES).unwrap_err().kind, Kind::NotPermitted);
            return;
        }
        check(&dir, &FILES).unwrap();
        let mode = |path: &Path, mode| fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
        for (path, bad, good) in [(&plan, 0o664, 0o644), (&plan, 0o646, 0o644), (&dir, 0o775, 0o755)] {
            mode(path, bad);
            let error = check(&dir, &FILES).unwrap_err();
            assert_eq!(error.kind, Kind::NotPermitted);
            assert!(error.error.to_string().contains("may be written by others"), "{}", error.error);
            mode(path, good);
        }
        std::os::unix::fs::chown(&plan, Some(65_534), None).unwrap();
        assert!(check(&dir, &FILES).unwrap_err().error.to_string().contains("does not belong to root"));
        std::os::unix::fs::chown(&plan, Some(0), None).unwrap();
        // A link is judged by where it leads.
        fs::rename(&plan, dir.join("real")).unwrap();
        std::os::unix::fs::symlink("real", &plan).unwrap();
        check(&dir, &FILES).unwrap();
        mode(&dir.join("real"), 0o666);
        assert_eq!(check(&dir, &FILES).unwrap_err().kind, Kind::NotPermitted);
    }
}
