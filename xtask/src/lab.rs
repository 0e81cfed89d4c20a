//! `cargo xtask lab`

use std::process::ExitCode;

use clap::Subcommand;

#[derive(Subcommand)]
pub(crate) enum LabCommand {
    /// Nothing yet
    List,
}

#[expect(clippy::unnecessary_wraps, reason = "every task ends alike")]
pub(crate) fn run(_command: LabCommand) -> anyhow::Result<ExitCode> {
    Ok(ExitCode::SUCCESS)
}
