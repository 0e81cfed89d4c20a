//! Workloads: what a run of a known program tells, beside the time it took.
//!
//! An adapter recognises its program by name, asks it to write its results in a form that can be read, and reads them.
//! It never changes the load. A program that nobody knows is a plain command: time, CPU time and memory are measured.

mod fio;
mod iperf3;
mod memcaslap;
mod os_index;
mod plain;
mod stress_ng;
mod sysbench;
mod text;
mod wrk;

use std::{collections::BTreeMap, io};

use zenkai_host::workload::{Ended, Ran};

use crate::experiment::Measure;
use crate::metric::JOULES;
use crate::statistics::verdict::Better;

pub use text::last_line;

/// All adapters; the first that knows a program has it. The plain one knows every program and comes last.
static ADAPTERS: [&dyn Adapter; 8] = [
    &fio::Fio,
    &iperf3::Iperf3,
    &memcaslap::Memcaslap,
    &os_index::OsIndex,
    &stress_ng::StressNg,
    &sysbench::Sysbench,
    &wrk::Wrk,
    &plain::Plain,
];

/// How one program is asked for its results, and how they are read.
trait Adapter: Sync {
    /// The file names of the program.
    fn programs(&self) -> &'static [&'static str];

    /// The packages it is in: Debian and Ubuntu, then Red Hat and Fedora.
    fn packages(&self) -> Option<(&'static str, &'static str)>;

    /// The metric that is compared when none is named.
    fn primary(&self) -> &'static str;

    /// What its metrics are.
    fn kinds(&self) -> &'static [Kind];

    /// What to run in place of the program's name; empty for the program itself.
    fn stands_for(&self) -> &'static [&'static str] {
        &[]
    }

    /// Arguments that make the output readable and leave the load alone, put after the program's name. `argv` is what
    /// the user wrote.
    fn additions(&self, argv: &[String]) -> Vec<String>;

    /// The numbers in the outputs of a run that ended well, by name, in SI units.
    fn read(&self, stdout: &[u8], stderr: &[u8]) -> Result<Vec<(String, f64)>, String>;
}

/// What is known of metrics before they are measured.
struct Kind {
    /// The last part of the name (after the last `/`), or how it begins when this ends in `_`.
    name: &'static str,
    /// SI unit.
    unit: &'static str,
    /// Which direction is better, unless that depends.
    better: Option<Better>,
}

const fn lower(name: &'static str, unit: &'static str) -> Kind {
    Kind { name, unit, better: Some(Better::Lower) }
}

const fn higher(name: &'static str, unit: &'static str) -> Kind {
    Kind { name, unit, better: Some(Better::Higher) }
}

const fn neither(name: &'static str, unit: &'static str) -> Kind {
    Kind { name, unit, better: None }
}

/// What every workload gives; `joules` comes from the sampler.
static COMMON: [Kind; 5] =
    [lower("time", "s"), lower("user", "s"), lower("sys", "s"), lower("maxrss", "B"), lower(JOULES, "J")];

/// A command that is ready to run.
#[derive(Clone)]
pub struct Prepared {
    /// What to run.
    pub argv: Vec<String>,
    /// What was added to the user's command, to be shown.
    pub added: Vec<String>,
    adapter: &'static dyn Adapter,
}

/// Makes a command ready. Nothing is run and nothing is looked up: the program is known by its file name.
pub fn prepare(argv: &[String]) -> Prepared {
    let adapter = argv.first().map_or(&plain::Plain as &dyn Adapter, |program| known(program));
    let added = adapter.additions(argv);
    let (name, rest) = argv.split_at(argv.len().min(1));
    let program = match adapter.stands_for() {
        [] => name.to_vec(),
        words => words.iter().map(ToString::to_string).collect(),
    };
    let argv = [&program, &*added, rest].concat();
    Prepared { argv, added, adapter }
}

fn known(program: &str) -> &'static dyn Adapter {
    let name = program.rsplit('/').next().unwrap_or(program);
    let fits = |adapter: &&'static dyn Adapter| {
        // A program of the user's own at some path is no other program.
        adapter.programs().contains(&name) && (adapter.stands_for().is_empty() || name == program)
    };
    ADAPTERS.iter().copied().find(fits).unwrap_or(&plain::Plain)
}

