//! `tuned-adm profile`, `auto_profile` and `off`.

use std::{io::Write, time::Duration};

use zenkai_host::{Knob, LiveHost};
use zenkai_report::fate;
use zenkai_tune::{
    Fault, Plan, State, Step,
    profile::{MainConf, Mode, Origin, ProfileError, State as Chosen},
    transaction::{End, Fate, Report, TransactionError},
};

use super::{
    Call, CommandError, Exit, Tuned, change,
    log::{self, Level, Log},
    verifying::sentence,
};

/// So many settings that were not made are named at the terminal; the log has all.
const SHOWN: usize = 5;
/// A profile name that tuned's interface takes: letters, digits and these.
const NAME_SIGNS: &str = " !@'+-.,/:;_$&*()%<=>?#[]{}|^~\"";
const NAME_LIMIT: usize = 4096;
const DAEMON: &str = "daemon.daemon";

pub(super) fn profile(
    names: &str,
    call: &Call,
    out: &mut dyn Write,
    err: &mut dyn Write,
) -> Result<Exit, CommandError> {
    if names.is_empty() {
        return Ok(Exit::Findings);
    }
    let is_valid = names.len() <= NAME_LIMIT
        && names.chars().all(|letter| letter.is_ascii_alphanumeric() || NAME_SIGNS.contains(letter));
    let names: Vec<String> = names.split_whitespace().map(str::to_owned).collect();
    if !is_valid || names.is_empty() {
        writeln!(err, "Unable to switch profile: Invalid profile_name")?;
        return Ok(Exit::Findings);
    }
    switch(&names, Mode::Manual, call, out, err)
}

pub(super) fn auto_profile(
    call: &Call,
    out: &mut dyn Write,
    err: &mut dyn Write,
) -> Result<Exit, CommandError> {
    let tuned = Tuned::open(&LiveHost).map_err(CommandError::usage)?;
    let names = vec![tuned.recommended().map_err(CommandError::usage)?];
    switch(&names, Mode::Auto, call, out, err)
}

fn switch(
    names: &[String],
    mode: Mode,
    call: &Call,
    out: &mut dyn Write,
    err: &mut dyn Write,
) -> Result<Exit, CommandError> {
    let mut log = Log::default();
    // tuned keeps what worked, and its exit code says nothing of the rest; scripts rely on both.
    let exit = match change::switch(names, mode, true, Duration::from_secs(call.timeout_s), err) {
        Ok((plan, report)) => {
            tell(&plan, &report, &mut log);
            match &report.end {
                End::Done | End::Partly => {
                    let state = Chosen::read(&LiveHost).map_err(CommandError::usage)?;
                    let all: Vec<&str> = names.iter().chain(&state.post_loaded).map(String::as_str).collect();
                    let text = format!("static tuning from profile '{}' applied", all.join(" "));
                    log.add(Level::Info, DAEMON, &text);
                    Exit::Fine
                }
                end => {
                    let why = match end {
                        End::RolledBack { why } | End::NeedsAttention { why } => log::one_line(why),
                        _ => "it was cut short".to_owned(),
                    };
                    log.add(Level::Error, DAEMON, &why);
                    writeln!(out, "Error changing profile: {why}")?;
                    Exit::Findings
                }
            }
        }
        Err(error) => {
            refused(&error, names, call, &mut log, out, err)?;
            Exit::Findings
        }
    };
    finish(&log, call, err)?;
    Ok(exit)
}

pub(super) fn off(call: &Call, out: &mut dyn Write, err: &mut dyn Write) -> Result<Exit, CommandError> {
    let before = Chosen::read(&LiveHost).map_err(CommandError::usage)?;
    let mut log = Log::default();
    let wait = Duration::from_secs(call.timeout_s);
    let exit = match change::take_off(change::none_chosen(&before), wait, err) {
        Ok(report) => {
            tell(&Plan { steps: Vec::new() }, &report, &mut log);
            let stays = report.rows.iter().any(|row| matches!(row.fate, Fate::NotRestored { .. }));
            if stays || !matches!(report.end, End::Done | End::Partly) {
                writeln!(err, "Cannot disable active profile.")?;
                Exit::Findings
            } else {
                log.add(Level::Info, DAEMON, "terminating TuneD, rolling back all changes");
                Exit::Fine
            }
        }
        Err(error) if is_locked(&error) => {
            timed_out(call, out)?;
            Exit::Findings
        }
        Err(error) => {
            writeln!(err, "Cannot disable active profile.")?;
            if change::is_root() {
                error.report(err);
            }
            Exit::Findings
        }
    };
    finish(&log, call, err)?;
    Ok(exit)
}

