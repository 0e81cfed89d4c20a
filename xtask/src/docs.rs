//! `cargo xtask docs`: the reference pages, written from the code.

use std::{
    fmt::Write as _,
    path::{Path, PathBuf},
    process::ExitCode,
};

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
    // Captures are named from here in what is shown.
    std::env::set_current_dir(root())?;
    let dir = root().join("docs/generated");
    let mut pages = vec![
        (dir.join("checks.md"), checks()?),
        (dir.join("cli.md"), commands()?),
        (dir.join("plugins.md"), plugins()?),
    ];
    for page in ["README.md", "docs/stories.md"] {
        let page = root().join(page);
        let text = with_outputs(&page)?;
        pages.push((page, text));
    }
    Ok(pages)
}

/// Where a page shows what the program prints, between these lines.
const OUTPUT: &str = "<!-- output of `zenkai ";
const BEGINS: &str = "` -->\n```text\n";
const ENDS: &str = "```\n<!-- /output -->";

/// A page in which every output is what the program says of a capture in this repository.
fn with_outputs(page: &Path) -> anyhow::Result<String> {
    let shown = page.display();
    let text = std::fs::read_to_string(page).with_context(|| format!("cannot read {shown}"))?;
    let mut written = String::new();
    let mut rest = text.as_str();
    while let Some((before, after)) = rest.split_once(OUTPUT) {
        let (command, after) =
            after.split_once(BEGINS).with_context(|| format!("{shown}: an output without a block"))?;
        let (_, after) =
            after.split_once(ENDS).with_context(|| format!("{shown}: the output of {command} has no end"))?;
        let output = called(&command.split_whitespace().collect::<Vec<_>>())?;
        let told: Vec<&str> = output
            .lines()
            .take_while(|line| *line != "Could not be judged" && *line != "Not asked for")
            .collect();
        let told = told.join("\n");
        write!(written, "{before}{OUTPUT}{command}{BEGINS}{}\n{ENDS}", told.trim_end())?;
        rest = after;
    }
    Ok(written + rest)
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
