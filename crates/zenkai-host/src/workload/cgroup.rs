//! A cgroup for one job: it counts what all its processes take, for whoever reads it, and nothing gets out of it.
//!
//! It is made below our own cgroup, or further up where more controllers are on, but never above a limit that somebody
//! set for us (Documentation/admin-guide/cgroup-v2.rst; Documentation/admin-guide/cgroup-v1/cgroups.rst).

use std::{
    ffi::OsStr,
    io,
    os::{fd::OwnedFd, unix::ffi::OsStrExt as _},
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    fs::{AtFlags, CWD, Dir, FileType, Mode, OFlags},
    io::Errno,
    process::{Pid, Signal, getpid, kill_process, test_kill_process},
};

use super::{Job, stuck};

/// First part of the names of our cgroups; our number and another one follow.
const PREFIX: &str = "zenkai-";
/// The same where what is in it is the user's own and goes on when we are gone.
const KEEPING: &str = "zenkai-record-";
/// Jobs that one zenkai may run at the same time.
const NAMES: u32 = 64;
/// Largest file that is read: `cgroup.procs` of 100 000 processes.
const LARGEST: usize = 1024 * 1024;
/// Groups that are looked at below one of ours at most: more may a workload not make that we are to tidy up after.
const GROUPS: usize = 4096;
/// What reading a cgroup says that is no more, or has only threads in it.
const GONE: [Option<Errno>; 3] = [Some(Errno::NOENT), Some(Errno::NODEV), Some(Errno::OPNOTSUPP)];
/// How long killed processes may take to go.
const PATIENCE: Duration = Duration::from_secs(2);

/// The cgroup of one job, removed when closed or dropped.
#[derive(Debug)]
pub(super) struct Cgroup {
    /// Whether what is left in it goes on: where the job keeps the user's terminal.
    keeps: bool,
    /// In the version 2 hierarchy.
    unified: Option<PathBuf>,
    /// In the version 1 hierarchy of the `cpu` controller, where version 2 does not have it.
    bandwidth: Option<PathBuf>,
}

impl Cgroup {
    /// Makes what `job` asks for, or says why not.
    pub(super) fn make(job: &Job) -> Result<Self, String> {
        let mut made = Self { keeps: job.terminal, unified: None, bandwidth: None };
        if !job.cgroup && job.cpu_max.is_none() {
            return Err("not asked for".to_owned());
        }
        let prefix = if job.terminal { KEEPING } else { PREFIX };
        let unified = unified(job.cpu_max.is_some(), prefix);
        if let Ok(dir) = &unified {
            made.unified = Some(dir.clone());
        }
        let Some((quota, period)) = job.cpu_max else {
            return unified.map(|_| made);
        };
        if let Some(dir) = &made.unified
            && write(&dir.join("cpu.max"), &format!("{quota} {period}")).is_ok()
        {
            return Ok(made);
        }
        let legacy = legacy_cpu().map_err(|why| match unified {
            Ok(dir) => format!("{}: no cpu controller; {why}", dir.display()),
            Err(first) => format!("{first}; {why}"),
        })?;
        made.bandwidth = Some(legacy.clone());
        let period = write(&legacy.join("cpu.cfs_period_us"), &period.to_string());
        period
            .and_then(|()| write(&legacy.join("cpu.cfs_quota_us"), &quota.to_string()))
            .map_err(|error| format!("{}/cpu.cfs_quota_us: {error}", legacy.display()))?;
        Ok(made)
    }

    /// Its directory in the version 2 hierarchy.
    pub(super) fn dir(&self) -> Option<&Path> {
        self.unified.as_deref()
    }

    /// What a process writes "0" to in order to be in it.
    pub(super) fn doors(&self) -> io::Result<Vec<OwnedFd>> {
        let open = |dir: &PathBuf| {
            let flags = OFlags::WRONLY | OFlags::CLOEXEC;
            Ok(rustix::fs::open(dir.join("cgroup.procs"), flags, Mode::empty())?)
        };
        self.dirs().map(open).collect()
    }

    /// Kills all that is in it, also what would have gone on.
    pub(super) fn kill(&mut self) {
        self.keeps = false;
        self.dirs().for_each(|dir| kill_all(dir));
    }

