//! `cargo xtask lab`: builds the laboratory, runs commands in its machines, and lets the doctor loose on the ailing ones.
#![expect(
    clippy::disallowed_methods,
    reason = "a task for developers: it looks for a program that was built"
)]

use std::collections::{BTreeMap, BTreeSet};
use std::io::{IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, bail, ensure};
use clap::{Args, Subcommand};
use zenkai_lab::ailment::{self, Ailment, Verdict};
use zenkai_lab::{Cache, Job, LabError, Machine, MachineSpec, Tier};

/// The exit code when there is no result: a tier is missing, or the guest failed.
const NO_RESULT: u8 = 125;
/// Captures a machine into a file that comes back.
const CAPTURE: &str = "zenkai capture --output out/host.capture";

/// Work with the laboratory.
#[derive(Subcommand)]
pub(crate) enum LabCommand {
    /// Build what the machines need, once: mini 10 s, full 1 or 2 minutes, qemu about 5.
    Build {
        /// mini, full, qemu or all.
        #[arg(default_value = "mini")]
        tier: String,
    },
    /// List the machines and whether they can run here.
    List,
    /// Run a command in a machine; its output is printed and its exit code is ours.
    Run(RunArgs),
    /// Give me a shell in a machine; leave it with `exit`.
    Shell {
        /// The machine.
        machine: String,
        #[command(flatten)]
        program: Program,
    },
    /// Regenerate the captures of the machines and of the ailing machines.
    Captures {
        /// The folder they are written to.
        #[arg(long, default_value = "fixtures/hosts")]
        to: PathBuf,
        #[command(flatten)]
        only: Only,
        #[command(flatten)]
        program: Program,
    },
    /// Let `zenkai doctor` look at each ailing machine and its healthy twin, and print what it found and missed.
    Ailments {
        /// Only spoil the machines and check that their kernels took it; needs no program.
        #[arg(long)]
        dry: bool,
        #[command(flatten)]
        only: Only,
        #[command(flatten)]
        program: Program,
    },
}

/// The arguments of `run`.
#[derive(Args)]
pub(crate) struct RunArgs {
    /// The machine.
    #[arg(long)]
    machine: String,
    /// Words for the kernel's command line; the machine is then booted afresh.
    #[arg(long, default_value = "")]
    append: String,
    /// Seconds that the command may take.
    #[arg(long, default_value_t = 60)]
    limit: u64,
    /// A folder for what the command leaves in `out`.
    #[arg(long)]
    out: Option<PathBuf>,
    /// Print the guest's kernel log on standard error.
    #[arg(long)]
    dmesg: bool,
    /// Say how long it took on standard error.
    #[arg(long)]
    time: bool,
    /// A file to put beside the command.
    #[arg(long = "file")]
    files: Vec<PathBuf>,
    #[command(flatten)]
    program: Program,
    /// The command, as words or as one shell line.
    #[arg(last = true, required = true)]
    command: Vec<String>,
}

/// Which program is tested.
#[derive(Args)]
pub(crate) struct Program {
    /// The static binary that is found as `zenkai` in the guest; else $ZENKAI_BIN, else the release build.
    #[arg(long)]
    program: Option<PathBuf>,
}

/// Which ailments or machines to take.
#[derive(Args)]
pub(crate) struct Only {
    /// Only those whose name contains this.
    #[arg(default_value = "")]
    only: String,
}

/// Runs a command of the laboratory.
pub(crate) fn run(command: LabCommand) -> anyhow::Result<ExitCode> {
    match dispatch(command) {
        // What the laboratory says is for people, and complete: no "Error:" and no backtrace around it.
        Err(error) if error.is::<LabError>() => {
            say(&error.to_string())?;
            Ok(ExitCode::from(NO_RESULT))
        }
        other => other,
    }
}

fn dispatch(command: LabCommand) -> anyhow::Result<ExitCode> {
    match command {
        LabCommand::Build { tier } => build(&tier),
        LabCommand::List => list(),
        LabCommand::Run(args) => run_in_guest(&args),
        LabCommand::Shell { machine, program } => {
            let machine = Machine::start(&machine)?;
            say("The serial console of the machine; leave it with `exit` (Ctrl-C goes to the guest).")?;
            machine.shell(&with_program(Job::shell(""), &program)?)?;
            Ok(ExitCode::SUCCESS)
        }
        LabCommand::Captures { to, only, program } => captures(&to, &only.only, &program),
        LabCommand::Ailments { dry, only, program } => ailments(dry, &only.only, &program),
    }
}

