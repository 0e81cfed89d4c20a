use std::{os::fd::AsFd, path::PathBuf};

use rustix::process::Pid;

use super::*;

fn job(argv: &[&str]) -> Job {
    Job {
        argv: argv.iter().map(ToString::to_string).collect(),
        environment: Vec::new(),
        timeout: Some(Duration::from_secs(60)),
        cgroup: true,
        cpu_max: None,
        output_limit: 1024,
        terminal: false,
    }
}

fn ran(job: &Job) -> Ran {
    run(job, None, &mut |_| ()).unwrap()
}

/// The cgroup of a job that has begun.
fn watched(told: &Told) -> Option<PathBuf> {
    if let Told::Started(started) = told { started.cgroup.ok().map(Path::to_owned) } else { None }
}

fn alive(pid: &[u8]) -> bool {
    let pid = std::str::from_utf8(pid).unwrap().trim().parse().unwrap();
    rustix::process::test_kill_process(Pid::from_raw(pid).unwrap()).is_ok()
}

#[test]
fn a_command_runs_as_in_a_shell() {
    let mut job = job(&["sh", "-c", "cat; echo $ZENKAI_TEST $#; echo err >&2; exit 3", "x", "1", "2"]);
    job.environment.push(("ZENKAI_TEST".into(), "a b".into()));
    let ran = ran(&job);
    assert_eq!((ran.ended, ran.output_cut, ran.clock_step), (Ended::Exited(3), false, false));
    assert_eq!((ran.stdout.as_slice(), ran.stderr.as_slice()), (&b"a b 2\n"[..], &b"err\n"[..]));
    assert!(!ran.elapsed.is_zero() && ran.elapsed < Duration::from_secs(60));
}

#[test]
fn time_and_memory_are_the_workloads() {
    let ran = ran(&job(&["python3", "-c", "x = bytearray(100_000_000)\ns = sum(range(1_000_000))"]));
    if ran.ended == Ended::Exited(0) {
        assert!(ran.max_rss_bytes > 100_000_000, "{}", ran.max_rss_bytes);
        assert!(ran.max_rss_floor_bytes < ran.max_rss_bytes && ran.max_rss_floor_bytes > 0);
        // Smaller than we are: what the kernel tells is ours.
        let small = self::ran(&job(&["true"]));
        assert!(small.max_rss_bytes <= small.max_rss_floor_bytes, "{small:?}");
        assert!(ran.user + ran.system <= ran.elapsed * 2 && !ran.user.is_zero());
    }
}

/// By then a shell has set its traps, also on a crowded machine.
const LISTENS: Duration = Duration::from_secs(3);

#[test]
fn signals_and_timeouts_are_told_apart() {
    assert_eq!(ran(&job(&["sh", "-c", "kill -9 $$"])).ended, Ended::Signalled(9));
    let mut slow = job(&["sh", "-c", "trap 'echo bye; exit 7' TERM; sleep 60 & wait"]);
    slow.timeout = Some(LISTENS);
    let ran = ran(&slow);
    assert_eq!((ran.ended, ran.stdout.as_slice()), (Ended::TimedOut, &b"bye\n"[..]));
    assert!(ran.elapsed >= LISTENS && ran.elapsed < Duration::from_secs(40));
}

#[test]
fn what_does_not_listen_is_killed() {
    let mut deaf = job(&["sh", "-c", "trap '' TERM; sleep 60"]);
    deaf.timeout = Some(LISTENS);
    let ran = ran(&deaf);
    assert_eq!(ran.ended, Ended::TimedOut);
    assert!(ran.elapsed >= LISTENS + GRACE && ran.elapsed < Duration::from_secs(40));
}

#[test]
fn an_interrupt_ends_it() {
    let (reader, mut writer) = io::pipe().unwrap();
    let mut seen = 0;
    let mut told = |told: &Told| {
        let Told::Started(started) = told else { return };
        seen = started.pid;
        io::Write::write_all(&mut writer, b"x").unwrap();
    };
    let ran = run(&job(&["sleep", "30"]), Some(reader.as_fd()), &mut told).unwrap();
    assert_eq!(ran.ended, Ended::Interrupted);
    assert!(seen > 1 && ran.elapsed < Duration::from_secs(20));
}

