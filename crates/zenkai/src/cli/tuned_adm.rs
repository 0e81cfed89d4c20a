//! `tuned-adm`: tuned 2.28's commands with its texts, files, log lines and exit codes, and without its daemon.

mod arguments;
mod changing;
mod log;
mod verifying;

use std::{ffi::OsString, io::Write};

use zenkai_host::{Host, LiveHost};
use zenkai_tune::{
    assigned, plugins,
    profile::{MainConf, PROFILE_MODE, ProfileError, State},
    transaction::{self, Store},
};

use super::{CommandError, Exit, change, error::Kind, profile::Tuned};
use arguments::{Action, Call};

/// tuned's own commands with its texts and exit codes, without its daemon.
///
/// Also when zenkai is called by a link named `tuned-adm`.
#[derive(Debug, clap::Args)]
#[command(disable_help_flag = true)]
pub(super) struct Args {
    /// A command of tuned-adm with its arguments; `--help` lists them
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, value_name = "ARGUMENT")]
    pub(super) arguments: Vec<OsString>,
}

/// `words` is what comes after the program's name.
pub(super) fn run(words: &[OsString], out: &mut dyn Write, err: &mut dyn Write) -> Exit {
    let words: Vec<String> = words.iter().map(|word| word.to_string_lossy().into_owned()).collect();
    match conf_and_call(&words, out, err) {
        Ok(exit) => exit,
        // tuned knows no exit code but 1 for what went wrong.
        Err(error) if error.kind == Kind::OutputClosed => Exit::Fine,
        Err(error) => {
            error.report(err);
            if let Some(ProfileError::Syntax(error)) = error.error.downcast_ref()
                && error.file == PROFILE_MODE
            {
                let _ = writeln!(err, "Invalid value in file {PROFILE_MODE}.");
            }
            Exit::Findings
        }
    }
}

fn conf_and_call(words: &[String], out: &mut dyn Write, err: &mut dyn Write) -> Result<Exit, CommandError> {
    let conf = MainConf::read(&LiveHost).map_err(CommandError::usage)?;
    match arguments::parse(words, conf.recommend_command) {
        Ok(call) => done(&call, out, err),
        Err(stop) if stop.code == 0 => {
            out.write_all(stop.text.as_bytes())?;
            Ok(Exit::Fine)
        }
        Err(stop) => {
            err.write_all(stop.text.as_bytes())?;
            Ok(if stop.code == 1 { Exit::Findings } else { Exit::Usage })
        }
    }
}

fn done(call: &Call, out: &mut dyn Write, err: &mut dyn Write) -> Result<Exit, CommandError> {
    match &call.action {
        Action::Profile(names) if !names.is_empty() => changing::profile(&names.join(" "), call, out, err),
        Action::AutoProfile => changing::auto_profile(call, out, err),
        Action::Off => changing::off(call, out, err),
        Action::Verify { ignore_missing } => verifying::verify(*ignore_missing, out, err),
        action => looked(&LiveHost, &in_force, action, out, err),
    }
}

/// Commands that only look. `in_force` tells whether the chosen profiles are, when it can be told.
fn looked(
    host: &dyn Host,
    in_force: &dyn Fn(&State) -> Option<bool>,
    action: &Action,
    out: &mut dyn Write,
    err: &mut dyn Write,
) -> Result<Exit, CommandError> {
    if let Action::List { plugins: true, verbose } = action {
        return Ok(list_plugins(*verbose, out)?);
    }
    let tuned = Tuned::open(host).map_err(CommandError::usage)?;
    match action {
        Action::Active => Ok(active(&tuned.state, in_force, out)?),
        Action::ProfileInfo(name) => info(&tuned, name, out, err),
        Action::Recommend => {
            writeln!(out, "{}", printable(&tuned.recommended().map_err(CommandError::usage)?))?;
            Ok(Exit::Fine)
        }
        Action::ProfileMode => {
            writeln!(out, "Profile selection mode: {}", tuned.state.effective_mode().word())?;
            Ok(Exit::Fine)
        }
        Action::GetInstances(plugin) => instances(&tuned, plugin, out, err),
        Action::GetDevices(name) => devices(&tuned, name, out, err),
        Action::AcquireDevices { instance } => acquire(&tuned, instance, err),
        _ => {
            writeln!(out, "Available profiles:")?;
            for (name, summary) in tuned.library.list() {
                let (name, summary) = (printable(&name), printable(&summary));
                if summary.is_empty() {
                    writeln!(out, "- {name}")?;
                } else {
                    writeln!(out, "- {name:<28}- {summary}")?;
                }
            }
            // The exit code of `list` is 0 whatever is active.
            active(&tuned.state, in_force, out)?;
            Ok(Exit::Fine)
        }
    }
}

