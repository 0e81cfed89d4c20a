//! `zenkai diff` and `zenkai settings`

use std::{
    collections::{BTreeMap, BTreeSet},
    io::{self, Write},
    path::{Path, PathBuf},
    thread,
};

use anyhow::anyhow;
use zenkai_diagnose::{
    Context, Diagnosis, Policy, Selection, Workload, diagnose,
    difference::{Comparison, Profile, Side, compare, profile},
};
use zenkai_facts::{Facts, Observed, Reader};
use zenkai_host::{Capture, FakeHost, Host, LiveHost, NotRecorded, RecordingHost};
use zenkai_report::{Detail, States, printable};

use super::{CommandError, Exit, before_after, host, labels, output, record::CAPTURE, report, sysctls};

/// Tell what differs between two machines, or one machine before and after, most suspicious first.
///
/// Each is a capture file, a directory laid out like a machine's root, a label of `zenkai capture --label`, a recording of
/// `zenkai record --runs` (its directory or label), or `now`.
/// Exit code: 0 nothing differs, 1 something does, 2 usage.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// The machine to compare with: the faster one, or the one before
    a: String,
    /// The machine in question
    #[arg(default_value = "now")]
    b: String,
    /// Everything that differs, and what could not be compared
    #[arg(long)]
    all: bool,
    /// What the machines are for; some settings are right for one work and wrong for another
    #[arg(long, value_name = "WORK")]
    workload: Option<Workload>,
    /// Write JSON (schema zenkai.diff/1)
    #[arg(long)]
    json: bool,
    /// Write a page (HTML) to this file, replacing it
    #[arg(short, long, value_name = "FILE", conflicts_with_all = ["json", "all"])]
    output: Option<PathBuf>,
}

/// Write a profile that makes one machine like another one, as far as that can be done while it runs.
///
/// It holds the differences that can be changed now. Keep it as /etc/tuned/profiles/NAME/tuned.conf, then
/// `zenkai profile plan NAME` and `zenkai profile apply NAME`.
#[derive(Debug, clap::Args)]
pub(super) struct SettingsArgs {
    /// The machine to copy from: a capture file, a directory, a label or `now`
    #[arg(long, value_name = "A")]
    from: String,
    /// The machine that is to become like it
    #[arg(long, value_name = "B", default_value = "now")]
    to: String,
}

/// One machine, looked at.
struct Machine {
    host: Box<dyn Host>,
    facts: Facts,
    diagnosis: Diagnosis,
    /// The sysctls that were read of it.
    sysctls: Vec<String>,
    /// Whether it comes from a capture that does not tell where it ends.
    may_be_cut: bool,
}

impl Machine {
    fn open(name: &str, workload: Option<Workload>) -> Result<Self, CommandError> {
        let path = PathBuf::from(name);
        let shape = path.metadata();
        let capture = match &shape {
            // Of this machine what the other one holds is enough.
            _ if name == "now" => return Ok(Self::recorded(RecordingHost::new(LiveHost), workload)),
            // A recording of `zenkai record --runs`.
            Ok(shape) if shape.is_dir() && path.join(CAPTURE).metadata().is_ok() => {
                before_after::capture(&path)?
            }
            Ok(shape) if shape.is_dir() => {
                let host = RecordingHost::new(host::root(&path)?);
                sysctls::record(host.inner(), &host);
                return Ok(Self::recorded(host, workload));
            }
            Err(error) if is_absent(error) => {
                let is_there = |kept: &Path| !kept.metadata().is_err_and(|error| is_absent(&error));
                let (capture, recording) = (labels::path(name), labels::recording(name));
                match labels::is_label(name) {
                    true if is_there(&capture) => host::load(&capture)?,
                    true if is_there(&recording) => before_after::capture(&recording)?,
                    _ => {
                        return Err(CommandError::usage(anyhow!(
                            "{name} is no file, no directory and no label"
                        ))
                        .hint("`zenkai capture --list` shows the labels; `now` is this machine"));
                    }
                }
            }
            _ => host::load(&path)?,
        };
        Ok(Self::of_capture(capture, workload))
    }

    fn of_capture(capture: Capture, workload: Option<Workload>) -> Self {
        // A capture may hold more than this version asks for.
        let sysctls = sysctls(capture.read_paths());
        let may_be_cut = capture.may_be_cut();
        let host = FakeHost::from_capture(capture);
        let facts = zenkai_facts::observe(&host);
        Self { may_be_cut, ..Self::judged(Box::new(host), facts, sysctls, workload) }
    }

    /// A machine that answers whatever it is asked: what zenkai asks of it is remembered.
    fn recorded<H: Host + 'static>(host: RecordingHost<H>, workload: Option<Workload>) -> Self {
        let facts = zenkai_facts::observe(&host);
        let sysctls = sysctls(host.read_paths().iter().map(String::as_str));
        Self::judged(Box::new(host), facts, sysctls, workload)
    }

    fn judged(host: Box<dyn Host>, facts: Facts, sysctls: Vec<String>, workload: Option<Workload>) -> Self {
        let diagnosis = diagnose(&facts, Context { workload }, &Policy::default(), &Selection::default());
        Self { host, facts, diagnosis, sysctls, may_be_cut: false }
    }
}

