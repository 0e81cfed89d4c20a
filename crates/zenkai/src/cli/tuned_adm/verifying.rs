//! `tuned-adm verify`: the sentences of tuned, and one line in the log for each setting.

use std::io::Write;

use zenkai_host::{Knob, LiveHost};
use zenkai_tune::{Fault, Plan, State, Step, Want, When, plugins, profile::ProfileError};

use super::{
    CommandError, Exit, Tuned, change,
    log::{self, Level, Log},
};
use crate::cli::profile;

const BASE: &str = "plugins.base";

pub(super) fn verify(
    ignore_missing: bool,
    out: &mut dyn Write,
    err: &mut dyn Write,
) -> Result<Exit, CommandError> {
    let mut tuned = Tuned::open(&LiveHost).map_err(CommandError::usage)?;
    let mut log = Log::default();
    let good = compare(&mut tuned, ignore_missing, &mut log)?;
    if good {
        writeln!(out, "Verification succeeded, current system settings match the preset profile.")?;
    } else {
        writeln!(
            out,
            "Verification failed, current system settings differ from the preset profile.\n\
             You can mostly fix this by restarting the TuneD daemon, e.g.:\n  systemctl restart tuned\nor\n  \
             service tuned restart\n\
             Sometimes (if some plugins like bootloader are used) a reboot may be required."
        )?;
    }
    writeln!(out, "See TuneD log file ('{}') for details.", log::FILE)?;
    // The log is root's; without it what went wrong must be told here.
    let told = if change::is_root() {
        log.write(&tuned.conf).err().map(|why| format!("{} cannot be written: {why}", log::FILE))
    } else {
        let why = "only root may look at everything and write the log; what is not as asked:";
        (!good).then(|| why.to_owned())
    };
    if let Some(why) = told {
        writeln!(err, "zenkai: {why}")?;
        log.show(Level::Warning, err)?;
    }
    Ok(if good { Exit::Fine } else { Exit::Findings })
}

fn compare(tuned: &mut Tuned, ignore_missing: bool, log: &mut Log) -> Result<bool, CommandError> {
    let Some(names) = tuned.chosen().map_err(CommandError::usage)? else {
        log.add(Level::Error, "daemon.daemon", "no profile is set");
        return Ok(false);
    };
    let profile = match tuned.load(&names) {
        Ok(profile) => profile,
        Err(error) => {
            let why = format!("Cannot load profile(s) '{}': {}", names.join(" "), sentence(&error));
            log.add(Level::Error, "daemon.daemon", &why);
            return Ok(false);
        }
    };
    log.add(Level::Info, "daemon.daemon", &format!("verifying profile(s): {}", profile.names.join(" ")));
    let plan = profile::compared(tuned, &profile, &names, ignore_missing)?;
    Ok(judge(&plan, ignore_missing, log))
}

/// tuned's sentence for what scripts know, ours with file and line otherwise.
pub(super) fn sentence(error: &ProfileError) -> String {
    match error {
        ProfileError::Syntax(_) | ProfileError::Unreadable { .. } | ProfileError::TooLarge { .. } => {
            format!("{} ({error})", error.as_tuned())
        }
        _ => error.as_tuned(),
    }
}

/// One line for each step; whether all is as asked.
fn judge(plan: &Plan, ignore_missing: bool, log: &mut Log) -> bool {
    let mut good = true;
    for step in &plan.steps {
        let Some((level, text)) = line(step, ignore_missing) else { continue };
        good &= level != Level::Error;
        log.add(level, BASE, &text);
    }
    good
}

/// The line for a step; an error is a failure.
fn line(step: &Step, ignore_missing: bool) -> Option<(Level, String)> {
    let name = name(step);
    let device = step.wish.device.as_ref().map_or_else(String::new, |device| format!("device {device}: "));
    let asked = log::value(&step.wish.asked);
    let differs = |shows: &str, asked: &str| {
        let shows = log::value(shows);
        (Level::Error, format!("verify: failed: {device}'{name}' = '{shows}', expected '{asked}'"))
    };
    if let (Want::Run { .. }, State::Same { .. } | State::Change { .. }) = (&step.wish.want, &step.state) {
        return Some(match &step.state {
            State::Same { .. } => (Level::Info, format!("verify: passed: '{name}'")),
            _ => (Level::Error, format!("verify: failed: '{name}'")),
        });
    }
    Some(match &step.state {
        State::Same { value } => {
            let value = log::value(value.text().unwrap_or_default());
            (Level::Info, format!("verify: passed: {device}'{name}' = '{value}'"))
        }
        State::Change { from, to, when, .. } => {
            let wanted = log::value(to.text().unwrap_or("None"));
            let (level, text) = differs(from.text().unwrap_or("None"), &wanted);
            let later = if *when == When::AfterReboot { " (acts after a reboot)" } else { "" };
            (level, text + later)
        }
        State::Cannot { why, fault: Fault::Machine } => match missing(step) {
            Missing::Passes => (Level::Info, format!("verify: skipped, missing: {device}'{name}' ({why})")),
            Missing::Counts if ignore_missing => {
                (Level::Info, format!("verify: skipped, missing: {device}'{name}'"))
            }
            Missing::Counts | Missing::Fails => differs("None", &asked),
        },
        State::Cannot { why, fault: Fault::Reading } => {
            (Level::Error, format!("verify: failed: {device}'{name}' cannot be looked at: {why}"))
        }
        // What tuned does not know it passes over; a value that cannot be is never there.
        State::Cannot { why, fault: Fault::Profile } => {
            let known =
                plugins::find(&step.wish.plugin).is_some_and(|plugin| plugin.has_option(&step.wish.option));
            let level = if known { Level::Error } else { Level::Warning };
            (level, format!("{}: {why}", step.wish.origin))
        }
        State::Run | State::RunAgain => match &step.wish.want {
            Want::Run { verify: Some(act), .. } => (
                Level::Error,
                format!("verify: failed: '{act}' is run only as root, for a profile of root's"),
            ),
            _ => return None,
        },
        State::Hold => (Level::Warning, format!("'{name}' needs a living process and is not verified")),
        State::Leave(_) | State::Overruled { .. } => return None,
    })
}

