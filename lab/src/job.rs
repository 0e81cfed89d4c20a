//! What a guest is asked to do, and what comes back.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

/// A script to run in a guest, as root, with files beside it.
///
/// The script runs in a folder of its own, which is in `PATH` together with the lab's helpers `rdmsr CPU REGISTER` and
/// `wrmsr CPU|all REGISTER VALUE`. What it leaves in the folder `out` comes back.
#[derive(Debug, Clone)]
pub struct Job {
    pub(crate) script: String,
    pub(crate) files: Vec<(String, PathBuf)>,
    pub(crate) append: String,
    pub(crate) qemu: Vec<String>,
    pub(crate) limit: Duration,
}

impl Job {
    /// A job for `/bin/sh` (busybox or dash), unless the text begins with `#!`.
    ///
    /// The program named by `$ZENKAI_BIN` is put beside it as `zenkai`; see [`Job::program`].
    pub fn shell(script: impl Into<String>) -> Self {
        let files =
            std::env::var_os("ZENKAI_BIN").map(|path| ("zenkai".into(), path.into())).into_iter().collect();
        Self {
            script: script.into(),
            files,
            append: String::new(),
            qemu: Vec::new(),
            limit: Duration::from_secs(600),
        }
    }

    /// Puts a file of the host beside the script, under a name of at most 100 bytes. The last one of a name counts.
    #[must_use]
    pub fn file(mut self, name: &str, path: impl Into<PathBuf>) -> Self {
        self.files.retain(|(other, _)| other != name);
        self.files.push((name.into(), path.into()));
        self
    }

    /// Puts the program under test beside the script, as `zenkai`. It must be linked statically.
    #[must_use]
    pub fn program(self, path: impl Into<PathBuf>) -> Self {
        self.file("zenkai", path)
    }

    /// Adds words to the kernel's command line. The machine is then booted for this run, which takes seconds.
    #[must_use]
    pub fn append(mut self, words: &str) -> Self {
        words.clone_into(&mut self.append);
        self
    }

    /// Adds arguments for QEMU, such as one more device. The machine is then booted for this run.
    #[must_use]
    pub fn qemu(mut self, args: &[String]) -> Self {
        args.clone_into(&mut self.qemu);
        self
    }

    /// Whether a snapshot cannot serve.
    pub(crate) fn changes_machine(&self) -> bool {
        !(self.append.is_empty() && self.qemu.is_empty())
    }

    /// The time the job may take from the restored state to its end; ten minutes if not said, since only a job that hangs
    /// may come near it, however slow and crowded the host is. Time to boot is extra.
    #[must_use]
    pub fn limit(mut self, limit: Duration) -> Self {
        self.limit = limit;
        self
    }
}

impl From<&str> for Job {
    fn from(script: &str) -> Self {
        Self::shell(script)
    }
}

impl From<String> for Job {
    fn from(script: String) -> Self {
        Self::shell(script)
    }
}

/// What a job gave.
#[derive(Debug, Clone)]
pub struct Outcome {
    /// Its standard output; bytes that are no UTF-8 are replaced.
    pub stdout: String,
    /// Its standard error output, likewise.
    pub stderr: String,
    /// Its exit code.
    pub code: i32,
    /// The guest's kernel log, from its boot on.
    pub dmesg: String,
    /// The files it left in `out`, by their path below it.
    pub files: BTreeMap<String, Vec<u8>>,
    /// From the start of QEMU to its end.
    pub wall: Duration,
}

impl Outcome {
    /// Takes the result apart that the agent sent; nothing if it is not whole.
    pub(crate) fn from_files(mut files: BTreeMap<String, Vec<u8>>, wall: Duration) -> Option<Self> {
        let mut text =
            |name: &str| files.remove(name).map(|data| String::from_utf8_lossy(&data).into_owned());
        let (stdout, stderr, code, dmesg) = (text("stdout")?, text("stderr")?, text("rc")?, text("dmesg")?);
        let code = code.trim().parse().ok()?;
        let files = files
            .into_iter()
            .filter_map(|(name, data)| Some((name.strip_prefix("out/")?.to_owned(), data)))
            .collect();
        Some(Self { stdout, stderr, code, dmesg, files, wall })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_result_without_exit_code_is_none() {
        let file = |name: &str, data: &str| (name.to_owned(), data.as_bytes().to_vec());
        let mut files = BTreeMap::from([
            file("stdout", "x"),
            file("stderr", ""),
            file("dmesg", ""),
            file("out/a/b", "1"),
        ]);
        assert!(Outcome::from_files(files.clone(), Duration::ZERO).is_none());
        files.extend([file("rc", "3\n")]);
        let outcome = Outcome::from_files(files, Duration::ZERO).unwrap();
        assert_eq!((outcome.code, outcome.files["a/b"].as_slice()), (3, b"1".as_slice()));
    }

    #[test]
    fn the_last_file_of_a_name_counts() {
        let job = Job::shell("x").program("/a").program("/b");
        assert_eq!(job.files.iter().filter(|(name, _)| name == "zenkai").count(), 1);
        assert_eq!(job.files.last().unwrap().1, PathBuf::from("/b"));
    }
}
