//! Running what is no knob: profiles' scripts, and programs for which the kernel has no system call.

use std::{
    io::{self, PipeReader, Read},
    os::{
        fd::AsRawFd,
        unix::process::{CommandExt, ExitStatusExt},
    },
    process::{Child, Command, ExitStatus, Stdio},
    time::{Duration, Instant},
};

use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    fs::{FileType, Mode, OFlags},
    io::{Errno, FdFlags},
    process::{Pid, PidfdFlags, Signal, kill_process_group, pidfd_open},
};

use super::trusted;
use crate::{Act, Finished, gauges};

/// What is kept of both outputs together. More says nothing to a reader, and it goes into the journal.
const OUTPUT_LIMIT: usize = 64 * 1024;
/// For a program of the system. `modprobe` of a driver that waits for firmware takes up to 60 s
/// (`loading_timeout` in `drivers/base/firmware_loader`), nothing else near that.
const COMMAND_LIMIT: Duration = Duration::from_secs(60);
/// For a profile's script, which may build an initial ramdisk; tuned's own client gives up after 600 s too.
const SCRIPT_LIMIT: Duration = Duration::from_secs(600);
/// Where programs are looked for, whatever the caller's environment says.
const PATH: [&str; 4] = ["/usr/sbin", "/usr/bin", "/sbin", "/bin"];

pub(super) fn run(act: &Act) -> io::Result<Finished> {
    match act {
        Act::Script { path, arguments, environment } => script(path, arguments, environment),
        Act::Command { argv } => {
            let (program, arguments) = argv.split_first().ok_or(Errno::INVAL)?;
            let mut command = clean(&find(program)?);
            command.arg0(program).args(arguments);
            finish(command, COMMAND_LIMIT)
        }
    }
}

/// Runs a program of the system and gives what it wrote; an exit code other than 0 is an error with that text.
pub(super) fn output_of(argv: &[&str]) -> io::Result<String> {
    let act = Act::Command { argv: argv.iter().map(ToString::to_string).collect() };
    let finished = run(&act)?;
    if finished.code == 0 {
        return Ok(finished.output);
    }
    let said = finished.output.trim();
    Err(io::Error::other(format!("{act} ended with {}: {said}", finished.code)))
}

/// The program's path. Names only: a slash would lead around the fixed list.
fn find(program: &str) -> io::Result<String> {
    if program.is_empty() || program.contains('/') {
        return Err(Errno::INVAL.into());
    }
    let flags = OFlags::PATH | OFlags::CLOEXEC;
    let candidates = PATH.iter().map(|dir| format!("{dir}/{program}"));
    candidates
        .into_iter()
        .find(|path| rustix::fs::open(path.as_str(), flags, Mode::empty()).is_ok())
        .ok_or_else(|| io::Error::new(io::ErrorKind::NotFound, format!("{program} is not installed")))
}

#[expect(clippy::disallowed_methods, reason = "the one place where something is run; see Act")]
fn clean(program: &str) -> Command {
    let mut command = Command::new(program);
    command.env_clear().env("PATH", PATH.join(":")).env("LC_ALL", "C").stdin(Stdio::null());
    command
}

/// The script is run through its directory's descriptor, `/proc/self/fd/N/NAME`: no part of the path can be exchanged
/// between the check and the start, and `$(dirname "$0")` still leads to the files beside it.
fn script(path: &str, arguments: &[String], environment: &[(String, String)]) -> io::Result<Finished> {
    let (parent, name) = trusted::split(path)?;
    let dir = trusted::open_dir(parent)?;
    let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let stat = rustix::fs::fstat(&rustix::fs::openat(&dir, name, flags, Mode::empty())?)?;
    if FileType::from_raw_mode(stat.st_mode) != FileType::RegularFile {
        return Err(io::Error::new(io::ErrorKind::PermissionDenied, format!("{path} is no plain file")));
    }
    trusted::check(path, &stat, false)?;
    // The interpreter opens the script after exec, so that the descriptor must live on.
    rustix::io::fcntl_setfd(&dir, FdFlags::empty())?;
    let dir_path = format!("/proc/self/fd/{}", dir.as_raw_fd());
    let mut command = clean(&format!("{dir_path}/{name}"));
    command.args(arguments).current_dir(&dir_path);
    let own = |key: &str| key == "PATH" || key == "LC_ALL" || key.is_empty() || key.contains(['=', '\0']);
    command.envs(environment.iter().filter(|(key, _)| !own(key)).map(|(key, value)| (key, value)));
    finish(command, SCRIPT_LIMIT)
}