    /// Moves all that is in it to our own cgroup. What has made cgroups of its own stays in them.
    fn release(&self) {
        let (Some(dir), Some((_, own))) = (&self.unified, place("cgroup2", "")) else { return };
        // As long as new ones are born.
        for _ in 0..8 {
            let pids = read(&dir.join("cgroup.procs")).unwrap_or_default();
            if pids.trim().is_empty() {
                return;
            }
            for pid in pids.lines() {
                // It may have ended meanwhile.
                let _ = write(&own.join("cgroup.procs"), pid);
            }
        }
    }

    /// Removes it. What is in it then is killed, or goes on in our own cgroup. Gives why something was killed and is still
    /// there: then it stays, and the next run looks at it again.
    pub(super) fn close(&mut self) -> Option<String> {
        if self.keeps {
            self.release();
        } else {
            self.kill();
        }
        let mut stays = None;
        for dir in [self.unified.take(), self.bandwidth.take()].into_iter().flatten() {
            if !self.keeps && wait_until_empty(&dir).is_err() {
                let first = || Pid::from_raw(*pids(&dir).ok()?.first()?);
                stays = stays.or_else(|| Some(stuck::why(Path::new("/proc"), first()?)));
            }
            remove(&dir);
        }
        stays
    }

    fn dirs(&self) -> impl Iterator<Item = &PathBuf> {
        self.unified.iter().chain(&self.bandwidth)
    }
}

impl Drop for Cgroup {
    fn drop(&mut self) {
        self.close();
    }
}

/// Kills all that is in a cgroup.
fn kill_all(dir: &Path) {
    // Linux 5.14. Before, and in version 1: one after the other, as long as new ones are born.
    if write(&dir.join("cgroup.kill"), "1").is_ok() {
        return;
    }
    for _ in 0..8 {
        let pids = pids(dir).unwrap_or_default();
        if pids.is_empty() {
            return;
        }
        for pid in pids.into_iter().filter_map(Pid::from_raw) {
            // A process that has gone meanwhile is what was wanted.
            let _ = kill_process(pid, Signal::KILL);
        }
    }
}

