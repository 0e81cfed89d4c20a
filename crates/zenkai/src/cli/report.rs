//! `zenkai report`

use std::{fs::OpenOptions, io::Write, os::unix::fs::OpenOptionsExt, path::PathBuf};

use anyhow::anyhow;

use zenkai_report::Detail;

use super::{CommandError, Exit, before_after, experiment::Stored, output, record};

/// How a report is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(super) enum Format {
    /// One page that needs nothing else
    Html,
    /// For the terminal
    Text,
    /// For programs (schema zenkai.experiment/1; of a recording what zenkai record --json writes)
    Json,
}

/// Show a stored experiment or a recording as a page, text or JSON
///
/// Of an experiment: the verdict, what explains it, every trial, and how to repeat it. Of a recording: what the machine
/// did over time.
///
/// Exit code: 0 whatever the verdict, 2 no experiment or recording, a damaged one, or the report could not be written, 77 not
/// permitted to read it.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// The experiment's directory, or the file that zenkai record wrote
    #[arg(required_unless_present = "before")]
    dir: Option<PathBuf>,
    /// Instead: two recordings of `zenkai record --runs` that were not interleaved, each a directory or a label. There is
    /// no verdict on them, but what they show, what differs, and how to find out which difference it is (JSON: schema
    /// zenkai.before-after/1)
    #[arg(long, value_name = "A", requires = "after", conflicts_with = "dir")]
    before: Option<String>,
    /// The recording after
    #[arg(long, value_name = "B", requires = "before")]
    after: Option<String>,
    /// With --before: everything that differs
    #[arg(long, requires = "before")]
    all: bool,
    /// Write the report to this file, replacing it
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// html, text or json [default: by the ending of FILE, else text]
    #[arg(long, value_name = "FORMAT")]
    format: Option<Format>,
}

pub(super) fn run(args: &Args, out: &mut dyn Write, err: &mut dyn Write) -> Result<Exit, CommandError> {
    let Some(path) = &args.output else {
        write(args, args.format.unwrap_or(Format::Text), out)?;
        return Ok(Exit::Fine);
    };
    let mut page = Vec::new();
    write(args, args.format.unwrap_or_else(|| by_ending(path)), &mut page)?;
    save(path, &page)?;
    writeln!(err, "wrote {}", path.display())?;
    Ok(Exit::Fine)
}

pub(super) fn by_ending(path: &std::path::Path) -> Format {
    match path.extension().and_then(|ending| ending.to_str()) {
        Some("html" | "htm") => Format::Html,
        Some("json") => Format::Json,
        _ => Format::Text,
    }
}

/// Writes `bytes` to a file that the user named.
pub(super) fn save(path: &std::path::Path, bytes: &[u8]) -> Result<(), CommandError> {
    put(OpenOptions::new().write(true).create(true).truncate(true), path, bytes)
}

/// Writes `bytes` to a file whose name is ours, in a directory that may be anybody's: a link there is not followed.
pub(super) fn save_here(path: &std::path::Path, bytes: &[u8]) -> Result<(), CommandError> {
    let flags = rustix::fs::OFlags::NOFOLLOW | rustix::fs::OFlags::NONBLOCK;
    let flags = i32::try_from(flags.bits()).unwrap_or(0);
    put(OpenOptions::new().write(true).create(true).truncate(true).custom_flags(flags), path, bytes)
}

fn put(how: &OpenOptions, path: &std::path::Path, bytes: &[u8]) -> Result<(), CommandError> {
    how.open(path)
        .and_then(|mut file| file.write_all(bytes))
        .map_err(|error| CommandError::usage(anyhow!("cannot write {}: {error}", path.display())))
}

fn write(args: &Args, format: Format, out: &mut dyn Write) -> Result<(), CommandError> {
    if let (Some(before), Some(after)) = (&args.before, &args.after) {
        let detail = if args.all { Detail::Everything } else { Detail::Findings };
        return before_after::write(before, after, format, detail, out);
    }
    let dir = args.dir.as_deref().ok_or_else(|| CommandError::usage(anyhow!("which experiment?")))?;
    if is_file(dir) {
        return write_recording(dir, format, out);
    }
    let stored = Stored::open(dir)?.with_everything(dir)?;
    let experiment = stored.shown();
    match format {
        Format::Html => out.write_all(zenkai_report::experiment_html(&experiment).as_bytes())?,
        Format::Text => output::write_blocks(out, &zenkai_report::experiment(&experiment))?,
        Format::Json => output::write_json(out, &zenkai_report::experiment_json(&experiment)?)?,
    }
    Ok(())
}

/// A recording is a file, an experiment a directory.
fn is_file(path: &std::path::Path) -> bool {
    let stat = rustix::fs::stat(path);
    stat.is_ok_and(|stat| {
        rustix::fs::FileType::from_raw_mode(stat.st_mode) == rustix::fs::FileType::RegularFile
    })
}

fn write_recording(path: &std::path::Path, format: Format, out: &mut dyn Write) -> Result<(), CommandError> {
    let recording = record::read(path)?;
    match format {
        Format::Html => {
            out.write_all(record::show::page(&path.display().to_string(), &recording).as_bytes())?;
        }
        Format::Text | Format::Json => record::show::show(&recording, false, format == Format::Json, out)?,
    }
    Ok(())
}
