//! `zenkai analyze`

use std::{io::Write, path::PathBuf};

use super::{CommandError, Exit, experiment::Stored, output};

/// Recompute the verdict of a stored experiment
///
/// From its plan and its trials alone, to the last bit.
///
/// Exit code: 0 whatever the verdict (the JSON carries it as "verdict"), 2 no experiment or a damaged one, 77 not
/// permitted to read it.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// The experiment's directory
    dir: PathBuf,
    /// Write JSON (schema zenkai.experiment/1)
    #[arg(long)]
    json: bool,
}

pub(super) fn run(args: &Args, out: &mut dyn Write) -> Result<Exit, CommandError> {
    let stored = Stored::open(&args.dir)?;
    if args.json {
        output::write_json(out, &zenkai_report::experiment_json(&stored.shown())?)?;
    } else {
        output::write_blocks(out, &zenkai_report::analysis(&stored.shown()))?;
    }
    Ok(Exit::Fine)
}
