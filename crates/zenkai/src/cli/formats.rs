//! `zenkai export` and `zenkai import`

use std::{io::Write, path::PathBuf};

use anyhow::anyhow;
use zenkai_measure::formats::{Format, Imported};

use super::{
    CommandError, Exit,
    experiment::{Stored, read_small},
    output,
    report::save,
};

/// The formats by the names of the programs that know them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(super) enum Name {
    /// The Go benchmark format, for benchstat -col /arm
    Go,
    /// hyperfine --export-json
    Hyperfine,
    /// pyperf's JSON
    Pyperf,
    /// A result file of the Phoronix Test Suite
    Phoronix,
    /// One line for each number, for R and pandas
    Csv,
}

impl From<Name> for Format {
    fn from(name: Name) -> Self {
        match name {
            Name::Go => Self::GoBench,
            Name::Hyperfine => Self::Hyperfine,
            Name::Pyperf => Self::Pyperf,
            Name::Phoronix => Self::Phoronix,
            Name::Csv => Self::Csv,
        }
    }
}

/// Write a stored experiment for another program: benchstat, hyperfine's, pyperf's, R
///
/// Exit code: 0 written, 2 no experiment, a damaged one, or one that the format cannot hold, 77 not permitted to read
/// it.
#[derive(Debug, clap::Args)]
pub(super) struct ExportArgs {
    /// The experiment's directory
    dir: PathBuf,
    /// Whose format
    #[arg(long, value_name = "FORMAT")]
    to: Name,
    /// Write to this file, replacing it [default: the output]
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
}

/// Look at another program's results; information, never proof
///
/// They were not measured in an order that a seed decided, so the verdict is always "undecided".
///
/// Exit code: 0 read, 2 a file is not of that format.
#[derive(Debug, clap::Args)]
pub(super) struct ImportArgs {
    /// The files
    #[arg(required = true)]
    files: Vec<PathBuf>,
    /// Whose format
    #[arg(long, value_name = "FORMAT")]
    from: Name,
    /// The arm that the others are compared with [default: the first]
    #[arg(long, value_name = "ARM")]
    first: Option<String>,
    /// Write JSON (schema zenkai.import/1)
    #[arg(long)]
    json: bool,
}

pub(super) fn export(
    args: &ExportArgs,
    out: &mut dyn Write,
    err: &mut dyn Write,
) -> Result<Exit, CommandError> {
    let stored = Stored::open(&args.dir)?;
    let shown = stored.shown();
    let text = Format::from(args.to).export(shown.plan, shown.trials).map_err(|error| {
        CommandError::usage(anyhow!("{}: {error}", args.dir.display()))
            .hint("csv and go hold every experiment")
    })?;
    match &args.output {
        Some(path) => {
            save(path, text.as_bytes())?;
            writeln!(err, "wrote {}", path.display())?;
        }
        None => out.write_all(text.as_bytes())?,
    }
    Ok(Exit::Fine)
}

pub(super) fn import(args: &ImportArgs, out: &mut dyn Write) -> Result<Exit, CommandError> {
    // Files are taken one after the other: only within one file can the order be known.
    let mut all = Imported { runs: Vec::new(), ordered: args.files.len() == 1, first: None };
    for path in &args.files {
        let wrong = |what: String| CommandError::usage(anyhow!("{}: {what}", path.display()));
        let bytes = read_small(path).map_err(|error| wrong(error.to_string()))?;
        let text = String::from_utf8(bytes).map_err(|_| wrong("not UTF-8".to_owned()))?;
        let imported = Format::from(args.from)
            .import(&text)
            .map_err(|error| wrong(error.to_string()).hint("--from names the program that wrote the file"))?;
        all.ordered &= imported.ordered;
        all.runs.extend(imported.runs);
        all.first = all.first.or(imported.first);
    }
    if let Some(first) = &args.first {
        if !all.runs.iter().any(|run| run.arm == *first) {
            let arms: std::collections::BTreeSet<&str> =
                all.runs.iter().map(|run| run.arm.as_str()).collect();
            let arms: Vec<&str> = arms.into_iter().collect();
            return Err(CommandError::usage(anyhow!("no arm is called `{first}`"))
                .hint(format!("one of {}", arms.join(", "))));
        }
        all.first = Some(first.clone());
    }
    if args.json {
        output::write_json(out, &zenkai_report::imported_json(&all)?)?;
    } else {
        output::write_blocks(out, &zenkai_report::imported(&all))?;
    }
    Ok(Exit::Fine)
}
