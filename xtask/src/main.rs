//! Development tasks of zenkai: `cargo xtask test`, `docs`, `bench`, `calibrate`, `lab`.
#![expect(
    clippy::disallowed_methods,
    clippy::print_stdout,
    reason = "a tool for developers: it runs cargo and apt, writes generated files and talks to a person"
)]

mod bench;
mod bench_capture;
mod bench_count;
mod bench_sampler;
mod bench_tuned;
mod calibrate;
mod calibrate_page;
mod docs;
mod lab;
mod process;
mod test;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

#[derive(Parser)]
#[command(name = "cargo xtask")]
struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Everything that must pass before a change lands; installs what it needs when run as root
    Test(test::TestArgs),
    /// Write docs/generated from the code, or check that it is up to date
    Docs(docs::DocsArgs),
    /// Measure the program's own cost, side by side, and print ratios
    Bench(bench::BenchArgs),
    /// Equal arms and known differences on this machine: does `zenkai compare` keep its promises? Writes
    /// docs/calibration.md
    Calibrate(calibrate::CalibrateArgs),
    /// The real-kernel laboratory: QEMU guests to test against
    #[command(subcommand)]
    Lab(lab::LabCommand),
}

fn main() -> anyhow::Result<ExitCode> {
    match Args::parse().command {
        Command::Test(args) => Ok(test::run(&args)),
        Command::Docs(args) => docs::run(&args),
        Command::Bench(args) => bench::run(&args),
        Command::Calibrate(args) => calibrate::run(&args),
        Command::Lab(command) => lab::run(command),
    }
}
