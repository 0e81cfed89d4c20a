//! `zenkai undo` and `zenkai log`

use std::io::Write;

use zenkai_host::LiveHost;
use zenkai_tune::transaction::{Kind, Request, Store, log as entries};

use super::{
    CommandError, Exit,
    change::{changing, request, tell},
    output,
};

/// Undo what zenkai changed: the latest transaction, or the one of this number
///
/// What somebody changed since is kept and shown. Exit code: 0 undone, 4 partly, 5 something could not be put back.
#[derive(Debug, clap::Args)]
pub(super) struct UndoArgs {
    /// The transaction's number, as `zenkai log` shows it [default: the latest]
    id: Option<u64>,
    /// Also put back what somebody changed since
    #[arg(long)]
    force: bool,
    /// Write JSON
    #[arg(long)]
    json: bool,
}

/// List what zenkai changed, newest first.
#[derive(Debug, clap::Args)]
pub(super) struct LogArgs {
    /// Write JSON
    #[arg(long)]
    json: bool,
}

pub(super) fn undo(args: &UndoArgs, out: &mut dyn Write, err: &mut dyn Write) -> Result<Exit, CommandError> {
    let report = changing(err, |session| {
        let label = args.id.map_or_else(|| "undo".to_owned(), |id| format!("undo {id}"));
        // The journal takes the number of what is undone from its own search.
        let request = Request { label, ..request(Kind::Undo { of: args.id.unwrap_or(0) }) };
        Ok(session.undo(&LiveHost, args.id, args.force, &request)?)
    })?;
    tell(&report, None, args.json, out)
}

pub(super) fn log(args: &LogArgs, out: &mut dyn Write) -> Result<Exit, CommandError> {
    let entries = entries(&Store::open(Store::DEFAULT)?)?;
    if args.json {
        output::write_json(out, &zenkai_report::log_json(&entries)?)?;
    } else {
        output::write_blocks(out, &zenkai_report::log(&entries))?;
    }
    Ok(Exit::Fine)
}
