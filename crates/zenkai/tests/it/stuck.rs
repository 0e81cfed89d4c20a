//! A workload that not even SIGKILL ends: it is told, and Ctrl-C leaves it behind.

use std::{
    fs::{self, File},
    path::{Path, PathBuf},
    process::{Child, Command},
    time::Duration,
};

use crate::{
    compare::{send, text, trials, until},
    real_tuned::zenkai as program,
};

/// A freezer of version 1 holds processes as a disk does that does not answer; many systems have none any more.
struct Freezer(PathBuf);

impl Freezer {
    fn make() -> Option<Self> {
        let dir = PathBuf::from(format!("/sys/fs/cgroup/freezer/zenkai-it-{}", std::process::id()));
        fs::create_dir(&dir)
            .map(|()| Self(dir))
            .map_err(|error| eprintln!("skipped: no freezer: {error}"))
            .ok()
    }

    /// A script that freezes itself.
    fn script(&self) -> String {
        let dir = text(&self.0);
        format!("echo $$ > {dir}/cgroup.procs; echo FROZEN > {dir}/freezer.state; exec sleep 60")
    }

    fn turn(&self, to: &str) {
        fs::write(self.0.join("freezer.state"), to).unwrap();
    }

    fn is_frozen(&self) -> bool {
        fs::read_to_string(self.0.join("freezer.state")).unwrap() == "FROZEN\n"
    }

    fn is_empty(&self) -> bool {
        fs::read_to_string(self.0.join("cgroup.procs")).unwrap().is_empty()
    }
}

impl Drop for Freezer {
    fn drop(&mut self) {
        let _ = fs::write(self.0.join("freezer.state"), "THAWED");
        // A test that has failed leaves them running. Another panic would end all tests.
        for pid in fs::read_to_string(self.0.join("cgroup.procs")).unwrap_or_default().lines() {
            let _ = Command::new("kill").args(["-9", pid]).status();
        }
        let gone = || fs::remove_dir(&self.0).is_ok();
        let _ = (0..1_000).any(|_| {
            gone() || {
                std::thread::sleep(Duration::from_millis(10));
                false
            }
        });
    }
}

/// Runs it with its error output in a file.
fn started(args: &[&str], err: &Path) -> Child {
    program(args)
        .stderr(File::create(err).unwrap())
        .stdout(File::create(err.with_extension("out")).unwrap())
        .spawn()
        .unwrap()
}

/// Once it is known that the workload does not end, the user gives up.
fn given_up(mut child: Child, err: &Path) -> String {
    let said = || fs::read_to_string(err).unwrap();
    until("it is told", || said().contains("Ctrl-C leaves it behind"));
    assert!(said().contains("was killed but has not ended: it waits in the kernel"), "{}", said());
    assert_eq!(child.try_wait().unwrap(), None, "{}", said());
    send("-TERM", &child);
    assert_eq!(child.wait().unwrap().code(), Some(130), "{}", said());
    said()
}

#[test]
fn what_cannot_be_ended_is_left_behind() {
    let Some(freezer) = Freezer::make() else { return };
    let top = tempfile::tempdir().unwrap();
    let (dir, err) = (top.path().join("experiment"), top.path().join("err"));
    let arms = [format!("cmd:{}", freezer.script()), "cmd:true".to_owned()];
    let child = started(&["compare", "--out", text(&dir), &arms[0], &arms[1]], &err);
    until("it is frozen", || freezer.is_frozen());
    send("-TERM", &child);
    let said = given_up(child, &err);
    assert!(said.contains("interrupted; the machine is as it was"), "{said}");
    assert!(trials(&dir).is_empty() && !freezer.is_empty());

    freezer.turn("THAWED");
    until("it has gone", || freezer.is_empty());
    let file = top.path().join("recording");
    let script = freezer.script();
    let record = ["record", "--for", "1s", "-o", text(&file), "--", "sh", "-c", &script];
    let said = given_up(started(&record, &err), &err);
    assert!(said.contains(&format!("wrote {}", text(&file))), "{said}");
    let shown = program(&["record", "--show", text(&file)]).output().unwrap();
    assert!(shown.status.success());
    freezer.turn("THAWED");
    until("it has gone", || freezer.is_empty());
    // What was left behind is tidied up by the next one.
    assert!(program(&["record", "--", "true"]).output().unwrap().status.success());
}
