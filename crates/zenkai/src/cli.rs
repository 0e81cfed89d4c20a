//! The command line: one file per command.

mod analyze;
mod before_after;
mod bisect;
mod capture;
mod change;
mod checks;
mod compare;
mod diff;
mod doctor;
mod error;
mod experiment;
mod explain;
mod facts;
mod fix;
mod formats;
mod guard;
mod history;
mod host;
mod labels;
mod os_index;
mod output;
mod profile;
mod record;
mod recordings;
mod report;
mod scripts;
mod sysctls;
mod time;
mod tuned_adm;

use std::{ffi::OsString, io::Write, path::Path};

use clap::{Parser, Subcommand};

pub use error::{CommandError, Exit, Kind};

/// Finds out why a Linux server is not running at full speed, puts it right, and proves what that did
#[derive(Debug, Parser)]
#[command(name = "zenkai", version, max_term_width = 100, disable_help_subcommand = true)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

/// What a command is for stands at its arguments: words here would take the place of those in its `--help`.
#[derive(Debug, Subcommand)]
enum Command {
    Doctor(doctor::Args),
    Facts(facts::Args),
    Capture(capture::Args),
    Diff(diff::Args),
    Settings(diff::SettingsArgs),
    Explain(explain::Args),
    Checks(checks::Args),
    Profile(profile::Args),
    Compare(Box<compare::Args>),
    Bisect(Box<bisect::Args>),
    Analyze(analyze::Args),
    Report(report::Args),
    Record(record::Args),
    Export(formats::ExportArgs),
    Import(formats::ImportArgs),
    Undo(history::UndoArgs),
    Log(history::LogArgs),
    /// Put the machine back when an experiment is killed; started by the experiment itself
    #[command(hide = true)]
    Guard,
    OsIndex(os_index::Args),
    TunedAdm(tuned_adm::Args),
}

impl Command {
    fn changes(&self) -> bool {
        match self {
            Self::Profile(args) => args.changes(),
            // The guard waits for its turn, and a workload runs while an arm is entered on purpose.
            Self::Undo(_) | Self::Guard | Self::OsIndex(_) => true,
            _ => false,
        }
    }
}

/// Runs the program: `args` as given by the system, the program's name first. Exit codes are in [`Exit`].
pub fn run(
    args: impl IntoIterator<Item = impl Into<OsString> + Clone>,
    out: &mut dyn Write,
    err: &mut dyn Write,
) -> Exit {
    let mut args: Vec<OsString> = args.into_iter().map(Into::into).collect();
    // A link called `tuned-adm` is `zenkai tuned-adm`.
    if args.first().is_some_and(|program| Path::new(program).file_name() == Some("tuned-adm".as_ref())) {
        args.insert(1, "tuned-adm".into());
    }
    // Its command line is read by other rules than ours.
    if args.get(1).is_some_and(|command| command == "tuned-adm") {
        change::recover(err);
        return tuned_adm::run(&args[2..], out, err);
    }
    let cli = match Cli::try_parse_from(args) {
        Ok(cli) => cli,
        Err(problem) => return usage(&problem, out, err),
    };
    // What changes the machine recovers by itself, under the lock that it takes anyway.
    if !cli.command.changes() {
        change::recover(err);
    }
    let result = match cli.command {
        Command::Doctor(args) => doctor::run(&args, out, err),
        Command::Facts(args) => facts::run(&args, out),
        Command::Capture(args) => capture::run(&args, out, err),
        Command::Diff(args) => diff::run(&args, out, err),
        Command::Settings(args) => diff::settings(&args, out, err),
        Command::Explain(args) => explain::run(&args, out),
        Command::Checks(args) => checks::run(&args, out),
        Command::Profile(args) => profile::run(&args, out, err),
        Command::Analyze(args) => analyze::run(&args, out),
        Command::Report(args) => report::run(&args, out, err),
        Command::Record(args) => record::run(&args, out, err),
        Command::Export(args) => formats::export(&args, out, err),
        Command::Import(args) => formats::import(&args, out),
        Command::Undo(args) => history::undo(&args, out, err),
        Command::Log(args) => history::log(&args, out),
        Command::Compare(args) => compare::run(&args, out, err),
        Command::Bisect(args) => bisect::run(&args, out, err),
        Command::Guard => guard::run(err),
        Command::TunedAdm(args) => Ok(tuned_adm::run(&args.arguments, out, err)),
        Command::OsIndex(args) => os_index::run(&args, out, err),
    };
    result.unwrap_or_else(|error| error.report(err))
}

/// Help and version go to the output with success, mistakes to the error output.
fn usage<'w>(problem: &clap::Error, out: &'w mut dyn Write, err: &'w mut dyn Write) -> Exit {
    let (target, exit) = if problem.use_stderr() { (err, Exit::Usage) } else { (out, Exit::Fine) };
    let text = problem.render();
    let _ = if output::is_terminal() { write!(target, "{}", text.ansi()) } else { write!(target, "{text}") };
    exit
}
