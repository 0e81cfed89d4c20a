//! The command line: one file per command.

mod analyze;
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
mod time;
mod tuned_adm;

use std::{ffi::OsString, io::Write, path::Path};

use clap::{Parser, Subcommand};

pub use error::{CommandError, Exit, Kind};

/// Finds out why a Linux server is not running at full speed.
#[derive(Debug, Parser)]
#[command(name = "zenkai", version, max_term_width = 100, disable_help_subcommand = true)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Tell why this machine is not at full speed, with the evidence
    ///
    /// Exit code: 0 nothing found, 1 findings, 2 usage, 3 nothing found but parts unreadable for lack of permission.
    ///
    /// With --fix: 0 fixed, or there was nothing to fix; 1 a finding is left that zenkai cannot set; 3 a check could not
    /// be judged; 4 something was refused and everything was put back (with --keep-going: the rest was kept); 5
    /// something could not be put back; 77 not root.
    Doctor(doctor::Args),
    /// Show what is known of this machine
    Facts(facts::Args),
    /// Write what zenkai reads on this machine to a text file, without serial numbers and names
    Capture(capture::Args),
    /// Tell what differs between two machines, or one machine before and after, most suspicious first
    Diff(diff::Args),
    /// Write a profile that makes one machine like another one, as far as that can be done while it runs
    Settings(diff::SettingsArgs),
    /// Explain one check: what it means, what to do, when it is wrong
    Explain(explain::Args),
    /// List all checks
    Checks(checks::Args),
    /// Profiles: look at them, see what they would change here, apply them, take them off
    Profile(profile::Args),
    /// Recompute the verdict of a stored experiment
    Analyze(analyze::Args),
    /// Show a stored experiment as a page, text or JSON
    Report(report::Args),
    /// Record what the machine does, while a command runs or for some time
    Record(record::Args),
    /// Write a stored experiment for another program: benchstat, hyperfine's, pyperf's, R
    Export(formats::ExportArgs),
    /// Look at another program's results; information, never proof
    Import(formats::ImportArgs),
    /// Undo what zenkai changed
    Undo(history::UndoArgs),
    /// List what zenkai changed, newest first
    Log(history::LogArgs),
    /// Compare states of this machine, or commands: do they differ, and by how much?
    Compare(Box<compare::Args>),
    /// Put the machine back when an experiment is killed; started by the experiment itself
    #[command(hide = true)]
    Guard,
    /// Measure what an operating system does all day, to compare a machine with itself
    OsIndex(os_index::Args),
    /// tuned's own commands with its texts and exit codes, without its daemon
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
        Command::Diff(args) => diff::run(&args, out),
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