/// Both machines, looked at side by side.
fn both(names: [&str; 2], workload: Option<Workload>) -> Result<(Machine, Machine), CommandError> {
    let [a, b] = names;
    thread::scope(|scope| {
        let first = thread::Builder::new().spawn_scoped(scope, || Machine::open(a, workload));
        let second = Machine::open(b, workload);
        let first = match first.map(thread::ScopedJoinHandle::join) {
            Ok(Ok(first)) => first,
            Ok(Err(panic)) => std::panic::resume_unwind(panic),
            // There are too many threads already: then one after the other.
            Err(_) => Machine::open(a, workload),
        };
        Ok((first?, second?))
    })
}

fn is_absent(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::NotFound
}

/// The sysctl files among these paths.
fn sysctls<'p>(paths: impl Iterator<Item = &'p str>) -> Vec<String> {
    paths.filter(|path| path.starts_with("/proc/sys/")).map(str::to_owned).collect()
}

/// Whether a machine was asked for a path at all. What is no path, such as a query, counts as asked.
fn holds(machine: &Machine) -> impl Fn(&str) -> bool {
    let unknown = |error: Option<io::Error>| error.is_some_and(|error| NotRecorded::is(&error));
    move |path| {
        let host = &machine.host;
        !(path.starts_with('/')
            && unknown(host.read(path).err())
            && unknown(host.list(path).err())
            && unknown(host.resolve(path).err()))
    }
}

fn compared(names: [&str; 2], machines: [&Machine; 2]) -> Result<Comparison, CommandError> {
    let [a, b] = machines;
    let paths: BTreeSet<&String> = a.sysctls.iter().chain(&b.sysctls).collect();
    let known = |machine: &Machine| -> BTreeMap<String, Observed<String>> {
        let reader = Reader::new(&*machine.host);
        let name = |path: &str| path.trim_start_matches("/proc/sys/").replace('/', ".");
        paths.iter().map(|path| (name(path), reader.text(path))).collect()
    };
    let holds = [holds(a), holds(b)];
    let side = |index: usize| Side {
        holds: &holds[index],
        name: names[index],
        facts: &machines[index].facts,
        diagnosis: &machines[index].diagnosis,
        sysctls: known(machines[index]),
    };
    let mut comparison = compare(&side(0), &side(1))?;
    for (name, machine) in names.iter().zip(machines) {
        comparison.notes.extend(machine.may_be_cut.then(|| format!("{name}: {}", host::MAY_BE_CUT)));
    }
    Ok(comparison)
}

/// Two machines, or two states of one, and what differs.
pub(super) struct TwoMachines {
    a: Machine,
    b: Machine,
    comparison: Comparison,
    carried: usize,
}

impl TwoMachines {
    fn of(names: [&str; 2], a: Machine, b: Machine) -> Result<Self, CommandError> {
        let comparison = compared(names, [&a, &b])?;
        let carried = profile(&*a.host, &*b.host, &comparison, false).carried;
        Ok(Self { a, b, comparison, carried })
    }

    /// Two captures.
    pub(super) fn of_captures(names: [&str; 2], [a, b]: [Capture; 2]) -> Result<Self, CommandError> {
        Self::of(names, Machine::of_capture(a, None), Machine::of_capture(b, None))
    }

    /// For a report.
    pub(super) fn states(&self) -> States<'_> {
        States { facts: [&self.a.facts, &self.b.facts], comparison: &self.comparison, carried: self.carried }
    }
}

pub(super) fn run(args: &Args, out: &mut dyn Write, err: &mut dyn Write) -> Result<Exit, CommandError> {
    let (a, b) = both([&args.a, &args.b], args.workload)?;
    let machines = TwoMachines::of([&args.a, &args.b], a, b)?;
    let exit = if machines.comparison.differences.is_empty() { Exit::Fine } else { Exit::Findings };
    let States { facts, comparison, carried } = machines.states();
    if let Some(path) = &args.output {
        report::save(path, zenkai_report::difference_html(&machines.states()).as_bytes())?;
        writeln!(err, "wrote {}", path.display())?;
    } else if args.json {
        output::write_json(out, &zenkai_report::difference_json(comparison)?)?;
    } else {
        let detail = if args.all { Detail::Everything } else { Detail::Findings };
        output::write_blocks(out, &zenkai_report::difference(facts, comparison, carried, detail))?;
    }
    // The process ends now, and the kernel takes its memory back at once: piece by piece is a sixth of the work.
    std::mem::forget(machines);
    Ok(exit)
}

/// What of `from` can be set on this machine while it runs, as a profile, and what limits the comparison.
pub(super) fn settings_here(
    from: &str,
    allow_insecure: bool,
) -> Result<(Profile, Vec<String>), CommandError> {
    let (a, b) = both([from, "now"], None)?;
    let comparison = compared([from, "now"], [&a, &b])?;
    Ok((profile(&*a.host, &*b.host, &comparison, allow_insecure), comparison.notes))
}

pub(super) fn settings(
    args: &SettingsArgs,
    out: &mut dyn Write,
    err: &mut dyn Write,
) -> Result<Exit, CommandError> {
    let (a, b) = both([&args.from, &args.to], None)?;
    let comparison = compared([&args.from, &args.to], [&a, &b])?;
    let profile = profile(&*a.host, &*b.host, &comparison, false);
    out.write_all(profile.text.as_bytes())?;
    for note in &comparison.notes {
        writeln!(err, "zenkai: {}", printable(note))?;
    }
    let noun = if profile.carried == 1 { "setting" } else { "settings" };
    writeln!(err, "zenkai: {} {noun} carried over", profile.carried)?;
    for (what, why) in &profile.left {
        writeln!(err, "zenkai: left out: {}", printable(&format!("{what}: {why}")))?;
    }
    Ok(Exit::Fine)
}
