//! Kernel modules.

use std::io;

use rustix::io::Errno;

use super::run::output_of;
use crate::{Reply, Value};

/// `loaded` or `absent`. What is built into the kernel shows in `/sys/module` when it has parameters, and counts as
/// loaded.
pub(super) fn value(name: &str) -> io::Result<Reply> {
    // A module's name has underscores in sysfs, whatever its file is called (modprobe(8)).
    let path = format!("/sys/module/{}", checked(name)?.replace('-', "_"));
    match rustix::fs::stat(path) {
        Ok(_) => Ok(Reply::Text("loaded".into())),
        Err(Errno::NOENT) => Ok(Reply::Text("absent".into())),
        Err(error) => Err(error.into()),
    }
}

/// Loads or removes a module with modprobe, which knows aliases, dependencies and `/etc/modprobe.d`; the system calls
/// behind it know none of them.
pub(super) fn set(name: &str, value: &Value) -> io::Result<()> {
    let name = checked(name)?;
    match value.text() {
        Some("loaded") => output_of(&["modprobe", name]).map(drop),
        Some("absent") | None => output_of(&["modprobe", "-r", name]).map(drop),
        Some(_) => Err(Errno::INVAL.into()),
    }
}

fn checked(name: &str) -> io::Result<&str> {
    let valid = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-';
    if name.is_empty() || name.starts_with('-') || !name.bytes().all(valid) {
        return Err(Errno::INVAL.into());
    }
    Ok(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_names_only() {
        assert_eq!(value("no-such-module").unwrap(), Reply::Text("absent".into()));
        // `kernel/params.c`: built in everywhere, with parameters.
        assert_eq!(value("kernel").unwrap(), Reply::Text("loaded".into()));
        for name in ["", "-r", "../block", "a b"] {
            assert!(value(name).is_err() && set(name, &"loaded".into()).is_err(), "{name}");
        }
    }
}
