//! Changing this machine: `zenkai profile apply`, `off` and `new`, and what all changing commands share.

use std::{
    io::{self, Write},
    sync::atomic::{AtomicBool, Ordering},
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use anyhow::anyhow;
use zenkai_host::{Act, Host, Knob, LiveHost, Query, TunableHost, trusted_file};
use zenkai_report::{Block, printable};
use zenkai_tune::{
    Plan, Want, When, Wish,
    profile::{Commands, Mode, Profile, State, is_name},
    transaction::{End, Fate, Held, Kind, Report, Request, Session, Store, TransactionError},
};

use super::{CommandError, Exit, output, profile::Tuned};

/// How long we wait for another zenkai to finish: longer than any switch without scripts.
const LOCK_WAIT: Duration = Duration::from_secs(10);

#[derive(Debug, clap::Args)]
pub(super) struct ApplyArgs {
    /// Profiles; the later ones are stronger
    #[arg(required = true, value_name = "NAME")]
    names: Vec<String>,
    /// Keep what worked when something is refused
    #[arg(long)]
    keep_going: bool,
    /// Show the plan and change nothing
    #[arg(long)]
    dry_run: bool,
    /// Write JSON
    #[arg(long)]
    json: bool,
}

impl ApplyArgs {
    pub(super) fn changes(&self) -> bool {
        !self.dry_run
    }
}

#[derive(Debug, clap::Args)]
pub(super) struct OffArgs {
    /// Write JSON
    #[arg(long)]
    json: bool,
}

#[derive(Debug, clap::Args)]
pub(super) struct NewArgs {
    /// The profile's name: letters, digits, `_`, `.` and `-`
    #[arg(value_name = "NAME")]
    name: String,
}

pub(super) fn apply(
    args: &ApplyArgs,
    out: &mut dyn Write,
    err: &mut dyn Write,
) -> Result<Exit, CommandError> {
    if args.dry_run {
        let tuned = Tuned::open_live()?;
        let profile = tuned.load(&args.names).map_err(|error| tuned.failure(error))?;
        let plan = tuned.plan(&profile);
        if args.json {
            output::write_json(out, &zenkai_report::plan_json(&profile.names, &plan)?)?;
        } else {
            let title = format!("plan: {}", profile.names.join(" "));
            output::write_blocks(out, &zenkai_report::plan(&title, &plan))?;
        }
        return Ok(Exit::Fine);
    }
    let (plan, report) = switch(&args.names, Mode::Manual, args.keep_going, LOCK_WAIT, err)?;
    tell(&report, Some(&plan), args.json, out)
}

/// Puts these profiles in force, waiting at most this long for another zenkai.
pub(super) fn switch(
    names: &[String],
    mode: Mode,
    keep_going: bool,
    wait: Duration,
    err: &mut dyn Write,
) -> Result<(Plan, Report), CommandError> {
    changing_within(wait, err, |session, _| {
        let (tuned, mut wishes) = trusted_wishes(names, session.held()?)?;
        let state =
            State { active: names.to_vec(), mode: Some(mode), post_loaded: tuned.state.post_loaded.clone() };
        wishes.extend(chosen(&state));
        let plan = Plan::new(&LiveHost, wishes);
        let request = Request {
            label: format!("profile {}", names.join(" ")),
            names: names.to_vec(),
            keep_going,
            ..request(Kind::Profile)
        };
        let report = session.apply(&LiveHost, &plan, &request)?;
        Ok((plan, report))
    })
}

/// What these profiles ask for, with the machine they were looked at on. Refuses profiles that others than root could
/// have written.
pub(super) fn trusted_wishes(
    names: &[String],
    held: Held,
) -> Result<(Tuned<'static>, Vec<Wish>), CommandError> {
    let asked = Asked(AtomicBool::new(false));
    let mut tuned = Tuned::open_live_with(held)?;
    let mut profile = tuned.load_with(names, Some(&asked)).map_err(|error| tuned.failure(error))?;
    trusted(&profile)?;
    // Only now may functions of the profile run programs: nobody but root wrote them.
    tuned.commands = Some(&Programs);
    if asked.0.into_inner() {
        profile = tuned.load(names).map_err(|error| tuned.failure(error))?;
        // What a program answers may name further files.
        trusted(&profile)?;
    }
    let wishes = tuned.wishes(&profile);
    Ok((tuned, wishes))
}

pub(super) fn off(args: &OffArgs, out: &mut dyn Write, err: &mut dyn Write) -> Result<Exit, CommandError> {
    let report = take_off(Vec::new(), LOCK_WAIT, err)?;
    tell(&report, None, args.json, out)
}

/// Takes the profile off, with these wishes besides, waiting at most this long for another zenkai.
pub(super) fn take_off(
    wishes: Vec<Wish>,
    wait: Duration,
    err: &mut dyn Write,
) -> Result<Report, CommandError> {
    changing_within(wait, err, |session, _| {
        let plan = Plan::new(&LiveHost, wishes);
        let request = Request { label: "off".to_owned(), keep_going: true, ..request(Kind::Off) };
        Ok(session.apply(&LiveHost, &plan, &request)?)
    })
}

/// The wishes that keep this choice in tuned's own files.
pub(super) fn chosen(state: &State) -> Vec<Wish> {
    // A file that says nothing need not be made.
    state.files().into_iter().filter(|(_, text)| !text.is_empty()).map(file).collect()
}

/// The wishes that keep in tuned's own files that no profile is wanted.
pub(super) fn none_chosen(before: &State) -> Vec<Wish> {
    let none = State { active: Vec::new(), mode: Some(Mode::Manual), post_loaded: None };
    let [active, mode, post_loaded] = none.files();
    let post_loaded = before.post_loaded.is_some().then_some(post_loaded);
    [active, mode].into_iter().chain(post_loaded).map(file).collect()
}

fn file((file, text): (&'static str, String)) -> Wish {
    Wish::by_hand(
        Want::Set { knob: Knob::File(file.to_owned()), to: text.as_str().into(), when: When::Now },
        text.trim(),
    )
}

/// Does something that changes the machine: as root only, alone, and after what an earlier run left open is settled.
pub(super) fn changing<T>(
    err: &mut dyn Write,
    work: impl FnOnce(&Session) -> Result<T, CommandError>,
) -> Result<T, CommandError> {
    changing_and_telling(err, |session, _| work(session))
}

/// The same for work that has something to tell on its way.
pub(super) fn changing_and_telling<T>(
    err: &mut dyn Write,
    work: impl FnOnce(&Session, &mut dyn Write) -> Result<T, CommandError>,
) -> Result<T, CommandError> {
    changing_within(LOCK_WAIT, err, work)
}

fn changing_within<T>(
    wait: Duration,
    err: &mut dyn Write,
    work: impl FnOnce(&Session, &mut dyn Write) -> Result<T, CommandError>,
) -> Result<T, CommandError> {
    may_change()?;
    let store = Store::open(Store::DEFAULT)?;
    let session = Session::begin(&LiveHost, &store, &command_line(), wait)?;
    told_recovery(&session, err);
    work(&session, err)
}

/// Refuses without root, and while tuned is at work.
pub(super) fn may_change() -> Result<(), CommandError> {
    if !is_root() {
        return Err(CommandError::not_permitted(anyhow!("only root may change this machine"))
            .hint("the same with `sudo`; `zenkai profile plan` shows the changes without root"));
    }
    if let Some(pid) = running_tuned() {
        let error = anyhow!("tuned is running (process {pid}) and would undo what is changed here");
        return Err(CommandError::usage(error).hint("systemctl disable --now tuned"));
    }
    Ok(())
}

/// Whether there are journals that we may read.
fn has_journals() -> bool {
    let journals = format!("{}/transactions", Store::DEFAULT);
    is_root() && LiveHost.list(&journals).is_ok_and(|entries| !entries.is_empty())
}

/// What the profile in force holds on this machine. Without root that cannot be known, and a plan is made for the
/// machine as it is.
pub(super) fn held() -> Result<Held, CommandError> {
    if !has_journals() {
        return Ok(Held::default());
    }
    Ok(Held::read(&LiveHost, &Store::open(Store::DEFAULT)?)?)
}

/// What an earlier run left open is settled at the start of every command. Nothing is done where nothing was ever
/// changed, without root, or while another zenkai is at work.
pub(super) fn recover(err: &mut dyn Write) {
    recover_within(Duration::ZERO, err);
}

/// The same, waiting at most this long for another zenkai.
pub(super) fn recover_within(wait: Duration, err: &mut dyn Write) {
    if !has_journals() {
        return;
    }
    let begun = Store::open(Store::DEFAULT).and_then(|store| {
        Session::begin(&LiveHost, &store, "recovery", wait).map(|session| told_recovery(&session, err))
    });
    match begun {
        Ok(()) | Err(TransactionError::Locked { .. }) => {}
        Err(error) => {
            let _ = writeln!(
                err,
                "zenkai: what an earlier run left open could not be settled: {}",
                printable(&error.to_string())
            );
        }
    }
}

fn told_recovery(session: &Session, err: &mut dyn Write) {
    if let Some(report) = &session.recovered {
        let put_back = report.rows.iter().filter(|row| row.fate == Fate::Restored).count();
        let _ =
            writeln!(err, "zenkai: an earlier run was cut short; {put_back} of its changes were put back");
        for row in report.rows.iter().filter(|row| !matches!(row.fate, Fate::Restored | Fate::Set)) {
            let line = format!("{}: {}", row.what, zenkai_report::fate(row, &report.end));
            let _ = writeln!(err, "  {}", printable(&line));
        }
    }
}

/// The request of a command, but for its names.
#[expect(clippy::disallowed_methods, reason = "the program's clock is read here, for the journal")]
pub(super) fn request(kind: Kind) -> Request {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Request {
        kind,
        label: String::new(),
        names: Vec::new(),
        time: now.as_secs(),
        command: command_line(),
        keep_going: false,
    }
}

/// This program's own command line, for people.
pub(super) fn command_line() -> String {
    let words: Vec<String> =
        std::env::args_os().map(|argument| argument.to_string_lossy().into_owned()).collect();
    words.join(" ")
}

/// Says what was done.
pub(super) fn tell(
    report: &Report,
    plan: Option<&Plan>,
    json: bool,
    out: &mut dyn Write,
) -> Result<Exit, CommandError> {
    if json {
        output::write_json(out, &zenkai_report::transaction_json(report, plan)?)?;
    } else {
        output::write_blocks(out, &zenkai_report::transaction(report, plan))?;
    }
    Ok(exit(report))
}

pub(super) fn exit(report: &Report) -> Exit {
    if report.rows.iter().any(|row| matches!(row.fate, Fate::NotRestored { .. })) {
        return Exit::NotRestored;
    }
    match report.end {
        End::Done => Exit::Fine,
        _ => Exit::Refused,
    }
}

pub(super) fn is_root() -> bool {
    LiveHost.query(&Query::EffectiveUid).is_ok_and(|reply| reply.numbers() == Some(&[0]))
}

/// The process id of a running tuned daemon.
pub(super) fn running_tuned() -> Option<u32> {
    let text = |path: &str| String::from_utf8(LiveHost.read(path).ok()?).ok();
    let pid: u32 = text("/run/tuned/tuned.pid")?.trim().parse().ok()?;
    (text(&format!("/proc/{pid}/comm"))?.trim() == "tuned").then_some(pid)
}

/// Refuses profiles that others than root could have written: applying one is doing what they say.
pub(super) fn trusted(profile: &Profile) -> Result<(), CommandError> {
    for file in profile.files.iter().filter(|file| file.starts_with('/')) {
        trusted_file(file).map_err(|error| {
            CommandError::not_permitted(anyhow!("{error}; what it asks for is not done as root"))
                .hint(format!("look at it, then `chown root {file}; chmod go-w {file}`"))
        })?;
    }
    Ok(())
}

/// Runs nothing, and notes whether a program was asked for.
struct Asked(AtomicBool);

impl Commands for Asked {
    fn output(&self, _: &[String]) -> io::Result<String> {
        self.0.store(true, Ordering::Relaxed);
        Err(io::Error::other("not run before it is known who wrote the profile"))
    }
}

/// Programs that a profile's functions call.
pub(super) struct Programs;

impl Commands for Programs {
    fn output(&self, argv: &[String]) -> io::Result<String> {
        let (program, arguments) = argv.split_first().ok_or(io::ErrorKind::InvalidInput)?;
        let act = if program.contains('/') {
            let (path, arguments) = (program.clone(), arguments.to_vec());
            Act::Script { path, arguments, environment: Vec::new() }
        } else {
            Act::Command { argv: argv.to_vec() }
        };
        let finished = LiveHost.run(&act)?;
        if finished.code == 0 {
            return Ok(finished.output);
        }
        Err(io::Error::other(format!("{act} ended with {}", finished.code)))
    }
}

/// What `zenkai profile new` writes.
const SKELETON: &str = "\
# A profile is what differs from another one. Show what it comes to, and what it would change:
#   zenkai profile show NAME
#   zenkai profile plan NAME
[main]
summary=What this machine is for
include=zenkai/throughput-performance

# [sysctl]
# vm.swappiness=10

# [disk]
# devices=sd*
# readahead=>4096
";

pub(super) fn new(args: &NewArgs, out: &mut dyn Write) -> Result<Exit, CommandError> {
    use std::{fs::OpenOptions, os::unix::fs::OpenOptionsExt};
    let name = &args.name;
    if !is_name(name) {
        return Err(CommandError::usage(anyhow!("a profile cannot be called {name:?}"))
            .hint("letters, digits, `_`, `.` and `-`, not beginning with `-`"));
    }
    let folder = format!("/etc/tuned/profiles/{name}");
    let file = format!("{folder}/tuned.conf");
    std::fs::create_dir_all(&folder).map_err(|error| anyhow::Error::new(error).context(folder.clone()))?;
    let written = OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o644)
        .open(&file)
        .and_then(|mut opened| opened.write_all(SKELETON.replace("NAME", name).as_bytes()));
    match written {
        Ok(()) => {}
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
            return Err(CommandError::usage(anyhow!("{file} is there already")));
        }
        Err(error) => return Err(anyhow::Error::new(error).context(file).into()),
    }
    output::write_blocks(out, &[Block::Text(format!("wrote {file}"))])?;
    Ok(Exit::Fine)
}

impl From<TransactionError> for CommandError {
    fn from(error: TransactionError) -> Self {
        match &error {
            TransactionError::State { source, .. } if source.kind() == io::ErrorKind::PermissionDenied => {
                let refused = Self::not_permitted(error);
                if is_root() { refused } else { refused.hint("the same with `sudo`: only root may read it") }
            }
            _ => Self::usage(error),
        }
    }
}
