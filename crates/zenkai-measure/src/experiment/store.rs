//! The directory of an experiment. Nothing in it is ever overwritten.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use zenkai_host::read_plain_file;

use super::plan::{PLAN_VERSION, Plan, Trial};
use crate::statistics::redraw::MOST_DRAWS;
use crate::statistics::sequential::MOST_PAIRS;

/// Nobody else may write to them, whatever the umask says: a plan is made of commands.
const MODE: u32 = 0o644;

/// Largest file that is read: a thousand times what the longest experiment writes.
const LARGEST: u64 = 256 * 1024 * 1024;

/// No plan has more arms: each trial is looked up in the order of all of them.
const MOST_ARMS: usize = 1_000;

/// No plan has more looks: each takes as long as one analysis.
const MOST_LOOKS: usize = 100;

/// Why an experiment could not be written or read.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// The system refused.
    #[error("{path}: {source}")]
    Io {
        /// File or directory.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// Not what this program writes.
    #[error("{path}, line {line}: {what}")]
    Content {
        /// The file.
        path: PathBuf,
        /// Line, from 1.
        line: usize,
        /// What is wrong.
        what: String,
    },
}

/// An experiment open for more trials.
#[derive(Debug)]
pub struct Store {
    /// The plan as stored.
    pub plan: Plan,
    /// The trials so far.
    pub trials: Vec<Trial>,
    path: PathBuf,
    file: File,
}

impl Store {
    /// Writes `plan` into the existing directory `dir`, on disk before this returns. Refuses a directory that has an
    /// experiment. What a start left that was killed, or found the disk full, is none: the plan gets its name last.
    pub fn create(dir: &Path, plan: Plan) -> Result<Self, StoreError> {
        let plan_path = dir.join("experiment.json");
        let path = dir.join("trials.jsonl");
        if plan_path.symlink_metadata().is_ok() {
            return Err(io_error(&plan_path, io::ErrorKind::AlreadyExists.into()));
        }
        take_away(&path, |length| length == 0).map_err(|error| io_error(&path, error))?;
        let file = OpenOptions::new().append(true).create_new(true).mode(MODE).open(&path);
        let file = file.map_err(|error| io_error(&path, error))?;
        lay_down(dir, &plan)?;
        Ok(Self { plan, trials: Vec::new(), path, file })
    }

    /// Opens the experiment in `dir` to go on with it. A last line that was cut off by a crash is taken away: its
    /// trial did not end.
    pub fn open(dir: &Path) -> Result<Self, StoreError> {
        let (plan, trials, whole) = load(dir)?;
        let path = dir.join("trials.jsonl");
        let opened = OpenOptions::new().append(true).open(&path).and_then(|file| {
            if file.metadata()?.len() > whole {
                file.set_len(whole)?;
                file.sync_all()?;
            }
            Ok(file)
        });
        let file = opened.map_err(|error| io_error(&path, error))?;
        Ok(Self { plan, trials, path, file })
    }

    /// Reads the experiment in `dir` and changes nothing.
    pub fn read(dir: &Path) -> Result<(Plan, Vec<Trial>), StoreError> {
        load(dir).map(|(plan, trials, _)| (plan, trials))
    }

    /// Lays `plan` down in the place of the one there is, which must not have a trial yet. On disk when this returns; a
    /// crash leaves one of the two.
    pub fn replan(&mut self, plan: Plan) -> Result<(), StoreError> {
        let refused = || io_error(&self.path, io::Error::other("there are trials of the plan already"));
        let dir = self.path.parent().filter(|_| self.trials.is_empty()).ok_or_else(refused)?;
        lay_down(dir, &plan)?;
        self.plan = plan;
        Ok(())
    }

    /// Appends a trial; it is on disk when this returns. After an error (a full disk) the trial does not count.
    pub fn append(&mut self, trial: Trial) -> Result<(), StoreError> {
        let mut line = serde_json::to_vec(&trial).map_err(|error| io_error(&self.path, error.into()))?;
        line.push(b'\n');
        let before = self.file.metadata().map(|metadata| metadata.len());
        let written = before.and_then(|before| {
            let appended = self.file.write_all(&line).and_then(|()| self.file.sync_data());
            // A half-written line in the middle would make the file unreadable later.
            appended.or_else(|error| self.file.set_len(before).and(Err(error)))
        });
        written.map_err(|error| io_error(&self.path, error))?;
        self.trials.push(trial);
        Ok(())
    }
}