/// Keeps a thread of a process from ending, as a disk does that does not answer, until the other end is closed: a traced
/// thread stays as a zombie until its tracer, which must be one thread all the time, has gone (ptrace(2)).
fn hold(pid: i32, until: io::PipeReader) -> std::thread::JoinHandle<()> {
    let (held, is_held) = std::sync::mpsc::channel();
    let holder = std::thread::spawn(move || {
        let tasks = format!("/proc/{pid}/task");
        let thread = loop {
            #[expect(clippy::disallowed_methods, reason = "a test looks for the threads of its own process")]
            let mut names = std::fs::read_dir(&tasks).unwrap().map(|entry| entry.unwrap().file_name());
            let other = names.find_map(|name| name.to_str()?.parse().ok().filter(|id: &i32| *id != pid));
            if let Some(other) = other {
                break other;
            }
            std::thread::sleep(Duration::from_millis(5));
        };
        let nothing = std::ptr::null_mut::<std::ffi::c_void>();
        // SAFETY: no memory of ours is named.
        #[expect(unsafe_code, reason = "neither std nor rustix can trace")]
        let seized = unsafe { libc::ptrace(libc::PTRACE_SEIZE, thread, nothing, nothing) };
        assert_eq!(seized, 0, "{}", io::Error::last_os_error());
        held.send(()).unwrap();
        let _ = io::Read::read(&mut { until }, &mut [0]);
    });
    is_held.recv().unwrap();
    holder
}

/// Two threads, for python3.
const THREADS: &str =
    "import threading, time\nthreading.Thread(target=time.sleep, args=(60,)).start()\ntime.sleep(60)";

/// Runs what cannot be ended; gives what came of it, its number, and what the user was told.
fn stuck(gives_up: bool) -> Option<(io::Result<Ran>, i32, Vec<String>)> {
    let (reader, mut wish) = io::pipe().unwrap();
    let (holds, lets_go) = io::pipe().unwrap();
    let (mut holds, mut lets_go) = (Some(holds), Some(lets_go));
    let (mut holder, mut seen, mut heard) = (None, 0, Vec::new());
    let mut told = |told: &Told| match told {
        Told::Started(started) => {
            seen = started.pid;
            holder = Some(hold(seen, holds.take().unwrap()));
            io::Write::write_all(&mut wish, b"x").unwrap();
        }
        Told::Stuck(why) => {
            heard.push((*why).to_owned());
            if gives_up {
                io::Write::write_all(&mut wish, b"x").unwrap();
            } else {
                lets_go = None;
            }
        }
        Told::Ended => heard.push("ended".to_owned()),
        Told::Left(why) => panic!("{why}"),
    };
    let ran = run(&job(&["python3", "-c", THREADS]), Some(reader.as_fd()), &mut told);
    if gives_up {
        assert!(alive(seen.to_string().as_bytes()));
    }
    drop(lets_go);
    holder?.join().unwrap();
    Some((ran, seen, heard))
}

#[test]
fn what_cannot_be_ended_is_told_and_waited_for() {
    let Some((ran, pid, heard)) = stuck(false) else { return };
    assert_eq!(ran.unwrap().ended, Ended::Interrupted);
    let [why, end] = heard.as_slice() else { panic!("{heard:?}") };
    assert!(why.starts_with(&format!("process {pid} (")), "{why}");
    assert!(
        why.contains(") was killed but has not ended: ") && why.contains("traces it") && end == "ended",
        "{heard:?}"
    );
}

#[test]
fn what_cannot_be_ended_can_be_given_up() {
    let Some((ran, _, heard)) = stuck(true) else { return };
    // It did not end, so nothing is said of what it took.
    assert_eq!(ran.unwrap_err().kind(), io::ErrorKind::Interrupted);
    assert_eq!(heard.len(), 1, "{heard:?}");
}