fn say(line: &str) -> anyhow::Result<()> {
    writeln!(std::io::stderr(), "{line}").context("cannot write to standard error")
}

fn print(line: &str) -> anyhow::Result<()> {
    writeln!(std::io::stdout(), "{line}").context("cannot write to standard output")
}

fn build(tier: &str) -> anyhow::Result<ExitCode> {
    let tiers = match (tier, Tier::from_name(tier)) {
        ("all", _) => Tier::ALL.to_vec(),
        (_, Some(tier)) => vec![tier],
        _ => bail!("no tier is named {tier:?}: mini, full, qemu or all"),
    };
    let cache = Cache::open()?;
    for tier in tiers {
        let started = Instant::now();
        let place = cache.build(tier)?;
        print(&format!("{tier}: {} ({:.1} s)", place.display(), started.elapsed().as_secs_f64()))?;
    }
    Ok(ExitCode::SUCCESS)
}

fn list() -> anyhow::Result<ExitCode> {
    let cache = Cache::open()?;
    for spec in MachineSpec::all()? {
        let missing: Vec<&str> =
            spec.tiers().into_iter().filter(|&tier| cache.tier(tier).is_err()).map(Tier::name).collect();
        let state =
            if missing.is_empty() { String::new() } else { format!(" [needs: {}]", missing.join(", ")) };
        print(&format!("{:8} {}{state}", spec.name, spec.about))?;
    }
    Ok(ExitCode::SUCCESS)
}

/// Puts the program beside the job, if there is one.
fn with_program(job: Job, program: &Program) -> anyhow::Result<Job> {
    if let Some(path) = &program.program {
        ensure!(path.is_file(), "there is no program {}", path.display());
        return Ok(job.program(path));
    }
    if std::env::var_os("ZENKAI_BIN").is_some() {
        return Ok(job);
    }
    Ok(release_build().map_or(job.clone(), |path| job.program(path)))
}

/// The newest release build of the program in the target folder this task was built in.
fn release_build() -> Option<PathBuf> {
    let me = std::env::current_exe().ok()?;
    let found = me.ancestors().take(5).map(|dir| dir.join("release/zenkai")).filter(|path| path.is_file());
    found.max_by_key(|path| path.metadata().and_then(|meta| meta.modified()).ok())
}

/// The command's words as a shell line. One word is taken to be such a line already.
fn shell_line(words: &[String]) -> String {
    if let [line] = words {
        return line.clone();
    }
    let quote = |word: &String| format!("'{}'", word.replace('\'', r"'\''"));
    words.iter().map(quote).collect::<Vec<_>>().join(" ")
}

fn run_in_guest(args: &RunArgs) -> anyhow::Result<ExitCode> {
    let machine = Machine::start(&args.machine)?;
    let mut job = with_program(Job::shell(shell_line(&args.command)), &args.program)?
        .append(&args.append)
        .limit(Duration::from_secs(args.limit));
    for path in &args.files {
        let name = path.file_name().and_then(|name| name.to_str()).context("a file without a name")?;
        job = job.file(name, path);
    }
    let outcome = machine.run(job)?;
    std::io::stdout().write_all(outcome.stdout.as_bytes())?;
    std::io::stderr().write_all(outcome.stderr.as_bytes())?;
    if args.dmesg {
        say(outcome.dmesg.trim_end())?;
    }
    if args.time {
        let boot = machine.timing().boot.map(|boot| format!(", booted in {:.2} s first", boot.as_secs_f64()));
        say(&format!("lab: {:.2} s{}", outcome.wall.as_secs_f64(), boot.unwrap_or_default()))?;
    }
    if let Some(dir) = &args.out {
        for (name, data) in &outcome.files {
            ailment::keep(&dir.join(name), data)?;
        }
    }
    Ok(ExitCode::from(u8::try_from(outcome.code).unwrap_or(NO_RESULT)))
}

