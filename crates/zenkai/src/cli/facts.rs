//! `zenkai facts`

use std::io::Write;

use anyhow::anyhow;
use serde_json::Value;

use super::{CommandError, Exit, host::HostArgs, output};

/// Show what is known of this machine
///
/// Each value that cannot be read is shown with its reason.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// Only this subsystem, such as cpu, block or net
    subsystem: Option<String>,
    #[command(flatten)]
    host: HostArgs,
    /// Write JSON
    #[arg(long)]
    json: bool,
}

pub(super) fn run(args: &Args, out: &mut dyn Write) -> Result<Exit, CommandError> {
    let host = args.host.open()?;
    let mut value = zenkai_facts::Node::of(&zenkai_facts::observe(&*host))?.into_value();
    if let Some(name) = &args.subsystem {
        let names: Vec<String> = value.as_object().into_iter().flat_map(|map| map.keys().cloned()).collect();
        value = value.get_mut(name).map(Value::take).ok_or_else(|| {
            CommandError::usage(anyhow!("there is no subsystem called `{name}`"))
                .hint(format!("one of {}", names.join(", ")))
        })?;
    }
    if args.json {
        output::write_json(out, &value)?;
    } else {
        output::write_blocks(out, &zenkai_report::facts(&value))?;
    }
    Ok(Exit::Fine)
}