/// Whether what the journals say is in force is what is chosen. Only root may read them.
fn in_force(state: &State) -> Option<bool> {
    if !change::is_root() || change::running_tuned().is_some() {
        return None;
    }
    let journals = format!("{}/transactions", Store::DEFAULT);
    if LiveHost.list(&journals).is_err() {
        return Some(false);
    }
    let active = transaction::active(&LiveHost, &Store::open(Store::DEFAULT).ok()?).ok()?;
    Some(active.is_some_and(|active| active.this_boot && active.names == state.active))
}

fn active(
    state: &State,
    in_force: &dyn Fn(&State) -> Option<bool>,
    out: &mut dyn Write,
) -> std::io::Result<Exit> {
    if state.active.is_empty() {
        writeln!(out, "No current active profile.")?;
        return Ok(Exit::Findings);
    }
    let names: Vec<&str> = state.active.iter().chain(&state.post_loaded).map(String::as_str).collect();
    let (names, post_loaded) = (printable(&names.join(" ")), state.post_loaded.as_deref().map(printable));
    let word = if in_force(state) == Some(false) {
        writeln!(out, "It seems that tuned daemon is not running, preset profile is not activated.")?;
        writeln!(out, "Preset profile: {names}")?;
        "Preset"
    } else {
        writeln!(out, "Current active profile: {names}")?;
        "Current"
    };
    if let Some(name) = post_loaded {
        writeln!(out, "{word} post-loaded profile: {name}")?;
    }
    Ok(Exit::Fine)
}

fn info(tuned: &Tuned, name: &str, out: &mut dyn Write, err: &mut dyn Write) -> Result<Exit, CommandError> {
    let names = if name.is_empty() { tuned.state.active.clone() } else { vec![name.to_owned()] };
    if names.is_empty() {
        writeln!(out, "No current active profile.")?;
        return Ok(Exit::Findings);
    }
    let shown = printable(&names.join(" "));
    // Of several profiles the last one has the word.
    let last = names.last().map(std::slice::from_ref).unwrap_or_default();
    match tuned.library.load(last, None, &tuned.functions()) {
        Ok(profile) => {
            let (summary, description) = (printable(&profile.summary), printable(&profile.description));
            writeln!(
                out,
                "Profile name:\n{shown}\n\nProfile summary:\n{summary}\n\nProfile description:\n{description}"
            )?;
            Ok(Exit::Fine)
        }
        Err(error) => {
            let short: String = shown.chars().take(255).collect();
            writeln!(out, "Unable to get information about profile '{short}'")?;
            // tuned does not say why; a profile that is there and cannot be used deserves it.
            if !matches!(error, ProfileError::NotFound { .. } | ProfileError::BadName { .. }) {
                writeln!(err, "zenkai: {}", log::one_line(&error.to_string()))?;
            }
            Ok(Exit::Findings)
        }
    }
}

fn list_plugins(verbose: bool, out: &mut dyn Write) -> std::io::Result<Exit> {
    for plugin in plugins::PLUGINS {
        writeln!(out, "{}", plugin.name)?;
        for option in plugin.options.iter().filter(|_| verbose) {
            // Options that may have any name are no list.
            let name = option.name.trim_end_matches('*');
            if !name.is_empty() && !name.ends_with('.') {
                writeln!(out, "\t{name}\n\t\t{}", option.help)?;
            }
        }
    }
    Ok(Exit::Fine)
}

/// The units of the chosen profile that are used here.
fn in_use(tuned: &Tuned) -> Result<Vec<zenkai_tune::Assigned>, CommandError> {
    if tuned.state.active.is_empty() && tuned.state.post_loaded.is_none() {
        return Ok(Vec::new());
    }
    let profile = tuned.load(&tuned.state.active).map_err(|error| tuned.failure(error))?;
    Ok(assigned(&tuned.scene(), &profile, &tuned.conf, tuned.functions()))
}

fn instances(
    tuned: &Tuned,
    plugin: &str,
    out: &mut dyn Write,
    err: &mut dyn Write,
) -> Result<Exit, CommandError> {
    if !plugin.is_empty() && plugins::find(plugin).is_none() {
        let short = shortened(plugin);
        writeln!(err, "Unable to list instances: Plugin '{short}' does not exist")?;
        return Ok(Exit::Findings);
    }
    for unit in in_use(tuned)?.iter().filter(|unit| plugin.is_empty() || unit.plugin.name == plugin) {
        writeln!(out, "{} ({})", printable(&unit.unit), unit.plugin.name)?;
    }
    Ok(Exit::Fine)
}

