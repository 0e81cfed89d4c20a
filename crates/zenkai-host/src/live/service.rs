//! Services: systemd is told by `systemctl`, since a D-Bus connection of our own would weigh more than it saves.

use std::io;

use rustix::io::Errno;

use crate::{Act, Value, derived};

/// Starts or stops a service.
pub(super) fn set(name: &str, value: &Value) -> io::Result<()> {
    let verb = match value.text() {
        Some("running") => "start",
        Some("stopped") => "stop",
        _ => return Err(Errno::INVAL.into()),
    };
    systemctl(verb, name)
}

/// Lets a service start with the machine, or not.
pub(super) fn set_enabled(name: &str, value: &Value) -> io::Result<()> {
    let verb = match value.text() {
        Some("enabled") => "enable",
        Some("disabled") => "disable",
        _ => return Err(Errno::INVAL.into()),
    };
    systemctl(verb, name)
}

fn systemctl(verb: &str, name: &str) -> io::Result<()> {
    let unit = derived::unit(name).ok_or(Errno::INVAL)?;
    let argv = ["systemctl", verb, "--", &unit].map(str::to_owned).to_vec();
    let finished = super::run::run(&Act::Command { argv })?;
    if finished.code == 0 {
        return Ok(());
    }
    let said = finished.output.lines().find(|line| !line.trim().is_empty()).unwrap_or("no message");
    Err(io::Error::other(format!("systemctl {verb} {unit}: exit code {}: {said}", finished.code)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_words_that_make_no_sense_never_reach_systemctl() {
        let errno = |result: io::Result<()>| result.unwrap_err().raw_os_error();
        let invalid = Some(Errno::INVAL.raw_os_error());
        assert_eq!(errno(set("--help", &"running".into())), invalid);
        assert_eq!(errno(set("a/b", &"running".into())), invalid);
        assert_eq!(errno(set("sshd", &"enabled".into())), invalid);
        assert_eq!(errno(set_enabled("sshd", &Value::Absent)), invalid);
    }
}