/// Writes a plan in the place of the one there may be. On disk when this returns; a crash leaves one of the two.
fn lay_down(dir: &Path, plan: &Plan) -> Result<(), StoreError> {
    let (path, new) = (dir.join("experiment.json"), dir.join("experiment.json.new"));
    take_away(&new, |_| true).map_err(|error| io_error(&new, error))?;
    let text = serde_json::to_vec_pretty(plan).map_err(|error| io_error(&path, error.into()))?;
    let mut options = OpenOptions::new();
    let written = options.write(true).create_new(true).mode(MODE).open(&new).and_then(|mut file| {
        file.write_all(&text)?;
        file.write_all(b"\n")?;
        file.sync_all()?;
        std::fs::rename(&new, &path)
    });
    written.map_err(|error| io_error(&path, error))?;
    // The names of new files are on disk only when the directory is (fsync(2)).
    let synced = OpenOptions::new().read(true).open(dir).and_then(|dir| dir.sync_all());
    synced.map_err(|error| io_error(dir, error))
}

/// Takes away a regular file of such a length, if there is one; no link is followed.
#[expect(
    clippy::disallowed_methods,
    reason = "a file of ours in the directory of an experiment that never began"
)]
fn take_away(path: &Path, is_ours: impl Fn(u64) -> bool) -> io::Result<()> {
    match path.symlink_metadata() {
        Ok(shape) if shape.is_file() && is_ours(shape.len()) => std::fs::remove_file(path),
        _ => Ok(()),
    }
}

/// The plan, the trials, and how many bytes of the trials' file are whole lines.
fn load(dir: &Path) -> Result<(Plan, Vec<Trial>, u64), StoreError> {
    let path = dir.join("experiment.json");
    let content = |line: usize, what: String| StoreError::Content { path: path.clone(), line, what };
    let plan: Plan =
        serde_json::from_slice(&bytes(&path)?).map_err(|error| content(error.line(), error.to_string()))?;
    if plan.version != PLAN_VERSION {
        let what = format!("version {} is not {PLAN_VERSION}: use the program that wrote it", plan.version);
        return Err(content(1, what));
    }
    if plan.rule.draws > MOST_DRAWS {
        return Err(content(1, format!("{} draws are more than {MOST_DRAWS}", plan.rule.draws)));
    }
    if plan.arms.len() > MOST_ARMS {
        return Err(content(1, format!("{} arms are more than {MOST_ARMS}", plan.arms.len())));
    }
    let looks = &plan.rule.looks;
    let fit =
        looks.is_sorted_by(|one, next| one < next) && looks.last().is_none_or(|last| *last <= MOST_PAIRS);
    if !fit || looks.len() > MOST_LOOKS {
        let what = format!("the looks are not at most {MOST_LOOKS} ascending numbers up to {MOST_PAIRS}");
        return Err(content(1, what));
    }
    let path = dir.join("trials.jsonl");
    let text = bytes(&path)?;
    let whole = text.iter().rposition(|byte| *byte == b'\n').map_or(0, |end| end + 1);
    let lines = text[..whole].split_inclusive(|byte| *byte == b'\n').enumerate();
    let trials = lines.map(|(index, line)| {
        serde_json::from_slice(line).map_err(|error| StoreError::Content {
            path: path.clone(),
            line: index + 1,
            what: error.to_string(),
        })
    });
    Ok((plan, trials.collect::<Result<_, _>>()?, u64::try_from(whole).unwrap_or(u64::MAX)))
}

fn bytes(path: &Path) -> Result<Vec<u8>, StoreError> {
    read_plain_file(path, LARGEST).map_err(|error| io_error(path, error))
}

fn io_error(path: &Path, source: io::Error) -> StoreError {
    StoreError::Io { path: path.to_owned(), source }
}
