//! `cargo xtask docs`: the reference pages, written from the code.

use std::{fmt::Write as _, path::PathBuf, process::ExitCode};

use anyhow::{Context as _, bail};
use zenkai_diagnose::checks::CHECKS;
use zenkai_tune::plugins::PLUGINS;

use crate::process::root;

#[derive(clap::Args)]
pub(crate) struct DocsArgs {
    /// Write nothing; fail when a page is out of date
    #[arg(long)]
    check: bool,
}

const NOTE: &str = "<!-- Written by `cargo xtask docs` from the code; edits here are lost. -->\n";

const COMMANDS: &[&[&str]] = &[
    &["--help"],
    &["doctor", "--help"],
    &["facts", "--help"],
    &["capture", "--help"],
    &["diff", "--help"],
    &["settings", "--help"],
    &["explain", "--help"],
    &["checks", "--help"],
    &["profile", "--help"],
    &["profile", "list", "--help"],
    &["profile", "show", "--help"],
    &["profile", "plan", "--help"],
    &["profile", "apply", "--help"],
    &["profile", "off", "--help"],
    &["profile", "verify", "--help"],
    &["undo", "--help"],
    &["log", "--help"],
    &["bisect", "--help"],
    &["compare", "--help"],
    &["record", "--help"],
    &["analyze", "--help"],
    &["report", "--help"],
    &["export", "--help"],
    &["import", "--help"],
    &["os-index", "--help"],
    &["tuned-adm", "--help"],
];

pub(crate) fn run(args: &DocsArgs) -> anyhow::Result<ExitCode> {
    if args.check {
        check()?;
    } else {
        for (path, text) in pages()? {
            std::fs::create_dir_all(path.parent().unwrap_or(&path))?;
            std::fs::write(&path, text).with_context(|| format!("cannot write {}", path.display()))?;
            println!("wrote {}", path.display());
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// Fails when a page on disk is not what the code would write.
pub(crate) fn check() -> anyhow::Result<()> {
    for (path, text) in pages()? {
        let shown = path.display();
        let there = std::fs::read_to_string(&path).with_context(|| format!("cannot read {shown}"))?;
        if there != text {
            bail!("{shown} is out of date; run `cargo xtask docs`");
        }
    }
    Ok(())
}

fn pages() -> anyhow::Result<Vec<(PathBuf, String)>> {
    let dir = root().join("docs/generated");
    Ok(vec![
        (dir.join("checks.md"), checks()?),
        (dir.join("cli.md"), commands()?),
        (dir.join("plugins.md"), plugins()?),
        (root().join("README.md"), readme()?),
    ])
}

/// What the README shows is what the program says of a capture in this repository.
fn readme() -> anyhow::Result<String> {
    const START: &str = "<!-- doctor: written by `cargo xtask docs` -->\n```text\n";
    const END: &str = "```\n<!-- /doctor -->";
    let path = root().join("README.md");
    let text = std::fs::read_to_string(&path).context("README.md")?;
    let (before, rest) = text.split_once(START).context("README.md has no place for the doctor's output")?;
    let (_, after) = rest.split_once(END).context("README.md does not end the doctor's output")?;
    let capture = root().join("fixtures/hosts/ailing/max-frequency-capped-hwp.capture");
    let capture = capture.to_str().context("the repository's path is not UTF-8")?;
    let output = called(&["doctor", "--min-impact", "large", "--capture", capture])?;
    let shown: Vec<&str> = output
        .lines()
        .take_while(|line| *line != "Could not be judged" && *line != "Not asked for")
        .collect();
    Ok(format!("{before}{START}{}\n{END}{after}", shown.join("\n").trim_end()))
}

/// What the program prints when called with these arguments.
fn called(args: &[&str]) -> anyhow::Result<String> {
    let (mut out, mut err) = (Vec::new(), Vec::new());
    zenkai::cli::run(std::iter::once(&"zenkai").chain(args), &mut out, &mut err);
    Ok(String::from_utf8(out)?)
}

fn checks() -> anyhow::Result<String> {
    let mut page = format!("{NOTE}# The checks of `zenkai doctor`\n\n");
    writeln!(page, "{} checks. Each says what proves it, what to do and when it is wrong.\n", CHECKS.len())?;
    writeln!(page, "| check | subsystem | impact | the problem |\n|---|---|---|---|")?;
    for check in CHECKS.iter() {
        let id = check.id;
        writeln!(page, "| [{id}](#{id}) | {} | {} | {} |", check.subsystem, check.impact, check.summary)?;
    }
    for check in CHECKS.iter() {
        let (title, body) = check.explanation.split_once('\n').unwrap_or((check.explanation, ""));
        let title = title.trim_start_matches("# ");
        writeln!(
            page,
            "\n<a id=\"{}\"></a>\n## {title}\n\n`{}` · impact: {}",
            check.id, check.id, check.impact
        )?;
        writeln!(page, " · effect: {}\n{}", check.effect, body.trim_end())?;
    }
    Ok(page)
}

fn plugins() -> anyhow::Result<String> {
    let mut page = format!("{NOTE}# Plugins\n\nWhat the sections of a profile can set.\n");
    for plugin in PLUGINS {
        writeln!(page, "\n## {}\n\n{}.", plugin.name, plugin.summary.trim_end_matches('.'))?;
        if plugin.devices.is_some() {
            writeln!(page, "It has devices: `devices=` says for which a section is.")?;
        }
        if !plugin.options.is_empty() {
            writeln!(page, "\n| option | what it is for | default |\n|---|---|---|")?;
        }
        for option in plugin.options {
            let help = option.help.replace('|', "\\|");
            writeln!(page, "| `{}` | {help} | {} |", option.name, option.default)?;
        }
    }
    Ok(page)
}

fn commands() -> anyhow::Result<String> {
    let mut page = format!("{NOTE}# Commands\n");
    for args in COMMANDS {
        let text = called(args)?;
        let title = args
            .iter()
            .filter(|arg| !arg.starts_with('-'))
            .fold("zenkai".to_owned(), |all, arg| all + " " + arg);
        writeln!(page, "\n## {title}\n\n```text\n{}\n```", text.trim_end())?;
    }
    Ok(page)
}
