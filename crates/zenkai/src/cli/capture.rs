//! `zenkai capture`

use std::{io::Write, path::PathBuf};

use anyhow::anyhow;
use zenkai_host::RecordingHost;

use super::{
    CommandError, Exit,
    host::{self, HostArgs},
    labels, sysctls,
};

/// Write what zenkai reads on this machine to a text file, without serial numbers and names
///
/// Serial numbers, MAC addresses, UUIDs and the host name are replaced. The file is plain text: look at it before
/// you send it. Every read-only command takes it as --capture FILE.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// Where to write; standard output without it
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Load the machine for about three seconds, measure it, and keep the result in the capture
    #[arg(long, conflicts_with_all = ["capture", "root"])]
    probe: bool,
    /// Keep it on this machine under a name, for `zenkai diff NAME now`
    #[arg(long, value_name = "NAME", conflicts_with_all = ["output", "capture", "root"])]
    label: Option<String>,
    /// List the captures that are kept under a name
    #[arg(long, conflicts_with_all = ["output", "label", "probe", "capture", "root"])]
    list: bool,
    #[command(flatten)]
    host: HostArgs,
}

#[expect(clippy::disallowed_methods, reason = "the user names the file")]
pub(super) fn run(args: &Args, out: &mut dyn Write, err: &mut dyn Write) -> Result<Exit, CommandError> {
    if args.list {
        return labels::list(out);
    }
    if let Some(label) = &args.label {
        // Before the machine is looked at, or even loaded by a probe.
        labels::check(label)?;
    }
    let host = RecordingHost::new(args.host.open_probed(args.probe, err)?);
    zenkai_facts::observe(&host);
    match &args.host.capture {
        // It holds what it holds.
        Some(path) => sysctls::repeat(&host::load(path)?, &host),
        None => sysctls::record(host.inner(), &host),
    }
    let text = host.into_capture().anonymised().to_text();
    if let Some(label) = &args.label {
        let path = labels::keep(label, &text)?;
        writeln!(err, "zenkai: kept as {path}; `zenkai diff {label} now` tells what changed since")?;
        return Ok(Exit::Fine);
    }
    match &args.output {
        None => out.write_all(text.as_bytes())?,
        Some(path) => {
            let shown = path.display();
            std::fs::write(path, &text)
                .map_err(|error| CommandError::usage(anyhow!("cannot write {shown}: {error}")))?;
            let lines = text.lines().count();
            writeln!(err, "zenkai: wrote {shown}: {lines} lines of text, without serial numbers and names")?;
        }
    }
    Ok(Exit::Fine)
}