/// Starts it in its own process group, collects both outputs, and waits. What it left running in the background is
/// left alone, unless the time was up.
fn finish(mut command: Command, limit: Duration) -> io::Result<Finished> {
    let (reader, writer) = io::pipe()?;
    command.stdout(writer.try_clone()?).stderr(writer).process_group(0);
    let mut child = gauges::with_no_signal_blocked(&mut command).spawn()?;
    // The command holds the pipe's writing end, which would keep the reading end from ever ending.
    drop(command);
    let output = collect(&mut child, reader, limit);
    if output.is_err()
        && let Some(group) = i32::try_from(child.id()).ok().and_then(Pid::from_raw)
    {
        // It fails only when the whole group has gone already.
        let _ = kill_process_group(group, Signal::KILL);
    }
    let status = child.wait()?;
    Ok(Finished { code: code(status), output: String::from_utf8_lossy(&output?).into_owned() })
}

/// Reads until the child has ended or the time is up.
fn collect(child: &mut Child, mut reader: PipeReader, limit: Duration) -> io::Result<Vec<u8>> {
    let pid = i32::try_from(child.id()).ok().and_then(Pid::from_raw).ok_or(Errno::SRCH)?;
    let ended = pidfd_open(pid, PidfdFlags::empty())?;
    let start = Instant::now();
    let mut output = Vec::new();
    let mut chunk = [0_u8; 4096];
    let mut open = true;
    loop {
        let left = limit.saturating_sub(start.elapsed());
        if left.is_zero() {
            return Err(Errno::TIMEDOUT.into());
        }
        let mut waited =
            vec![PollFd::new(&ended, PollFlags::IN), PollFd::new(&reader, PollFlags::IN | PollFlags::HUP)];
        if !open {
            waited.pop();
        }
        match poll(&mut waited, Some(&Timespec::try_from(left).map_err(|_| Errno::INVAL)?)) {
            Err(Errno::INTR) => continue,
            result => result?,
        };
        let readable = waited.get(1).is_some_and(|pipe| !pipe.revents().is_empty());
        let gone = !waited[0].revents().is_empty();
        if readable {
            let count = reader.read(&mut chunk)?;
            open = count > 0;
            let room = OUTPUT_LIMIT - output.len();
            output.extend_from_slice(&chunk[..count.min(room)]);
        } else if gone {
            return Ok(output);
        }
    }
}

/// The exit code as shells tell it.
fn code(status: ExitStatus) -> i32 {
    status.code().unwrap_or_else(|| 128 + status.signal().unwrap_or(0))
}

#[cfg(test)]
#[expect(clippy::disallowed_methods, reason = "the tests write scripts to run")]
mod tests {
    use std::{fs, os::unix::fs::PermissionsExt, path::Path};

    use super::*;

    fn command(argv: &[&str]) -> io::Result<Finished> {
        run(&Act::Command { argv: argv.iter().map(ToString::to_string).collect() })
    }

    fn write_script(path: &Path, text: &str, mode: u32) -> Act {
        fs::write(path, text).unwrap();
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
        Act::Script {
            path: path.to_str().unwrap().to_owned(),
            arguments: vec!["start".into()],
            environment: vec![("TUNED_x".into(), "a b".into()), ("PATH".into(), "/evil".into())],
        }
    }

    fn is_root() -> bool {
        rustix::process::geteuid().is_root()
    }