impl Prepared {
    /// Name of the metric that is compared when the user names none.
    pub fn primary(&self) -> &'static str {
        self.adapter.primary()
    }

    /// Unit and direction of the metric `name`, as far as they are known before the first run.
    pub fn describe(&self, name: &str) -> Option<(&'static str, Option<Better>)> {
        let is_energy = name.strip_prefix(JOULES).is_some_and(|rest| rest.starts_with(':'));
        let name = if is_energy { JOULES } else { name };
        let part = name.rsplit('/').next().unwrap_or(name);
        let fits =
            |kind: &&Kind| kind.name == part || (kind.name.ends_with('_') && part.starts_with(kind.name));
        let common = COMMON.iter().filter(|kind| kind.name == name);
        common.chain(self.adapter.kinds()).find(fits).map(|kind| (kind.unit, kind.better))
    }

    /// All numbers of a run, by name, in SI units: always time, CPU time and memory, and what the program told.
    ///
    /// Errors say why the run has failed.
    pub fn measures(&self, ran: &Ran) -> Result<BTreeMap<String, Measure>, String> {
        self.ended_well(ran)?;
        let cut =
            if ran.output_cut { " (its output was so long that the beginning was thrown away)" } else { "" };
        let numbers = self.adapter.read(&ran.stdout, &ran.stderr);
        let mut numbers = numbers.map_err(|why| format!("{why}{cut}"))?;
        numbers.push(("time".to_owned(), ran.elapsed.as_secs_f64()));
        numbers.push(("user".to_owned(), ran.user.as_secs_f64()));
        numbers.push(("sys".to_owned(), ran.system.as_secs_f64()));
        if ran.max_rss_bytes > ran.max_rss_floor_bytes {
            numbers.push(("maxrss".to_owned(), crate::to_f64(ran.max_rss_bytes)));
        }
        let measure = |(name, value): (String, f64)| {
            let (unit, better) = self.describe(&name).unwrap_or(("", None));
            (name, Measure { value, unit: unit.to_owned(), better })
        };
        Ok(numbers.into_iter().filter(|(_, value)| value.is_finite()).map(measure).collect())
    }

    /// What to tell the user when the command could not be started: the error, and where the program comes from.
    pub fn explain(&self, error: &io::Error) -> String {
        let packages = (error.kind() == io::ErrorKind::NotFound).then(|| self.adapter.packages()).flatten();
        match packages {
            Some((debian, red_hat)) => format!("{error} (Debian, Ubuntu: package {debian}; {red_hat})"),
            None => error.to_string(),
        }
    }

    fn ended_well(&self, ran: &Ran) -> Result<(), String> {
        let how = match ran.ended {
            Ended::Exited(0) => return Ok(()),
            Ended::Exited(code) => format!("ended with exit code {code}"),
            Ended::Signalled(signal) => format!("was ended by signal {signal}"),
            Ended::TimedOut => "took longer than allowed".to_owned(),
            Ended::Interrupted => "was interrupted".to_owned(),
        };
        let program = self.argv.first().map_or("the workload", String::as_str);
        let said = [&ran.stderr, &ran.stdout].into_iter().find_map(|output| text::last_line(output));
        Err(said.map_or_else(|| format!("{program} {how}"), |said| format!("{program} {how}: {said}")))
    }
}

impl std::fmt::Debug for Prepared {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("Prepared")
            .field("argv", &self.argv)
            .field("added", &self.added)
            .finish_non_exhaustive()
    }
}

/// Whether the user already gave one of `options`, as a word of its own or with `=`.
fn given(argv: &[String], options: &[&str]) -> bool {
    let is = |word: &String, option: &&str| {
        word.strip_prefix(*option).is_some_and(|rest| rest.is_empty() || rest.starts_with('='))
    };
    argv.iter().skip(1).any(|word| options.iter().any(|option| is(word, option)))
}

#[cfg(test)]
mod tests;