/// A freezer of version 1 holds processes so that not even SIGKILL ends them, as a disk that does not answer does
/// (Documentation/admin-guide/cgroup-v1/freezer-subsystem.rst). Many systems have none any more.
#[test]
#[expect(clippy::disallowed_methods, reason = "a test freezes a process by hand")]
fn what_was_left_running_and_cannot_be_ended_is_told() {
    let freezer = PathBuf::from(format!("/sys/fs/cgroup/freezer/zenkai-test-{}", std::process::id()));
    if let Err(error) = rustix::fs::mkdir(&freezer, rustix::fs::Mode::from_raw_mode(0o755)) {
        return eprintln!("no freezer here: {error}");
    }
    let turn = |to: &str| std::fs::write(freezer.join("freezer.state"), to).unwrap();
    let script = format!(
        "sleep 60 & echo $! > {0}/cgroup.procs; echo FROZEN > {0}/freezer.state
         until grep -q FROZEN {0}/freezer.state; do sleep 0.01; done; exit 3",
        freezer.display()
    );
    let (mut dir, mut heard) = (None, Vec::new());
    let mut told = |told: &Told| match told {
        Told::Started(_) => dir = watched(told),
        Told::Left(why) => {
            heard.push((*why).to_owned());
            turn("THAWED");
        }
        Told::Stuck(why) => panic!("{why}"),
        Told::Ended => {}
    };
    let ran = run(&job(&["sh", "-c", &script]), None, &mut told);
    turn("THAWED");
    let start = Instant::now();
    while rustix::fs::rmdir(&freezer).is_err() && start.elapsed() < Duration::from_secs(10) {
        std::thread::sleep(Duration::from_millis(5));
    }
    assert_eq!(ran.unwrap().ended, Ended::Exited(3));
    let Some(dir) = dir else { return eprintln!("no cgroup here") };
    let [why] = heard.as_slice() else { panic!("{heard:?}") };
    assert!(why.contains(") was killed but has not ended: it waits in the kernel"), "{why}");
    cgroup::wait_until_empty(&dir).unwrap();
    rustix::fs::rmdir(&dir).unwrap();
}

#[test]
fn the_end_of_the_output_is_kept() {
    let ran =
        ran(&job(&["sh", "-c", "head -c 3000000 /dev/zero; echo; echo last; head -c 1024 /dev/zero >&2"]));
    assert!(ran.output_cut && ran.stdout.ends_with(b"\0\nlast\n"));
    assert_eq!((ran.stdout.len(), ran.stderr.len()), (1024, 1024));
}

#[test]
fn leftovers_do_not_hold_us_and_do_not_stay() {
    let ran = ran(&job(&["sh", "-c", "sleep 30 & echo $!"]));
    assert!(ran.elapsed < Duration::from_secs(20));
    // Killed, but perhaps not yet reaped by whoever has adopted it.
    let gone = || !alive(&ran.stdout) || state(&ran.stdout).contains(") Z ");
    let start = Instant::now();
    while !gone() && start.elapsed() < Duration::from_secs(10) {
        std::thread::sleep(Duration::from_millis(5));
    }
    assert!(gone());
}

#[expect(clippy::disallowed_methods, reason = "a test that looks at its own process")]
fn state(pid: &[u8]) -> String {
    std::fs::read_to_string(format!("/proc/{}/stat", std::str::from_utf8(pid).unwrap().trim()))
        .unwrap_or_else(|_| ") Z ".to_owned())
}

#[test]
fn it_starts_as_from_a_shell() {
    let text = ran(&job(&["grep", "-E", "^Sig(Blk|Ign)", "/proc/self/status"])).stdout;
    let text = String::from_utf8(text).unwrap();
    let mask = |name: &str| {
        let hex = text.lines().find_map(|line| line.strip_prefix(name)).unwrap();
        u64::from_str_radix(hex.trim(), 16).unwrap()
    };
    // Rust programs ignore SIGPIPE, number 13, and whoever started us may ignore others.
    assert_eq!((mask("SigBlk:"), mask("SigIgn:") & 1 << 12), (0, 0));
    let mut job = job(&["sh", "-c", "echo $PATH; echo; cut -d ' ' -f 5,6,7 /proc/$$/stat; echo $$ $$ 0"]);
    job.environment = vec![("PATH".into(), "/usr/bin:/bin".into())];
    let text = String::from_utf8(ran(&job).stdout).unwrap();
    let lines: Vec<&str> = text.lines().map(str::trim).collect();
    assert_eq!(lines[0], "/usr/bin:/bin");
    assert_eq!(lines[2], lines[3], "a process group and a session of its own, without a terminal");
    let nul = Job { argv: vec!["echo".into(), "a\0b".into()], ..job };
    assert_eq!(run(&nul, None, &mut |_| ()).unwrap_err().kind(), io::ErrorKind::InvalidInput);
}

