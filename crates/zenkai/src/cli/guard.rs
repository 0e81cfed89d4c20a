//! A second process that puts the machine back when the first is killed.
//!
//! Nothing can be done after SIGKILL, so somebody else must: the guard sleeps on a pipe whose other end only the
//! experiment holds. When that closes without a good-bye, the guard does what the next command would do at its start.

use std::{
    io::{self, Read, Write},
    os::unix::process::CommandExt as _,
    process::{Child, ChildStdin, Command, Stdio},
    time::Duration,
};

use zenkai_host::workload::end_leftovers;

use super::{CommandError, Exit, change};

/// The hidden command's name.
pub(super) const NAME: &str = "guard";
const GOOD_BYE: &[u8] = b"done";
/// A dying process closes its files in no certain order (`task_work_run` in kernel/task_work.c), so the lock may go
/// later than the pipe; and whoever gets it first does what the guard is for.
const LOCK_WAIT: Duration = Duration::from_secs(60);

/// A guard on watch, as its experiment sees it.
#[derive(Debug)]
pub(super) struct Guard {
    child: Child,
    pipe: Option<ChildStdin>,
}

impl Guard {
    /// Starts this program once more, asleep.
    #[expect(clippy::disallowed_methods, reason = "the guard must be another process to outlive this one")]
    pub(super) fn start() -> io::Result<Self> {
        let mut command = Command::new("/proc/self/exe");
        command.arg(NAME).stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
        // A directory that somebody may want to unmount is no place to sleep in. In a process group of its own from its
        // first moment, what ends the experiment's terminal or group does not end it.
        let mut child = command.current_dir("/").process_group(0).spawn()?;
        let pipe = child.stdin.take();
        Ok(Self { child, pipe })
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        if let Some(mut pipe) = self.pipe.take() {
            // If this fails the guard looks for what is to be put back, and finds nothing.
            let _ = pipe.write_all(GOOD_BYE);
        }
        let _ = self.child.wait();
    }
}

/// The guard's own life.
pub(super) fn run(err: &mut dyn Write) -> Result<Exit, CommandError> {
    // Known while it lives; when it has died already it is nobody we look for.
    let experiment =
        rustix::process::getppid().and_then(|pid| u32::try_from(pid.as_raw_nonzero().get()).ok());
    let mut said = Vec::new();
    io::stdin().take(64).read_to_end(&mut said)?;
    if said != GOOD_BYE {
        // First what still loads the machine: it may hold what is to be put back.
        end_leftovers(experiment);
        change::recover_within(LOCK_WAIT, err);
    }
    Ok(Exit::Fine)
}
