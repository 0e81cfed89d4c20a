//! `tuned-adm`: the commands of tuned 2.28 that only look, with its texts and exit codes, and without its daemon.

use std::io::Write;

use clap::Subcommand;
use zenkai_host::{Host, LiveHost};
use zenkai_tune::profile::{Functions, Library, MainConf, ProfileError, State, recommend};

use super::{CommandError, Exit};

/// tuned's own commands, for scripts that use them; those that only look.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
#[command(rename_all = "snake_case")]
enum Command {
    /// List the profiles
    List,
    /// Show the active profile
    Active,
    /// Show a profile's summary and description
    ProfileInfo {
        /// The profile [default: the active one]
        profile: Option<String>,
    },
    /// Show the recommended profile
    Recommend,
    /// Show how the profile was chosen
    ProfileMode,
}

pub(super) fn run(args: &Args, out: &mut dyn Write, err: &mut dyn Write) -> Result<Exit, CommandError> {
    on(&LiveHost, &args.command, out, err)
}

fn on(
    host: &dyn Host,
    command: &Command,
    out: &mut dyn Write,
    err: &mut dyn Write,
) -> Result<Exit, CommandError> {
    let conf = MainConf::read(host).map_err(CommandError::usage)?;
    let library = Library::new(host, conf.profile_directories);
    let state = State::read(host).map_err(CommandError::usage)?;
    match command {
        Command::List => {
            writeln!(out, "Available profiles:")?;
            for (name, summary) in library.list() {
                let (name, summary) = (printable(&name), printable(&summary));
                if summary.is_empty() {
                    writeln!(out, "- {name}")?;
                } else {
                    writeln!(out, "- {name:<28}- {summary}")?;
                }
            }
            // The exit code of `list` is 0 whatever is active.
            active(&state, out)?;
            Ok(Exit::Fine)
        }
        Command::Active => Ok(active(&state, out)?),
        Command::ProfileInfo { profile } => {
            let names = profile.clone().map_or_else(|| state.active.clone(), |name| vec![name]);
            info(host, &library, &names, out, err)
        }
        Command::Recommend => {
            writeln!(out, "{}", printable(&recommend(host).map_err(CommandError::usage)?.profile))?;
            Ok(Exit::Fine)
        }
        Command::ProfileMode => {
            writeln!(out, "Profile selection mode: {}", state.effective_mode().word())?;
            Ok(Exit::Fine)
        }
    }
}

fn active(state: &State, out: &mut dyn Write) -> std::io::Result<Exit> {
    if state.active.is_empty() {
        writeln!(out, "No current active profile.")?;
    } else {
        writeln!(out, "Current active profile: {}", printable(&state.active.join(" ")))?;
    }
    if let Some(name) = &state.post_loaded {
        writeln!(out, "Current post-loaded profile: {}", printable(name))?;
    }
    Ok(if state.active.is_empty() { Exit::Findings } else { Exit::Fine })
}

fn info(
    host: &dyn Host,
    library: &Library,
    names: &[String],
    out: &mut dyn Write,
    err: &mut dyn Write,
) -> Result<Exit, CommandError> {
    let shown = printable(&names.join(" "));
    match library.load(names, None, &Functions { host, commands: None }) {
        Ok(profile) => {
            let (summary, description) = (printable(&profile.summary), printable(&profile.description));
            writeln!(
                out,
                "Profile name:\n{shown}\n\nProfile summary:\n{summary}\n\nProfile description:\n{description}"
            )?;
            Ok(Exit::Fine)
        }
        Err(ProfileError::NoName) => {
            writeln!(err, "No current active profile.")?;
            Ok(Exit::Findings)
        }
        Err(_) => {
            let short: String = shown.chars().take(255).collect();
            writeln!(err, "Unable to get information about profile '{short}'")?;
            Ok(Exit::Findings)
        }
    }
}

/// Text of a profile without what a terminal would act on; line breaks stay.
fn printable(text: &str) -> String {
    text.chars()
        .map(|letter| if letter.is_control() && letter != '\n' { '\u{fffd}' } else { letter })
        .collect()
}

#[cfg(test)]
mod tests {
    use zenkai_host::FakeHost;

    use super::*;

    fn call(host: &FakeHost, command: &Command) -> (String, String, u8) {
        let (mut out, mut err) = (Vec::new(), Vec::new());
        let exit = on(host, command, &mut out, &mut err).unwrap();
        (String::from_utf8(out).unwrap(), String::from_utf8(err).unwrap(), exit.code())
    }

    fn host() -> FakeHost {
        FakeHost::new(&[
            ("/etc/tuned/profiles/a-test/tuned.conf", "[main]\nsummary=For a test\ndescription=More\n"),
            ("/etc/tuned/profiles/b-test/tuned.conf", "[main]\n"),
        ])
    }

    #[test]
    fn texts_that_scripts_read() {
        let (out, _, code) = call(&host(), &Command::List);
        assert!(out.starts_with("Available profiles:\n"), "{out}");
        assert!(out.contains("\n- a-test                      - For a test\n- b-test\n"), "{out}");
        assert!(out.ends_with("\nNo current active profile.\n") && code == 0, "{out}");
        let (out, _, code) = call(&host(), &Command::Active);
        assert_eq!((out.as_str(), code), ("No current active profile.\n", 1));
        let chosen = host().file("/etc/tuned/active_profile", "a-test\n");
        let (out, _, code) = call(&chosen, &Command::Active);
        assert_eq!((out.as_str(), code), ("Current active profile: a-test\n", 0));
        assert_eq!(call(&chosen, &Command::ProfileMode).0, "Profile selection mode: manual\n");
        let (out, _, code) = call(&chosen, &Command::ProfileInfo { profile: None });
        let wanted = "Profile name:\na-test\n\nProfile summary:\nFor a test\n\nProfile description:\nMore\n";
        assert_eq!((out.as_str(), code), (wanted, 0));
    }

    #[test]
    fn names_that_are_refused() {
        for name in ["nope", "\u{1b}[31m", "../x", ""] {
            let (out, err, code) = call(&host(), &Command::ProfileInfo { profile: Some(name.to_owned()) });
            assert!(out.is_empty() && code == 1 && err.starts_with("Unable to get information"), "{err}");
            assert!(!err.contains('\u{1b}'));
        }
    }
}