#[test]
fn what_cannot_start_is_named() {
    let why = |argv: &[&str]| run(&job(argv), None, &mut |_| ()).unwrap_err().to_string();
    assert!(why(&["no-such-program"]).starts_with("no-such-program: command not found"));
    assert_eq!(why(&["/no/such/program"]), "/no/such/program: no such file");
    assert!(why(&["/etc/passwd"]).contains("not executable"));
    assert_eq!(why(&[]), "no command");
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("script");
    script(&path, "#!/no/such/interpreter\n");
    assert!(why(&[path.to_str().unwrap()]).contains("interpreter"));
}

#[expect(clippy::disallowed_methods, reason = "a test that writes a script to run")]
fn script(path: &Path, text: &str) {
    use std::os::unix::fs::PermissionsExt;
    std::fs::write(path, text).unwrap();
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o755)).unwrap();
}

#[test]
fn with_our_terminal_it_stays_in_our_group() {
    let place = tempfile::tempdir().unwrap();
    let note = place.path().join("note");
    let script = "cut -d ' ' -f 5 /proc/$$/stat > $0; readlink /proc/$$/fd/0 /proc/$$/fd/2 >> $0; exit 4";
    let mut ours = job(&["sh", "-c", script, note.to_str().unwrap()]);
    ours.terminal = true;
    let ran = ran(&ours);
    assert_eq!((ran.ended, ran.stdout.len() + ran.stderr.len()), (Ended::Exited(4), 0));
    let text = cgroup::read(&note).unwrap();
    let own = |fd: i32| {
        rustix::fs::readlink(format!("/proc/self/fd/{fd}"), Vec::new()).unwrap().into_string().unwrap()
    };
    let group = rustix::process::getpgrp().as_raw_pid().to_string();
    assert_eq!(text.lines().collect::<Vec<_>>(), [group, own(0), own(2)]);
}

#[test]
fn what_shares_our_group_is_ended_with_its_children() {
    // Without a cgroup only what descends from it is known; that the first process ends does not end the others.
    for cgroup in [false, true] {
        let place = tempfile::tempdir().unwrap();
        let note = place.path().join("note");
        let deaf =
            "sh -c 'trap \"\" TERM; echo $$ > $0.new; mv $0.new $0; while :; do sleep 0.1; done' $0 & wait";
        let mut slow = job(&["sh", "-c", deaf, note.to_str().unwrap()]);
        (slow.terminal, slow.cgroup) = (true, cgroup);
        let (reader, mut writer) = io::pipe().unwrap();
        let wanted = note.clone();
        let asker = std::thread::spawn(move || {
            while rustix::fs::stat(&wanted).is_err() {
                std::thread::sleep(Duration::from_millis(5));
            }
            io::Write::write_all(&mut writer, b"x").unwrap();
        });
        let mut dir = None;
        let ran = run(&slow, Some(reader.as_fd()), &mut |told| dir = watched(told).or(dir.take())).unwrap();
        asker.join().unwrap();
        assert_eq!(ran.ended, Ended::Interrupted);
        if let Some(dir) = dir {
            assert!(rustix::fs::stat(&dir).is_err(), "{} is left", dir.display());
        }
        let child = cgroup::read(&note).unwrap().into_bytes();
        let start = Instant::now();
        let gone = || !alive(&child) || state(&child).contains(") Z ");
        while !gone() && start.elapsed() < Duration::from_secs(10) {
            std::thread::sleep(Duration::from_millis(5));
        }
        assert!(gone(), "cgroup {cgroup}");
    }
}