    #[test]
    fn a_program_has_a_clean_world() {
        let ended = command(&["env"]).unwrap();
        assert_eq!(ended.output, "LC_ALL=C\nPATH=/usr/sbin:/usr/bin:/sbin:/bin\n");
        let ended = command(&["sh", "-c", "cat; echo out; echo err >&2; exit 3"]).unwrap();
        assert_eq!(ended, Finished { code: 3, output: "out\nerr\n".into() });
        assert_eq!(command(&["sh", "-c", "kill -9 $$"]).unwrap().code, 137);
        assert_eq!(command(&["no-such-program"]).unwrap_err().kind(), io::ErrorKind::NotFound);
        assert!(command(&["/bin/true"]).is_err() && command(&[]).is_err());
    }

    #[test]
    fn what_we_wait_for_is_not_blocked_in_what_we_start() {
        // In a thread of its own: only it has these signals blocked.
        let ended = std::thread::spawn(|| {
            let _interrupt = gauges::Interrupt::watch().unwrap();
            command(&["grep", "SigBlk", "/proc/self/status"]).unwrap()
        });
        assert_eq!(ended.join().unwrap().output, "SigBlk:\t0000000000000000\n");
    }

    #[test]
    fn output_is_cut_and_background_processes_are_not_waited_for() {
        let ended = command(&["sh", "-c", "head -c 300000 /dev/zero; exit 4"]).unwrap();
        assert_eq!((ended.code, ended.output.len()), (4, OUTPUT_LIMIT));
        let start = Instant::now();
        let ended = command(&["sh", "-c", "sleep 30 & echo done"]).unwrap();
        assert_eq!(ended.output, "done\n");
        assert!(start.elapsed() < Duration::from_secs(30));
    }

    #[test]
    fn the_whole_group_ends_when_the_time_is_up() {
        let mut sleeper = clean("/bin/sh");
        sleeper.args(["-c", "sleep 60 & sleep 60"]);
        let start = Instant::now();
        let error = finish(sleeper, Duration::from_millis(200)).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::TimedOut);
        assert!(start.elapsed() < Duration::from_secs(60));
    }

    #[test]
    fn a_script_of_root_alone_is_run_in_its_directory() {
        let dir = tempfile::tempdir().unwrap();
        let text = "#!/bin/sh\necho $1 \"$TUNED_x\" $PATH\npwd\ncat \"$(dirname \"$0\")/beside\"\n";
        fs::write(dir.path().join("beside"), "beside\n").unwrap();
        let act = write_script(&dir.path().join("script.sh"), text, 0o755);
        let result = run(&act);
        if !is_root() {
            assert_eq!(result.unwrap_err().kind(), io::ErrorKind::PermissionDenied);
            return;
        }
        let path = fs::canonicalize(dir.path()).unwrap();
        let expected =
            format!("start a b /usr/sbin:/usr/bin:/sbin:/bin\n{}\nbeside\n", path.to_str().unwrap());
        assert_eq!(result.unwrap(), Finished { code: 0, output: expected });
    }

    #[test]
    fn what_others_may_change_is_not_run() {
        let dir = tempfile::tempdir().unwrap();
        let script = dir.path().join("script.sh");
        let group = write_script(&script, "#!/bin/sh\n", 0o775);
        assert_eq!(run(&group).unwrap_err().kind(), io::ErrorKind::PermissionDenied);
        write_script(&script, "#!/bin/sh\n", 0o755);
        std::os::unix::fs::symlink(&script, dir.path().join("link.sh")).unwrap();
        let link = Act::Script {
            path: dir.path().join("link.sh").to_str().unwrap().to_owned(),
            arguments: Vec::new(),
            environment: Vec::new(),
        };
        assert_eq!(run(&link).unwrap_err().kind(), io::ErrorKind::PermissionDenied);
        fs::set_permissions(dir.path(), fs::Permissions::from_mode(0o1777)).unwrap();
        assert_eq!(run(&group).unwrap_err().kind(), io::ErrorKind::PermissionDenied);
    }
}
