//! `zenkai explain`

use std::io::Write;

use anyhow::anyhow;
use zenkai_diagnose::checks;

use super::{CommandError, Exit, output};

/// Explain one check: what it means, what to do, when it is wrong.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// The check's id, as `zenkai doctor` shows it
    check: String,
}

pub(super) fn run(args: &Args, out: &mut dyn Write) -> Result<Exit, CommandError> {
    let check = checks::find(&args.check).ok_or_else(|| {
        let near = checks::CHECKS.iter().map(|check| check.id).filter(|id| alike(id, &args.check));
        let near: Vec<&str> = near.take(5).collect();
        let hint = if near.is_empty() { "`zenkai checks` lists them".to_owned() } else { near.join(", ") };
        CommandError::usage(anyhow!("no check is called `{}`", args.check)).hint(hint)
    })?;
    output::write_blocks(out, &zenkai_report::explain(check))?;
    Ok(Exit::Fine)
}

/// Whether an id shares a word with what the user typed.
fn alike(id: &str, typed: &str) -> bool {
    typed.split('-').any(|word| word.len() > 2 && id.contains(word))
}