/// Does something for each item, on as many threads as there are CPUs, and gives the results in the items' order.
fn each<T: Sync, R: Send>(items: &[T], work: impl Fn(&T) -> R + Sync) -> Vec<R> {
    let next = AtomicUsize::new(0);
    let results = Mutex::new(BTreeMap::new());
    let threads = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                while let at = next.fetch_add(1, Ordering::Relaxed)
                    && let Some(item) = items.get(at)
                {
                    let result = work(item);
                    if let Ok(mut results) = results.lock() {
                        results.insert(at, result);
                    }
                }
            });
        }
    });
    results.into_inner().unwrap_or_default().into_values().collect()
}

fn captures(to: &Path, only: &str, program: &Program) -> anyhow::Result<ExitCode> {
    let cache = Cache::open()?;
    let job = with_program(Job::shell(CAPTURE), program)?;
    // A machine with a clock looks like its twin without one.
    let wanted = |spec: &MachineSpec| spec.name.contains(only) && !spec.clock;
    let specs: Vec<_> = MachineSpec::all()?.into_iter().filter(wanted).collect();
    let ailments: Vec<_> =
        Ailment::all()?.into_iter().filter(|ailment| ailment.name.contains(only)).collect();
    let keep = |outcome: zenkai_lab::Outcome, path: &Path| {
        let data = outcome.files.get("host.capture");
        let data =
            data.with_context(|| format!("no capture (code {}): {}", outcome.code, outcome.stderr.trim()))?;
        ailment::keep(path, data)?;
        anyhow::Ok(data.len())
    };
    let mut failed = 0;
    let mut report = |name: &str, result: anyhow::Result<usize>| match result {
        Ok(bytes) => print(&format!("{name}: {bytes} bytes")),
        Err(error) => {
            failed += 1;
            print(&format!("{name}: FAILED: {error:#}"))
        }
    };
    let results = each(&specs, |spec| {
        let machine = Machine::from_spec(cache.clone(), spec.clone())?;
        keep(machine.run(job.clone())?, &to.join(format!("{}.capture", spec.name)))
    });
    for (spec, result) in specs.iter().zip(results) {
        report(&spec.name, result)?;
    }
    let results = each(&ailments, |ailment| {
        let job = with_program(ailment.ailing_job(CAPTURE), program)?;
        keep(
            ailment::run(&ailment.machine(&cache)?, job)?,
            &to.join(format!("ailing/{}.capture", ailment.name)),
        )
    });
    for (ailment, result) in ailments.iter().zip(results) {
        report(&format!("ailing/{}", ailment.name), result)?;
    }
    Ok(if failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Why a machine was not looked at.
#[derive(Clone)]
enum Unseen {
    /// A part of the laboratory is missing.
    Skipped(String),
    /// The machine is not as ailing or as healthy as it should be, or the doctor gave no answer.
    Failed(String),
}

impl From<LabError> for Unseen {
    fn from(error: LabError) -> Self {
        match error {
            LabError::Missing { tier, .. } => Self::Skipped(format!("the {tier} tier is not built")),
            // In a table the console would only be in the way.
            LabError::GuestFailed { what, .. } => Self::Failed(what.replace('\n', "; ")),
            other => Self::Failed(other.to_string().replace('\n', "; ")),
        }
    }
}

/// The ids of the checks that fired.
type Fired = Result<BTreeSet<String>, Unseen>;

fn ailments(dry: bool, only: &str, program: &Program) -> anyhow::Result<ExitCode> {
    let cache = Cache::open()?;
    // The doctor exits with 1 when it found something: what counts is that its output can be read.
    let then = |ailment: &Ailment| {
        if dry { "echo '[]'".to_owned() } else { format!("zenkai {}", ailment.doctor().join(" ")) }
    };
    let all: Vec<_> = Ailment::all()?.into_iter().filter(|ailment| ailment.name.contains(only)).collect();
    let mut jobs = Vec::new();
    for ailment in &all {
        jobs.push((ailment.machine.as_str(), with_program(ailment.ailing_job(&then(ailment)), program)?));
    }
    // One healthy twin for all ailments of a machine that are looked at in the same way.
    let mut twins: BTreeMap<Twin<'_>, Vec<&Ailment>> = BTreeMap::new();
    for ailment in &all {
        twins.entry(twin(ailment)).or_default().push(ailment);
    }
    for ((machine, _), its) in &twins {
        jobs.push((machine, with_program(ailment::healthy_job(its, &then(its[0])), program)?));
    }
    let mut ailing = each(&jobs, |(machine, job)| look(&cache, machine, job));
    let healthy: BTreeMap<Twin<'_>, Fired> = twins.into_keys().zip(ailing.split_off(all.len())).collect();
    report(dry, &all, &ailing, &healthy)
}

/// A healthy machine as one doctor's call sees it: its name and the workload.
type Twin<'a> = (&'a str, Option<&'a str>);

fn twin(ailment: &Ailment) -> Twin<'_> {
    (&ailment.machine, ailment.workload.as_deref())
}

/// Prints what was found, missed and false for each ailment, with a total.
fn report(
    dry: bool,
    all: &[Ailment],
    ailing: &[Fired],
    healthy: &BTreeMap<Twin<'_>, Fired>,
) -> anyhow::Result<ExitCode> {
    let mut total = [0_usize; 5]; // right, missed, false alarm, skipped, failed
    let bold = std::io::stdout().is_terminal();
    print(&format!("{:34} {:8} result", "ailment", "machine"))?;
    for (ailment, ailing) in all.iter().zip(ailing) {
        let (slot, text) = match (ailing, &healthy[&twin(ailment)]) {
            (Ok(_), Ok(_)) if dry => (0, "spoilt".to_owned()),
            (Ok(ailing), Ok(healthy)) => describe(&Verdict::new(ailment, ailing, healthy)),
            (Err(Unseen::Failed(why)), _) | (_, Err(Unseen::Failed(why))) => (4, format!("FAILED: {why}")),
            (Err(Unseen::Skipped(why)), _) | (_, Err(Unseen::Skipped(why))) => (3, format!("skipped: {why}")),
        };
        total[slot] += 1;
        let text = if bold && slot != 0 { format!("\x1b[1m{text}\x1b[0m") } else { text };
        print(&format!("{:34} {:8} {text}", ailment.name, ailment.machine))?;
    }
    let [right, missed, false_alarm, skipped, failed] = total;
    print(&format!(
        "total {}: {right} right, {missed} missed, {false_alarm} false on the healthy machine, {skipped} skipped, \
         {failed} failed",
        all.len()
    ))?;
    Ok(if missed + false_alarm + failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// One line about a verdict, and which total it counts for.
fn describe(verdict: &Verdict) -> (usize, String) {
    let list = |label: &str, ids: &BTreeSet<String>| {
        if ids.is_empty() {
            return String::new();
        }
        format!("{label} {}; ", ids.iter().cloned().collect::<Vec<_>>().join(", "))
    };
    let text = format!(
        "{}{}{}{}",
        list("found", &verdict.found),
        list("MISSED", &verdict.missed),
        list("FALSE on the healthy machine", &verdict.false_alarms),
        list("UNEXPECTED", &verdict.others)
    );
    let slot = match verdict {
        verdict if verdict.is_right() => 0,
        verdict if !verdict.missed.is_empty() => 1,
        _ => 2,
    };
    (slot, text.trim_end_matches("; ").to_owned())
}

/// Lets the doctor look at a machine.
fn look(cache: &Cache, machine: &str, job: &Job) -> Fired {
    let machine = Machine::from_spec(cache.clone(), MachineSpec::load(machine)?)?;
    let outcome = ailment::run(&machine, job.clone())?;
    ailment::fired(&outcome.stdout).ok_or_else(|| {
        let said = outcome.stderr.trim().replace('\n', "; ");
        Unseen::Failed(format!("the doctor gave no findings (exit code {}): {said}", outcome.code))
    })
}

#[cfg(test)]
mod tests {
    use super::{each, shell_line};

    #[test]
    fn words_are_quoted_and_a_line_is_not() {
        let line =
            |words: &[&str]| shell_line(&words.iter().map(|&word| word.to_owned()).collect::<Vec<_>>());
        assert_eq!(line(&["echo $HOME; exit 3"]), "echo $HOME; exit 3");
        assert_eq!(line(&["echo", "it's"]), r"'echo' 'it'\''s'");
    }

    #[test]
    fn results_keep_the_order_of_the_items() {
        assert_eq!(each(&[3, 1, 2], |n| n * 2), [6, 2, 4]);
    }
}