fn devices(
    tuned: &Tuned,
    name: &str,
    out: &mut dyn Write,
    err: &mut dyn Write,
) -> Result<Exit, CommandError> {
    let units = in_use(tuned)?;
    let Some(unit) = units.iter().find(|unit| unit.unit == name) else {
        writeln!(err, "Unable to list devices: Instance '{}' not found", shortened(name))?;
        return Ok(Exit::Findings);
    };
    for device in &unit.devices {
        writeln!(out, "{}", printable(device))?;
    }
    Ok(Exit::Fine)
}

/// Which instance has a device is kept nowhere but in a daemon, so that there is nothing to change.
fn acquire(tuned: &Tuned, name: &str, err: &mut dyn Write) -> Result<Exit, CommandError> {
    let why = match in_use(tuned)?.iter().find(|unit| unit.unit == name) {
        None => format!("Instance '{}' not found", shortened(name)),
        Some(unit) if unit.plugin.devices.is_none() => {
            format!("Plugin '{}' does not support hotplugging or dynamic instances.", unit.plugin.name)
        }
        Some(_) => {
            "this needs a daemon; write the devices into the profile (devices=) and apply it again".to_owned()
        }
    };
    writeln!(err, "Unable to acquire devices: {why}")?;
    Ok(Exit::Findings)
}

/// Text of a profile without what a terminal would act on; line breaks stay.
fn printable(text: &str) -> String {
    text.split('\n').map(zenkai_report::printable).collect::<Vec<_>>().join("\n")
}

/// A name from the command line, in one line and not endless.
fn shortened(name: &str) -> String {
    log::one_line(&name.chars().take(255).collect::<String>())
}

#[cfg(test)]
mod tests {
    use zenkai_host::FakeHost;

    use super::*;

    fn call(host: &FakeHost, action: &Action) -> (String, String, u8) {
        let (mut out, mut err) = (Vec::new(), Vec::new());
        let exit = looked(host, &|_| None, action, &mut out, &mut err).unwrap();
        (String::from_utf8(out).unwrap(), String::from_utf8(err).unwrap(), exit.code())
    }

    fn host() -> FakeHost {
        FakeHost::new(&[
            (
                "/etc/tuned/profiles/a-test/tuned.conf",
                "[main]\nsummary=For a test\ndescription=More\n[sysctl]\nvm.swappiness=1\n\
                 [mine]\ntype=disk\ndevices=sdb\n[disk]\n[off]\ntype=vm\nenabled=0\n",
            ),
            ("/etc/tuned/profiles/b-test/tuned.conf", "[main]\n"),
            ("/sys/block/sda/removable", "0\n"),
            ("/sys/block/sda/queue/read_ahead_kb", "128\n"),
            ("/sys/block/sdb/removable", "0\n"),
            ("/sys/block/sdb/queue/read_ahead_kb", "128\n"),
        ])
    }

    const LIST: Action = Action::List { plugins: false, verbose: false };

    #[test]
    fn texts_that_scripts_read() {
        let (out, _, code) = call(&host(), &LIST);
        assert!(out.starts_with("Available profiles:\n"), "{out}");
        assert!(out.contains("\n- a-test                      - For a test\n- b-test\n"), "{out}");
        assert!(out.ends_with("\nNo current active profile.\n") && code == 0, "{out}");
        let (out, _, code) = call(&host(), &Action::Active);
        assert_eq!((out.as_str(), code), ("No current active profile.\n", 1));
        let (out, _, code) = call(&host(), &Action::ProfileInfo(String::new()));
        assert_eq!((out.as_str(), code), ("No current active profile.\n", 1));
        let chosen = host().file("/etc/tuned/active_profile", "a-test\n");
        let (out, _, code) = call(&chosen, &Action::Active);
        assert_eq!((out.as_str(), code), ("Current active profile: a-test\n", 0));
        assert_eq!(call(&chosen, &Action::ProfileMode).0, "Profile selection mode: manual\n");
        let (out, _, code) = call(&chosen, &Action::ProfileInfo(String::new()));
        let wanted = "Profile name:\na-test\n\nProfile summary:\nFor a test\n\nProfile description:\nMore\n";
        assert_eq!((out.as_str(), code), (wanted, 0));
        let both = chosen.file("/etc/tuned/post_loaded_profile", "b-test\n");
        let wanted = "Current active profile: a-test b-test\nCurrent post-loaded profile: b-test\n";
        assert_eq!(call(&both, &Action::Active).0, wanted);
        let (mut out, mut err) = (Vec::new(), Vec::new());
        looked(&both, &|_| Some(false), &Action::Active, &mut out, &mut err).unwrap();
        let wanted = "It seems that tuned daemon is not running, preset profile is not activated.\n\
                      Preset profile: a-test b-test\nPreset post-loaded profile: b-test\n";
        assert_eq!(String::from_utf8(out).unwrap(), wanted);
    }