/// The processes in a cgroup and in those that were made in it; 0 for one that we cannot see (pid_namespaces(7)).
fn pids(dir: &Path) -> io::Result<Vec<i32>> {
    let groups = tree(dir);
    if groups.len() >= GROUPS {
        return Err(Errno::TOOBIG.into());
    }
    let mut pids = Vec::new();
    for group in groups {
        match read(&group.join("cgroup.procs")) {
            Ok(text) => pids.extend(text.lines().filter_map(|line| line.trim().parse::<i32>().ok())),
            // It has gone, or the processes of its threads are told further up (cgroup-v2.rst, "Threads").
            Err(error) if GONE.contains(&Errno::from_io_error(&error)) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(pids)
}

/// A cgroup and those that were made in it, each after all that are in it. Nothing of what is mounted there.
fn tree(dir: &Path) -> Vec<PathBuf> {
    let device = |dir: &Path| rustix::fs::lstat(dir).ok().map(|shape| shape.st_dev);
    let ours = device(dir);
    let mut found = vec![dir.to_owned()];
    let mut at = 0;
    while let Some(group) = found.get(at)
        && found.len() < GROUPS
    {
        let inner = directories(group);
        found.extend(inner.into_iter().filter(|path| device(path) == ours));
        at += 1;
    }
    found.reverse();
    found
}

/// The directories in one; none where there is no such one, or a link, or it goes at this moment.
pub(super) fn directories(dir: &Path) -> Vec<PathBuf> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let entries = rustix::fs::open(dir, flags, Mode::empty()).and_then(Dir::new);
    let dirs = entries.into_iter().flatten().flatten().filter(|entry| {
        entry.file_type() == FileType::Directory && !matches!(entry.file_name().to_bytes(), b"." | b"..")
    });
    dirs.map(|entry| dir.join(OsStr::from_bytes(entry.file_name().to_bytes()))).collect()
}

/// Ends the jobs of every zenkai that was killed: of a job only the first process dies with it. `dead` is the number of
/// one of them, which may still be there: a process closes its files before it has gone, and stays as a zombie until its
/// parent has heard of it.
pub fn end_leftovers(dead: Option<u32>) {
    let dead = dead.and_then(|pid| Pid::from_raw(i32::try_from(pid).ok()?));
    for (kind, option) in [("cgroup2", ""), ("cgroup", "cpu")] {
        let Some((mount, own)) = place(kind, option) else { continue };
        for parent in within_limits(&own, &mount) {
            remove_leftovers(parent, dead);
        }
    }
}

/// A new directory in the version 2 hierarchy. With `cpu` on, it must come with that controller.
fn unified(cpu: bool, prefix: &str) -> Result<PathBuf, String> {
    let (mount, own) = place("cgroup2", "").ok_or("no cgroup version 2 hierarchy is mounted")?;
    let controllers = |dir: &Path| {
        let text = read(&dir.join("cgroup.subtree_control")).unwrap_or_default();
        let has = |name: &str| text.split_whitespace().any(|word| word == name);
        (!cpu || has("cpu"), ["cpu", "io", "memory"].iter().filter(|name| has(name)).count())
    };
    let mut parents: Vec<_> = within_limits(&own, &mount).map(|dir| (controllers(dir), dir)).collect();
    // Stable: among equals the nearest comes first.
    parents.sort_by_key(|(controllers, _)| std::cmp::Reverse(*controllers));
    let mut why = "no cgroup with the cpu controller".to_owned();
    for (_, parent) in parents.iter().filter(|((fit, _), _)| *fit || !cpu) {
        match make_below(parent, prefix) {
            Ok(dir) => return Ok(dir),
            Err(error) => why = format!("{}: {error}", parent.display()),
        }
    }
    Err(why)
}

/// A new directory in the version 1 hierarchy of the `cpu` controller.
fn legacy_cpu() -> Result<PathBuf, String> {
    let (_, own) = place("cgroup", "cpu").ok_or("no cgroup hierarchy with the cpu controller")?;
    make_below(&own, PREFIX).map_err(|error| format!("{}: {error}", own.display()))
}

/// Our own cgroup and those above it, up to `mount` or to one that somebody bounded.
fn within_limits<'a>(own: &'a Path, mount: &'a Path) -> impl Iterator<Item = &'a Path> {
    let bounded = |dir: &Path| {
        let set = |name: &str, free: &str| {
            read(&dir.join(name)).is_ok_and(|text| !text.trim().is_empty() && !text.starts_with(free))
        };
        set("cpu.max", "max")
            || set("memory.max", "max")
            || set("memory.high", "max")
            || set("cpuset.cpus", "\n")
    };
    let mut stopped = false;
    own.ancestors().take_while(move |dir| {
        let go = !stopped && dir.starts_with(mount);
        stopped = go && bounded(dir);
        go
    })
}

/// Where a hierarchy is mounted, and our own cgroup in it. `option` is the controller wanted of version 1.
fn place(kind: &str, option: &str) -> Option<(PathBuf, PathBuf)> {
    let text = |path: &str| read(Path::new(path)).ok();
    let us = getpid().as_raw_pid().to_string();
    // A mount that another one covers, or one of another namespace's groups, may look as if we were in it.
    let is_ours = |dir: &Path| {
        read(&dir.join("cgroup.procs")).is_ok_and(|pids| pids.lines().any(|pid| pid.trim() == us))
    };
    let places = places(&text("/proc/self/mountinfo")?, &text("/proc/self/cgroup")?, kind, option);
    places.into_iter().find(|(_, own)| is_ours(own))
}

/// The places where a hierarchy may be, by proc_pid_mountinfo(5) and cgroups(7).
fn places(mounts: &str, own: &str, kind: &str, option: &str) -> Vec<(PathBuf, PathBuf)> {
    let listed = |text: &str, name: &str| name.is_empty() || text.split(',').any(|word| word == name);
    // "0::/path" is version 2; "4:cpu,cpuacct:/path" is version 1.
    let path = own.lines().find_map(|line| {
        let (number, (controllers, path)) =
            line.split_once(':').and_then(|(a, b)| Some((a, b.split_once(':')?)))?;
        let fits = if option.is_empty() { number == "0" } else { listed(controllers, option) };
        fits.then_some(path)
    });
    // "36 35 98:0 /root /mount/point rw - type source super,options"
    let place = move |line: &str| {
        let (left, right) = line.split_once(" - ")?;
        let mut right = right.split(' ');
        let fits = right.next() == Some(kind) && listed(right.nth(1)?, option);
        let mut left = left.split(' ').skip(3);
        let (root, mount) = (left.next()?, left.next()?);
        // A path that leads out of what is mounted here ("/../x") belongs to another namespace.
        let below = Path::new(path?).strip_prefix(root).ok()?;
        let plain = below.components().all(|part| matches!(part, std::path::Component::Normal(_)));
        (fits && plain).then(|| (PathBuf::from(mount), Path::new(mount).join(below)))
    };
    mounts.lines().filter_map(place).collect()
}

/// Makes a directory with a name of ours, after removing what a killed zenkai left there.
fn make_below(parent: &Path, prefix: &str) -> io::Result<PathBuf> {
    remove_leftovers(parent, None);
    let pid = getpid().as_raw_pid();
    for number in 0..NAMES {
        let dir = parent.join(format!("{prefix}{pid}-{number}"));
        match rustix::fs::mkdir(&dir, Mode::from_raw_mode(0o755)) {
            Err(Errno::EXIST) => {}
            made => return Ok(made.map(|()| dir)?),
        }
    }
    Err(Errno::EXIST.into())
}

/// Removes directories of ours whose zenkai is no more, with what is left running in them unless that is to go on.
fn remove_leftovers(parent: &Path, dead: Option<Pid>) {
    for dir in directories(parent) {
        let name = dir.file_name().unwrap_or_default().to_string_lossy();
        let keeping = name.strip_prefix(KEEPING);
        let rest = keeping.or_else(|| name.strip_prefix(PREFIX));
        let owner = rest.and_then(|rest| rest.split_once('-')?.0.parse().ok());
        let gone = owner
            .and_then(Pid::from_raw)
            .is_some_and(|pid| Some(pid) == dead || test_kill_process(pid) == Err(Errno::SRCH));
        if gone {
            if keeping.is_none() && is_of_our_namespace(&dir) {
                kill_all(&dir);
                let _ = wait_until_empty(&dir);
            }
            remove(&dir);
        }
    }
}

/// Whether all processes in it count their numbers as we do (pid_namespaces(7)). Otherwise the number in the name may
/// be that of a zenkai in a container, which lives.
fn is_of_our_namespace(dir: &Path) -> bool {
    let namespace = |pid: &str| rustix::fs::readlink(format!("/proc/{pid}/ns/pid"), Vec::new());
    let Ok(own) = namespace("self") else { return false };
    let is_ours = |pid: &i32| {
        let theirs = namespace(&pid.to_string());
        *pid != 0 && theirs.map_or_else(|error| error == Errno::NOENT, |theirs| theirs == own)
    };
    pids(dir).is_ok_and(|pids| pids.iter().all(is_ours))
}

/// Removes a cgroup and those that were made in it, unless something runs there.
fn remove(dir: &Path) {
    let one = |dir: &Path| rustix::fs::unlinkat(CWD, dir, AtFlags::REMOVEDIR).is_ok();
    if !one(dir) && pids(dir).is_ok_and(|pids| pids.is_empty()) {
        // One that is refused keeps those around it; the next run looks at them again.
        for inner in tree(dir) {
            one(&inner);
        }
    }
}

/// Waits for `populated 0` in `cgroup.events`, whose changes poll(2) tells.
pub(super) fn wait_until_empty(dir: &Path) -> io::Result<()> {
    let path = dir.join("cgroup.events");
    let events = match rustix::fs::open(&path, OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty()) {
        Err(Errno::NOENT) => return look_until_empty(dir),
        events => events?,
    };
    // One change each for the killed processes' own cgroups, which they may have made.
    for _ in 0..64 {
        let mut text = [0_u8; 256];
        let length = rustix::io::pread(&events, &mut text, 0)?;
        if text.get(..length).unwrap_or_default().starts_with(b"populated 0") {
            return Ok(());
        }
        let mut waited = [PollFd::new(&events, PollFlags::PRI)];
        match poll(&mut waited, Some(&Timespec::try_from(PATIENCE).map_err(|_| Errno::INVAL)?)) {
            Ok(0) => return Err(Errno::TIMEDOUT.into()),
            Ok(_) | Err(Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Err(Errno::BUSY.into())
}

/// The same in version 1, which tells nobody.
fn look_until_empty(dir: &Path) -> io::Result<()> {
    let start = Instant::now();
    while start.elapsed() < PATIENCE {
        if pids(dir)?.is_empty() {
            return Ok(());
        }
        std::thread::sleep(Duration::from_millis(2));
    }
    Err(Errno::TIMEDOUT.into())
}

/// A text file of the kernel.
pub(super) fn read(path: &Path) -> io::Result<String> {
    let file = rustix::fs::open(path, OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty())?;
    let mut text = Vec::new();
    let mut chunk = [0_u8; 4096];
    while text.len() < LARGEST {
        match rustix::io::read(&file, &mut chunk)? {
            0 => break,
            length => text.extend_from_slice(chunk.get(..length).unwrap_or_default()),
        }
    }
    Ok(String::from_utf8_lossy(&text).into_owned())
}

fn write(path: &Path, text: &str) -> io::Result<()> {
    let file = rustix::fs::open(path, OFlags::WRONLY | OFlags::CLOEXEC, Mode::empty())?;
    let written = rustix::io::write(&file, text.as_bytes())?;
    if written == text.len() { Ok(()) } else { Err(Errno::IO.into()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[expect(clippy::disallowed_methods, reason = "a test that makes a tree to look at")]
    fn limits_are_not_left() {
        let root = tempfile::tempdir().unwrap();
        let own = root.path().join("user/session/scope");
        std::fs::create_dir_all(&own).unwrap();
        let names = |own: &Path| {
            let dirs = within_limits(own, root.path());
            let names: Vec<_> = dirs.map(|dir| dir.strip_prefix(root.path()).unwrap().to_owned()).collect();
            names
        };
        let all = ["user/session/scope", "user/session", "user", ""];
        for (file, free, bound) in [
            ("memory.max", "max\n", "1000\n"),
            ("cpu.max", "max 100000\n", "95000 100000\n"),
            ("cpuset.cpus", "\n", "0-3\n"),
        ] {
            let path = root.path().join("user/session").join(file);
            std::fs::write(&path, free).unwrap();
            assert_eq!(names(&own), all.map(PathBuf::from), "{file}");
            std::fs::write(&path, bound).unwrap();
            // Beside us is inside the limit; beside the bounded one is not.
            assert_eq!(names(&own), all[..2].iter().map(PathBuf::from).collect::<Vec<_>>(), "{file}");
            std::fs::write(&path, free).unwrap();
        }
        assert_eq!(names(root.path()), [PathBuf::new()]);
    }

    #[test]
    fn all_mounts_are_looked_at() {
        // A container with version 1, where somebody has mounted version 2 three times.
        let mounts = "30 1 0:26 /kubepods/a /sys/fs/cgroup/cpu,cpuacct ro - cgroup cgroup rw,cpu,cpuacct\n\
                      31 1 0:27 /../../.. /host/cgroup rw - cgroup2 cgroup2 rw\n\
                      32 1 0:27 /other /mnt rw shared:4 - cgroup2 cgroup2 rw,nsdelegate\n\
                      33 1 0:27 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\nx - cgroup2\n";
        let found = |own: &str, kind, option| -> Vec<String> {
            places(mounts, own, kind, option).into_iter().map(|(_, own)| own.display().to_string()).collect()
        };
        let own = "4:cpuacct,cpu:/kubepods/a/b\n1:name=systemd:/\n0::/run\n";
        assert_eq!(found(own, "cgroup2", ""), ["/sys/fs/cgroup/unified/run"]);
        assert_eq!(found(own, "cgroup", "cpu"), ["/sys/fs/cgroup/cpu,cpuacct/b"]);
        assert_eq!(found("0::/other/x\n", "cgroup2", ""), ["/mnt/x", "/sys/fs/cgroup/unified/other/x"]);
        assert!(found("0::/../x\n", "cgroup2", "").is_empty() && found("", "cgroup2", "").is_empty());
    }

    #[test]
    #[expect(clippy::disallowed_methods, reason = "a test that makes a tree to look at")]
    fn a_tree_is_walked_from_its_leaves_and_not_left() {
        let root = tempfile::tempdir().unwrap();
        let ours = root.path().join("zenkai-1-0");
        std::fs::create_dir_all(ours.join("a/b")).unwrap();
        std::fs::create_dir_all(root.path().join("beside/inner")).unwrap();
        std::os::unix::fs::symlink(root.path().join("beside"), ours.join("link")).unwrap();
        assert_eq!(tree(&ours), [ours.join("a/b"), ours.join("a"), ours.clone()]);
        assert_eq!(tree(&ours.join("link")).len(), 1, "a link is nobody's tree");
        std::fs::write(ours.join("a/b/cgroup.procs"), "7\n0\n").unwrap();
        assert_eq!(pids(&ours).unwrap(), [7, 0]);
        remove(&ours);
        assert!(ours.join("a/b").is_dir(), "something runs in it");
        for number in 0..GROUPS {
            std::fs::create_dir(ours.join(number.to_string())).unwrap();
        }
        assert!(pids(&ours).is_err() && !is_of_our_namespace(&ours));
    }
}