/// Why nothing was changed, in tuned's words where it has some.
fn refused(
    error: &CommandError,
    names: &[String],
    call: &Call,
    log: &mut Log,
    out: &mut dyn Write,
    err: &mut dyn Write,
) -> std::io::Result<()> {
    if is_locked(error) {
        return timed_out(call, out);
    }
    let known = error.error.downcast_ref::<ProfileError>().map(|error| reason(error, names));
    let why = match known {
        _ if !change::is_root() => "Unauthorized".to_owned(),
        Some(why) => why,
        None => log::one_line(&format!("{:#}", error.error)),
    };
    log.add(Level::Error, "daemon.controller", &format!("Failed to apply profile '{}'", names.join(" ")));
    log.add(Level::Error, "daemon.controller", &why);
    writeln!(err, "Unable to switch profile: {}", log::one_line(&why))?;
    if error.error.downcast_ref::<ProfileError>().is_none() {
        error.hints.iter().try_for_each(|hint| writeln!(err, "  try: {}", log::one_line(hint)))?;
    }
    Ok(())
}

fn reason(error: &ProfileError, names: &[String]) -> String {
    match error {
        ProfileError::NotFound { name, origin: Origin::CommandLine, .. }
        | ProfileError::BadName { name, origin: Origin::CommandLine } => {
            let short: String = name.chars().take(255).collect();
            format!("Requested profile '{short}' doesn't exist.")
        }
        other => format!("Cannot load profile(s) '{}': {}", names.join(" "), sentence(other)),
    }
}

fn is_locked(error: &CommandError) -> bool {
    matches!(error.error.downcast_ref(), Some(TransactionError::Locked { .. }))
}

fn timed_out(call: &Call, out: &mut dyn Write) -> std::io::Result<()> {
    writeln!(
        out,
        "Operation timed out after waiting {} seconds(s), you may try to increase timeout by using --timeout command \
         line option or using --async.",
        call.timeout_s
    )
}

/// What was not done, as lines of the log.
fn tell(plan: &Plan, report: &Report, log: &mut Log) {
    for step in &plan.steps {
        let origin = &step.wish.origin;
        match &step.state {
            State::Cannot { why, fault: Fault::Profile } => {
                log.add(Level::Warning, "plugins.base", &format!("{origin}: {why}"));
            }
            State::Cannot { why, .. } => log.add(Level::Info, "plugins.base", &format!("{origin}: {why}")),
            State::Hold => {
                let text =
                    format!("{origin}: {} needs a living process and is not in force", step.wish.option);
                log.add(Level::Warning, "plugins.base", &text);
            }
            _ => {}
        }
    }
    for row in &report.rows {
        let level = match row.fate {
            Fate::Refused { .. } | Fate::NotRestored { .. } => Level::Error,
            Fate::Adjusted { .. } => Level::Warning,
            Fate::Kept { .. } | Fate::Skipped { .. } => Level::Info,
            Fate::Set | Fate::Restored => continue,
        };
        let step = row.knob.as_ref().and_then(|knob| step_of(plan, knob));
        let module =
            step.map_or("plugins.base".to_owned(), |step| format!("plugins.plugin_{}", step.wish.plugin));
        let what = &row.what;
        match (&row.fate, &row.knob) {
            (Fate::Refused { why } | Fate::NotRestored { why }, None) => {
                log.add(level, "plugins.base", &format!("{what}: {why}"));
            }
            _ => log.add(level, &module, &format!("{what}: {}", fate(row, &report.end))),
        }
    }
}

/// The step for a knob; a sysctl may be told by its file.
fn step_of<'p>(plan: &'p Plan, knob: &Knob) -> Option<&'p Step> {
    plan.steps.iter().find(|step| {
        step.wish.knob().is_some_and(|own| own == knob || (own.path().is_some() && own.path() == knob.path()))
    })
}

/// Writes the log, and shows what was asked for of it; what was not done is told in any case but `--loglevel none`.
fn finish(log: &Log, call: &Call, err: &mut dyn Write) -> Result<(), CommandError> {
    match call.level {
        Some(Level::Console) => {
            let mut lines = Vec::new();
            log.show(Level::Warning, &mut lines)?;
            let lines = String::from_utf8_lossy(&lines);
            // What was refused as a whole has been told already.
            let lines: Vec<&str> = lines.lines().filter(|line| !line.contains("tuned.daemon.")).collect();
            for line in lines.iter().take(SHOWN) {
                writeln!(err, "{line}")?;
            }
            if lines.len() > SHOWN {
                writeln!(err, "and {} more, see {}", lines.len() - SHOWN, log::FILE)?;
            }
        }
        Some(level) => log.show(level, err)?,
        None => {}
    }
    if change::is_root()
        && let Err(why) = MainConf::read(&LiveHost).map_or(Ok(()), |conf| log.write(&conf))
    {
        writeln!(err, "zenkai: {} cannot be written: {why}", log::FILE)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reasons_in_tuned_s_words() {
        let names = ["a".to_owned(), "nope".to_owned()];
        let missing = |origin| ProfileError::NotFound {
            name: "nope".into(),
            origin,
            directories: vec!["/etc/tuned".into()],
            not_recorded: false,
        };
        assert_eq!(reason(&missing(Origin::CommandLine), &names), "Requested profile 'nope' doesn't exist.");
        let included = missing(Origin::Line { file: "a".into(), line: 2 });
        assert_eq!(
            reason(&included, &names),
            "Cannot load profile(s) 'a nope': Cannot find profile 'nope' in '['/etc/tuned']'."
        );
    }
}