/// What tuned makes of a setting that the machine does not have.
enum Missing {
    /// It is passed over.
    Passes,
    /// A failure, unless missing ones are to be ignored.
    Counts,
    /// A failure in any case.
    Fails,
}

fn missing(step: &Step) -> Missing {
    match step.wish.plugin.as_str() {
        // A whole unit without a device.
        _ if step.wish.option.is_empty() => Missing::Passes,
        "sysctl" | "sysfs" => Missing::Passes,
        "modules" | "net" => Missing::Fails,
        _ => Missing::Counts,
    }
}

fn name(step: &Step) -> String {
    match step.wish.knob() {
        // A glob stands for many files.
        Some(Knob::Attribute(path)) if step.wish.plugin == "sysfs" => path.clone(),
        Some(knob @ Knob::File(_)) if step.wish.option == "script" => knob.to_string(),
        _ if step.wish.option == "script" => step.wish.asked.clone(),
        _ if step.wish.option.is_empty() => format!("[{}]", step.wish.unit),
        _ => step.wish.option.clone(),
    }
}

#[cfg(test)]
mod tests {
    use zenkai_host::Value;
    use zenkai_tune::{Wish, profile::Origin};

    use super::*;

    fn step(plugin: &str, option: &str, device: Option<&str>, state: State) -> Step {
        let wish = Wish {
            origin: Origin::Line { file: "p".into(), line: 2 },
            unit: plugin.to_owned(),
            plugin: plugin.to_owned(),
            option: option.to_owned(),
            device: device.map(str::to_owned),
            asked: "1".to_owned(),
            want: Want::Leave(String::new()),
            risk: None,
        };
        Step { wish, state }
    }

    fn judged(state: State, plugin: &str, option: &str, ignore_missing: bool) -> (bool, String) {
        let mut log = Log::default();
        let plan = Plan { steps: vec![step(plugin, option, None, state)] };
        let good = judge(&plan, ignore_missing, &mut log);
        let mut shown = Vec::new();
        log.show(Level::Debug, &mut shown).unwrap();
        (good, String::from_utf8(shown).unwrap())
    }

    fn lacks() -> State {
        State::Cannot { why: "not here".into(), fault: Fault::Machine }
    }

    #[test]
    fn lines_are_tuned_s() {
        let text = |device, state| line(&step("disk", "readahead", device, state), false).unwrap().1;
        assert_eq!(
            text(Some("sda"), State::Same { value: "4096\n".into() }),
            "verify: passed: device sda: 'readahead' = '4096'"
        );
        let change = State::Change {
            from: Value::Absent,
            to: "4096".into(),
            alternatives: Vec::new(),
            when: When::Now,
        };
        assert_eq!(text(None, change), "verify: failed: 'readahead' = 'None', expected '4096'");
        let (good, shown) = judged(lacks(), "cpu", "boost", true);
        assert_eq!(
            (good, shown.as_str()),
            (true, "INFO     tuned.plugins.base: verify: skipped, missing: 'boost'\n")
        );
    }

    #[test]
    fn what_counts_as_a_failure() {
        assert!(!judged(lacks(), "cpu", "boost", false).0);
        assert!(judged(lacks(), "cpu", "boost", true).0);
        assert!(judged(lacks(), "cpu", "", false).0, "no device matches");
        assert!(judged(lacks(), "sysctl", "a.b", false).0);
        assert!(!judged(lacks(), "modules", "x", true).0);
        let unread = State::Cannot { why: "EACCES".into(), fault: Fault::Reading };
        assert!(!judged(unread, "sysctl", "a.b", true).0, "what was not looked at is no success");
        let mistake = || State::Cannot { why: "unknown".into(), fault: Fault::Profile };
        assert!(judged(mistake(), "disk", "no_option", false).0);
        assert!(!judged(mistake(), "disk", "elevator", false).0);
        assert!(judged(State::Hold, "cpu", "force_latency", false).0);
    }
}
