//! Lines at the end of a log file, for programs that look for them there.

use std::{io, mem::MaybeUninit};

use rustix::{
    fs::{AtFlags, FileType, Mode, OFlags, Stat},
    io::Errno,
};

use super::trusted;

/// Adds text to a log file. Its directory is made when it is missing, but not the one above.
///
/// Directory and file must belong to the user we run as, the directory may be written by nobody else, and neither is a
/// link: what lies in a log directory that others can write to would decide where root writes. A file that would grow
/// beyond `limit` bytes is first renamed to `NAME.1`, that to `NAME.2`, up to `kept` old ones.
pub fn append_log(path: &str, text: &str, limit: u64, kept: u32) -> io::Result<()> {
    let (dir_path, name) = trusted::split(path)?;
    let (parent, dir_name) = trusted::split(dir_path)?;
    let flags = OFlags::DIRECTORY | OFlags::CLOEXEC;
    let parent = rustix::fs::open(parent, flags | OFlags::PATH, Mode::empty())?;
    let open = || rustix::fs::openat(&parent, dir_name, flags | OFlags::NOFOLLOW, Mode::empty());
    let dir = match open() {
        Err(Errno::NOENT) => {
            rustix::fs::mkdirat(&parent, dir_name, Mode::from_raw_mode(0o755))?;
            open()?
        }
        result => result?,
    };
    let stat = rustix::fs::fstat(&dir)?;
    if !is_ours(&stat) || Mode::from_raw_mode(stat.st_mode).intersects(Mode::WGRP | Mode::WOTH) {
        return Err(refused(dir_path, "may be changed by somebody else"));
    }
    let append = || {
        let flags = OFlags::WRONLY | OFlags::APPEND | OFlags::CREATE | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let flags = flags | OFlags::NONBLOCK | OFlags::NOCTTY;
        let file = rustix::fs::openat(&dir, name, flags, Mode::from_raw_mode(0o644))?;
        let stat = rustix::fs::fstat(&file)?;
        let is_plain = FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile;
        // A second name could be a file that somebody else chose.
        if !is_plain || !is_ours(&stat) || stat.st_nlink != 1 {
            return Err(refused(path, "is no plain file of ours"));
        }
        Ok((file, u64::try_from(stat.st_size).unwrap_or(0)))
    };
    let (mut file, size) = append()?;
    let length = u64::try_from(text.len()).unwrap_or(u64::MAX);
    if limit > 0 && kept > 0 && size > 0 && size.saturating_add(length) > limit {
        // Up to the first gap: the number to keep may be a large one.
        let is_there = |nth: &u32| {
            rustix::fs::statat(&dir, format!("{name}.{nth}"), AtFlags::SYMLINK_NOFOLLOW).err()
                != Some(Errno::NOENT)
        };
        let free = (1..kept).find(|nth| !is_there(nth)).unwrap_or(kept);
        for nth in (1..free).rev() {
            rustix::fs::renameat(&dir, format!("{name}.{nth}"), &dir, format!("{name}.{}", nth + 1))?;
        }
        rustix::fs::renameat(&dir, name, &dir, format!("{name}.1"))?;
        file = append()?.0;
    }
    super::file::write_all(&file, text.as_bytes())
}

fn is_ours(stat: &Stat) -> bool {
    stat.st_uid == rustix::process::geteuid().as_raw()
}

fn refused(path: &str, why: &str) -> io::Error {
    io::Error::new(io::ErrorKind::PermissionDenied, format!("{path} {why}"))
}

/// A time as the machine's clock on the wall shows it, `2026-01-31 23:59:59`, from seconds since 1970.
#[expect(unsafe_code, reason = "no safe crate knows the local time zone without a large table")]
pub fn local_time(seconds: i64) -> Option<String> {
    let mut broken_down = MaybeUninit::<libc::tm>::uninit();
    // SAFETY: both pointers are valid for the call.
    if unsafe { libc::localtime_r(&raw const seconds, broken_down.as_mut_ptr()) }.is_null() {
        return None;
    }
    // SAFETY: localtime_r(3) has filled the structure, since it did not return null.
    let time = unsafe { broken_down.assume_init() };
    let (year, month) = (i64::from(time.tm_year) + 1900, time.tm_mon + 1);
    let (day, hour, minute, second) = (time.tm_mday, time.tm_hour, time.tm_min, time.tm_sec);
    Some(format!("{year:04}-{month:02}-{day:02} {hour:02}:{minute:02}:{second:02}"))
}

#[cfg(test)]
#[expect(clippy::disallowed_methods, reason = "the tests look at what was written")]
mod tests {
    use std::{fs, os::unix::fs::PermissionsExt};

    use super::*;

    #[test]
    fn lines_are_added_and_old_files_kept() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().to_str().unwrap();
        let path = format!("{root}/log/x.log");
        for line in ["one\n", "two\n", "three\n", "four\n"] {
            append_log(&path, line, 9, 2).unwrap();
        }
        let read = |name: &str| fs::read_to_string(format!("{root}/log/{name}"));
        assert_eq!(read("x.log").unwrap(), "four\n");
        assert_eq!(read("x.log.1").unwrap(), "three\n");
        assert_eq!(read("x.log.2").unwrap(), "one\ntwo\n");
        append_log(&path, "five\n", 9, 2).unwrap();
        assert_eq!((read("x.log.2").unwrap().as_str(), read("x.log.3").is_err()), ("three\n", true));
        // However many are to be kept, only those that are there are moved.
        append_log(&path, "sixth\n", 9, u32::MAX).unwrap();
        assert_eq!(read("x.log.3").unwrap(), "three\n");
        assert!(append_log(&format!("{root}/no/log/x.log"), "x", 9, 2).is_err());
    }

    #[test]
    fn links_and_directories_of_others_are_refused() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().to_str().unwrap();
        fs::write(format!("{root}/target"), "old").unwrap();
        fs::create_dir(format!("{root}/log")).unwrap();
        std::os::unix::fs::symlink("../target", format!("{root}/log/a")).unwrap();
        fs::hard_link(format!("{root}/target"), format!("{root}/log/b")).unwrap();
        std::os::unix::fs::symlink("log", format!("{root}/other")).unwrap();
        for path in ["log/a", "log/b", "other/c", "log/../log/.."] {
            assert!(append_log(&format!("{root}/{path}"), "x", 0, 0).is_err(), "{path}");
        }
        fs::set_permissions(format!("{root}/log"), fs::Permissions::from_mode(0o777)).unwrap();
        let error = append_log(&format!("{root}/log/c"), "x", 0, 0).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::PermissionDenied);
        assert_eq!(fs::read_to_string(format!("{root}/target")).unwrap(), "old");
    }

    #[test]
    fn the_wall_clock_agrees_with_date() {
        for seconds in [0_i64, 1_700_000_000, 4_000_000_000] {
            let mut date = std::process::Command::new("date");
            let date = date.args(["-d", &format!("@{seconds}"), "+%F %T"]).output().unwrap();
            assert_eq!(local_time(seconds).unwrap(), String::from_utf8(date.stdout).unwrap().trim());
        }
    }
}
