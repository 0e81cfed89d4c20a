//! Why a process that was killed is still there.

use std::path::Path;

use rustix::process::Pid;

use super::cgroup::{directories, read};

/// Threads that are looked at at most.
const MOST: usize = 4096;

/// What `pid` waits for, for its user, by `/proc` (proc_pid_stat(5), proc_pid_wchan(5)).
pub(super) fn why(proc: &Path, pid: Pid) -> String {
    let dir = proc.join(pid.as_raw_pid().to_string());
    let name = read(&dir.join("comm")).unwrap_or_default();
    // A process is there until its last thread has gone, and any of them may be the one.
    let tasks = directories(&dir.join("task"));
    let threads: Vec<Thread> = tasks.iter().take(MOST).filter_map(|dir| thread(dir)).collect();
    let waits = threads.iter().find(|thread| thread.state == "D");
    let held = || threads.iter().find_map(|thread| thread.tracer.as_deref());
    let reason = match (waits, held()) {
        (Some(Thread { place: Some(place), .. }), _) => format!("it waits in the kernel, in {place}"),
        (Some(_), _) => "it waits in the kernel".to_owned(),
        (None, Some(tracer)) => format!("process {tracer} traces it and does not let it go"),
        (None, None) => {
            let states: Vec<&str> = threads.iter().map(|thread| thread.state.as_str()).collect();
            format!("the states of its threads are {}", states.join(" "))
        }
    };
    format!("process {} ({}) was killed but has not ended: {reason}", pid.as_raw_pid(), name.trim())
}

struct Thread {
    /// One letter; D is uninterruptible sleep.
    state: String,
    /// The function of the kernel that it sleeps in, where we may know.
    place: Option<String>,
    /// The process that traces it.
    tracer: Option<String>,
}

fn thread(dir: &Path) -> Option<Thread> {
    let status = read(&dir.join("status")).ok()?;
    let field = |label: &str| status.lines().find_map(|line| line.strip_prefix(label)).map(str::trim);
    let place = read(&dir.join("wchan")).map(|place| place.trim().to_owned()).ok();
    Some(Thread {
        state: field("State:")?.chars().take(1).collect(),
        // 0 where it runs, or where the kernel does not tell us.
        place: place.filter(|place| !place.is_empty() && place != "0"),
        tracer: field("TracerPid:").filter(|pid| *pid != "0").map(str::to_owned),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[expect(clippy::disallowed_methods, reason = "a test that makes a tree to look at")]
    fn told(threads: &[(&str, &str)]) -> String {
        let proc = tempfile::tempdir().unwrap();
        let dir = proc.path().join("17");
        for (number, (status, wchan)) in threads.iter().enumerate() {
            let task = dir.join(format!("task/{}", 17 + number));
            std::fs::create_dir_all(&task).unwrap();
            std::fs::write(task.join("status"), status).unwrap();
            std::fs::write(task.join("wchan"), wchan).unwrap();
        }
        std::fs::create_dir_all(&dir).unwrap();
        std::fs::write(dir.join("comm"), "dd\n").unwrap();
        let text = why(proc.path(), Pid::from_raw(17).unwrap());
        text.strip_prefix("process 17 (dd) was killed but has not ended: ").unwrap().to_owned()
    }

    #[test]
    fn what_it_waits_for() {
        let (asleep, zombie) = ("Name:\tdd\nState:\tD (disk sleep)\nTracerPid:\t0\n", "State:\tZ (zombie)\n");
        assert_eq!(
            told(&[(zombie, "0"), (asleep, "balance_dirty_pages")]),
            "it waits in the kernel, in balance_dirty_pages"
        );
        assert_eq!(told(&[(asleep, "0")]), "it waits in the kernel");
        let traced = "State:\tZ (zombie)\nTracerPid:\t4\n";
        assert_eq!(told(&[(zombie, ""), (traced, "")]), "process 4 traces it and does not let it go");
        assert_eq!(told(&[(zombie, "")]), "the states of its threads are Z");
        assert_eq!(told(&[]), "the states of its threads are ");
    }
}