    #[test]
    fn what_profiles_say_does_not_steer_the_terminal() {
        let host = FakeHost::new(&[
            ("/etc/tuned/active_profile", "x\u{2066}y\n"),
            (
                "/etc/tuned/profiles/x\u{2066}y/tuned.conf",
                "[main]\nsummary=a\u{202e}b\u{200b}\ndescription=\u{9b}c\n",
            ),
        ]);
        for action in [LIST, Action::Active, Action::ProfileInfo(String::new())] {
            let (out, ..) = call(&host, &action);
            assert!(out.contains("x\\u{2066}y"), "{out}");
            assert!(out.chars().all(|letter| letter == '\n' || !zenkai_host::is_hidden(letter)), "{out}");
        }
    }

    #[test]
    fn instances_of_the_chosen_profile() {
        let all = Action::GetInstances(String::new());
        assert_eq!(call(&host(), &all), (String::new(), String::new(), 0));
        let chosen = host().file("/etc/tuned/active_profile", "a-test\n");
        assert_eq!(call(&chosen, &all).0, "sysctl (sysctl)\nmine (disk)\ndisk (disk)\n");
        assert_eq!(call(&chosen, &Action::GetInstances("sysctl".into())).0, "sysctl (sysctl)\n");
        let (_, err, code) = call(&chosen, &Action::GetInstances("nope".into()));
        assert_eq!((err.as_str(), code), ("Unable to list instances: Plugin 'nope' does not exist\n", 1));
        assert_eq!(call(&chosen, &Action::GetDevices("mine".into())).0, "sdb\n");
        assert_eq!(call(&chosen, &Action::GetDevices("disk".into())).0, "sda\n");
        let (_, err, code) = call(&chosen, &Action::GetDevices("x\ny".into()));
        assert_eq!((err.as_str(), code), ("Unable to list devices: Instance 'x y' not found\n", 1));
        for (instance, why) in [
            ("nope", "Instance 'nope' not found"),
            ("sysctl", "Plugin 'sysctl' does not support hotplugging or dynamic instances."),
            ("mine", "this needs a daemon"),
        ] {
            let (out, err, code) = call(&chosen, &Action::AcquireDevices { instance: instance.into() });
            assert!(out.is_empty() && code == 1, "{instance}");
            assert!(err.starts_with(&format!("Unable to acquire devices: {why}")), "{err}");
        }
    }

    #[test]
    fn plugins_and_their_options() {
        let (out, _, code) = call(&host(), &Action::List { plugins: true, verbose: false });
        let names: Vec<&str> = plugins::PLUGINS.iter().map(|plugin| plugin.name).collect();
        assert_eq!((out.lines().collect::<Vec<_>>(), code), (names, 0));
        let (out, ..) = call(&host(), &Action::List { plugins: true, verbose: true });
        assert!(out.contains("\ndisk\n\tdynamic\n\t\t"), "{out}");
        assert!(out.contains("\nbootloader\n\tcmdline\n\t\t") && !out.contains('*'), "{out}");
    }

    #[test]
    fn looking_for_a_fitting_profile_can_be_switched_off() {
        let host = host().file("/etc/tuned/recommend.conf", "[a-test]\n");
        assert_eq!(call(&host, &Action::Recommend).0, "a-test\n");
        let host = host.file("/etc/tuned/tuned-main.conf", "recommend_command=0\n");
        assert_eq!(call(&host, &Action::Recommend).0, "balanced\n");
    }

    #[test]
    fn names_that_are_refused() {
        for name in ["nope", "\u{1b}[31m", "a\u{202e}b", "../x", "a/b", &"x".repeat(5000)] {
            let (out, err, code) = call(&host(), &Action::ProfileInfo(name.to_owned()));
            assert!(err.is_empty() && code == 1 && out.starts_with("Unable to get information"), "{out}");
            assert!(!out.contains(['\u{1b}', '\u{202e}']) && out.len() < 400);
        }
    }
}