/// A service that somebody starts under a recording is not to end with it, nor when the recorder was killed.
#[test]
fn what_a_command_at_our_terminal_leaves_running_goes_on() {
    for cgroup in [false, true] {
        let place = tempfile::tempdir().unwrap();
        let note = place.path().join("note");
        let leaves = "setsid sleep 60 < /dev/null > /dev/null 2>&1 & echo $! > $0";
        let mut quick = job(&["sh", "-c", leaves, note.to_str().unwrap()]);
        (quick.terminal, quick.cgroup) = (true, cgroup);
        let mut dir = None;
        run(&quick, None, &mut |told| dir = watched(told).or(dir.take())).unwrap();
        let pid = super::cgroup::read(&note).unwrap();
        assert!(alive(pid.trim().as_bytes()), "cgroup {cgroup}");
        if let Some(dir) = dir {
            let of = |pid: &str| cgroup::read(Path::new(&format!("/proc/{pid}/cgroup"))).unwrap();
            assert_eq!(of(pid.trim()), of("self"));
            assert!(rustix::fs::stat(&dir).is_err(), "{} is left", dir.display());
            let killed = dir.with_file_name("zenkai-record-4194304-0");
            move_to(&killed, pid.trim());
            ran(&job(&["true"]));
            assert!(alive(pid.trim().as_bytes()) && rustix::fs::stat(&killed).is_ok());
            end(&pid);
            cgroup::wait_until_empty(&killed).unwrap();
            ran(&job(&["true"]));
            assert!(rustix::fs::stat(&killed).is_err());
        } else {
            end(&pid);
        }
    }
}

/// Makes a group that a killed zenkai might have left, with this process in it. As long as it is empty, any test that
/// runs a job at the same time removes it.
fn move_to(group: &Path, pid: &str) {
    loop {
        match rustix::fs::mkdir(group, rustix::fs::Mode::from_raw_mode(0o755)) {
            Ok(()) | Err(rustix::io::Errno::EXIST) => {}
            Err(error) => panic!("{}: {error}", group.display()),
        }
        #[expect(clippy::disallowed_methods, reason = "a test moves it by hand")]
        match std::fs::write(group.join("cgroup.procs"), pid) {
            // Removed before or while it was opened.
            Err(error) if matches!(error.raw_os_error(), Some(libc::ENOENT | libc::ENODEV)) => {}
            moved => return moved.unwrap(),
        }
    }
}

fn end(pid: &str) {
    let pid = rustix::process::Pid::from_raw(pid.trim().parse().unwrap()).unwrap();
    rustix::process::kill_process(pid, Signal::KILL).unwrap();
}

#[test]
fn a_group_can_be_watched_before_the_job_begins() {
    let job = job(&["true"]);
    let prepared = prepare(&job).unwrap();
    let before = prepared.cgroup().map(Path::to_owned).map_err(str::to_owned);
    let mut heard = Vec::new();
    let mut told = |told: &Told| {
        heard.push(match told {
            Told::Started(started) => Some(started.cgroup.map(Path::to_owned).map_err(str::to_owned)),
            Told::Ended => None,
            Told::Stuck(why) | Told::Left(why) => panic!("{why}"),
        });
    };
    let ran = prepared.run(None, &mut told).unwrap();
    assert_eq!(ran.ended, Ended::Exited(0));
    assert_eq!(heard, [Some(before), None]);
    let none = Job { cgroup: false, ..job };
    assert_eq!(prepare(&none).unwrap().cgroup(), Err("not asked for"));
}

#[test]
fn a_cgroup_holds_all_and_goes() {
    let mut dir = None;
    // The second one has a session of its own and is nobody's child any more.
    let script = "(setsid sleep 60 &); exit 3";
    let ran = run(&job(&["sh", "-c", script]), None, &mut |told| dir = watched(told).or(dir.take())).unwrap();
    assert_eq!(ran.ended, Ended::Exited(3));
    let Some(dir) = dir else { return eprintln!("no cgroup here") };
    assert!(rustix::fs::stat(&dir).is_err(), "{} is left", dir.display());
    // No process has this number: it is PID_MAX_LIMIT.
    let leftover = dir.with_file_name("zenkai-4194304-0");
    // What it left running goes with it.
    #[expect(clippy::disallowed_methods, reason = "a test needs a process that is not a job's")]
    let mut orphan = std::process::Command::new("sleep").arg("60").spawn().unwrap();
    move_to(&leftover, &orphan.id().to_string());
    self::ran(&job(&["true"]));
    let ended = orphan.wait().unwrap();
    assert_eq!(std::os::unix::process::ExitStatusExt::signal(&ended), Some(9));
    assert!(rustix::fs::stat(&leftover).is_err());
}

