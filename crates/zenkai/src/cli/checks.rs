//! `zenkai checks`

use std::io::Write;

use super::{CommandError, Exit, output};

/// List all checks.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// Write JSON (schema zenkai.checks/1), with every explanation
    #[arg(long)]
    json: bool,
}

pub(super) fn run(args: &Args, out: &mut dyn Write) -> Result<Exit, CommandError> {
    if args.json {
        output::write_json(out, &zenkai_report::checks_json()?)?;
    } else {
        output::write_blocks(out, &zenkai_report::check_list())?;
    }
    Ok(Exit::Fine)
}