/// The groups that a workload made in its own, as a manager of containers does, go with it.
#[test]
fn groups_of_a_workloads_own_go_too() {
    let place = tempfile::tempdir().unwrap();
    let note = place.path().join("note");
    let mut dir = None;
    let mut told = |told: &Told| {
        let Told::Started(started) = told else { return };
        dir = started.cgroup.ok().map(Path::to_owned);
        let text = dir.as_deref().map_or("/nowhere", |dir| dir.to_str().unwrap());
        script(&note.with_extension("new"), text);
        rustix::fs::rename(note.with_extension("new"), &note).unwrap();
    };
    let groups = "until [ -e $0 ]; do sleep 0.01; done; cd \"$(cat $0)\" && mkdir -p a/b && \
                  { sleep 60 & echo $! > a/b/cgroup.procs; } && exit 5";
    let ran = run(&job(&["sh", "-c", groups, note.to_str().unwrap()]), None, &mut told).unwrap();
    let Some(dir) = dir else { return eprintln!("no cgroup here") };
    assert_eq!(ran.ended, Ended::Exited(5), "{ran:?}");
    assert!(rustix::fs::stat(&dir).is_err(), "{} is left", dir.display());
}

/// A container's zenkai has another number outside of it, so that its group's name says nothing here.
#[test]
#[expect(
    clippy::disallowed_methods,
    reason = "a test needs a process that is not a job's, and moves it by hand"
)]
fn what_runs_in_another_namespace_is_left_alone() {
    use std::process::{Command, Stdio};
    let trial = job(&["true"]);
    let Ok(dir) = prepare(&trial).unwrap().cgroup().map(Path::to_owned) else { return };
    let group = dir.with_file_name("zenkai-4194303-0");
    let inner = group.join("inner");
    let make = |group| rustix::fs::mkdir(group, rustix::fs::Mode::from_raw_mode(0o755));
    // As long as they are empty, any test that runs a job at the same time removes them.
    while make(&inner).is_err() {
        assert!(matches!(make(&group), Ok(()) | Err(rustix::io::Errno::EXIST)));
    }
    let script = format!(
        "echo 0 > {}/cgroup.procs && exec unshare -p -f sh -c 'echo up; exec sleep 60'",
        inner.display()
    );
    let mut orphan = Command::new("sh").args(["-c", &script]).stdout(Stdio::piped()).spawn().unwrap();
    let mut said = [0; 3];
    let is_up = io::Read::read_exact(orphan.stdout.as_mut().unwrap(), &mut said).is_ok();
    self::ran(&job(&["true"]));
    let lives = orphan.try_wait().unwrap().is_none();
    let _ = std::fs::write(group.join("cgroup.kill"), "1");
    orphan.wait().unwrap();
    cgroup::wait_until_empty(&group).unwrap();
    ran(&job(&["true"]));
    assert!(rustix::fs::stat(&group).is_err());
    assert!(lives || !is_up, "killed by the next run");
}

#[test]
fn bandwidth_is_limited_or_refused() {
    let mut half = job(&["sh", "-c", "i=0; while [ $i -lt 300000 ]; do i=$((i+1)); done"]);
    half.cpu_max = Some((20_000, 100_000));
    match run(&half, None, &mut |_| ()) {
        // Bursts of one period apart, five times as long as its CPU time.
        Ok(ran) => assert!(ran.elapsed * 2 > (ran.user + ran.system) * 5, "{ran:?}"),
        Err(why) => assert!(why.to_string().starts_with("cpu.max cannot be set"), "{why}"),
    }
}

#[test]
fn waiting_between_two_clocks_is_no_suspend() {
    let ms = Duration::from_millis;
    let at = |before, boot, after| Clocks {
        real: ms(9_000 + boot),
        boot: ms(boot),
        monotonic: [ms(before), ms(after)],
    };
    let begin = at(100, 500, 140);
    // Descheduled for 40 ms at the beginning, for 30 ms at the end.
    assert_eq!(begin.until(&at(1_100, 1_530, 1_130)), (ms(0), false));
    // Asleep for two seconds.
    assert_eq!(begin.until(&at(1_100, 3_530, 1_130)), (ms(2_000), false));
    let set = Clocks { real: ms(20_000), ..at(1_100, 1_530, 1_130) };
    assert_eq!(begin.until(&set), (ms(0), true));
}
