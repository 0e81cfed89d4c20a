//! `zenkai doctor`

use std::{io::Write, path::PathBuf};

use anyhow::anyhow;
use zenkai_diagnose::{Context, Diagnosis, Impact, Policy, Selection, Workload, diagnose};
use zenkai_facts::Facts;
use zenkai_host::{Host, read_plain_file};
use zenkai_report::Detail;

use super::{CommandError, Exit, fix, fix::FixArgs, host::HostArgs, output};

/// Where a site keeps its policy.
const POLICY_PATH: &str = "/etc/zenkai/policy.toml";
/// A larger file is no policy.
const LARGEST_POLICY: u64 = 1 << 20;

/// Tell why this machine is not at full speed, with the evidence
///
/// Exit code: 0 nothing found, 1 findings, 2 usage, 3 nothing found but parts unreadable for lack of permission.
///
/// With --fix: 0 fixed, or there was nothing to fix; 1 a finding is left that zenkai cannot set; 3 a check could not
/// be judged; 4 something was refused and everything was put back (with --keep-going: the rest was kept); 5
/// something could not be put back; 77 not root.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    #[command(flatten)]
    pub(super) host: HostArgs,
    /// Write JSON (schema zenkai.doctor/1)
    #[arg(long)]
    pub(super) json: bool,
    /// What the machine is for; some settings are right for one work and wrong for another
    #[arg(long, value_name = "WORK")]
    workload: Option<Workload>,
    /// Only these checks or subsystems, separated by commas
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    only: Vec<String>,
    /// Leave out findings below this impact: depends, small, moderate, large
    #[arg(long, value_name = "IMPACT", value_parser = parse_impact)]
    min_impact: Option<Impact>,
    /// First load the machine for about three seconds and measure what it really does
    #[arg(long, conflicts_with_all = ["capture", "root"])]
    pub(super) probe: bool,
    /// Also list every check that passed or does not apply
    #[arg(long)]
    all: bool,
    /// Checks this site accepts or sees differently [default: /etc/zenkai/policy.toml]
    #[arg(long, value_name = "FILE")]
    policy: Option<PathBuf>,
    #[command(flatten)]
    pub(super) fixing: FixArgs,
}

fn parse_impact(word: &str) -> Result<Impact, String> {
    [Impact::Depends, Impact::Small, Impact::Moderate, Impact::Large]
        .into_iter()
        .find(|impact| impact.to_string() == word)
        .ok_or_else(|| "use depends, small, moderate or large".to_owned())
}

pub(super) fn run(args: &Args, out: &mut dyn Write, err: &mut dyn Write) -> Result<Exit, CommandError> {
    if !args.fixing.fix.is_empty() {
        return fix::run(args, out, err);
    }
    if let Some(unknown) = args.only.iter().find(|name| !Selection::knows(name)) {
        return Err(CommandError::usage(anyhow!("no check or subsystem is called `{unknown}`"))
            .hint("`zenkai checks` lists them"));
    }
    let host = args.host.open_probed(args.probe, err)?;
    let selection = Selection { only: args.only.clone(), min_impact: args.min_impact };
    let (facts, diagnosis) = look(args, &*host, &selection)?;
    let context = Context { workload: args.workload };
    if args.json {
        output::write_json(out, &zenkai_report::doctor_json(&facts, &diagnosis, context)?)?;
    } else {
        let detail = if args.all { Detail::Everything } else { Detail::Findings };
        output::write_blocks(out, &zenkai_report::doctor(&facts, &diagnosis, detail))?;
    }
    // The process ends now, and the kernel takes its memory back at once: piece by piece it takes longer.
    std::mem::forget((host, facts));
    Ok(exit(&diagnosis))
}

/// Looks at the machine with the workload and the policy of this command line.
pub(super) fn look(
    args: &Args,
    host: &dyn Host,
    selection: &Selection,
) -> Result<(Facts, Diagnosis), CommandError> {
    let policy = policy(args)?;
    let facts = zenkai_facts::observe(host);
    let diagnosis = diagnose(&facts, Context { workload: args.workload }, &policy, selection);
    Ok((facts, diagnosis))
}

fn exit(diagnosis: &Diagnosis) -> Exit {
    if !diagnosis.findings.is_empty() {
        Exit::Findings
    } else if diagnosis.lacks_permission() {
        Exit::PartlyUnreadable
    } else {
        Exit::Fine
    }
}

/// The site's own policy speaks only of the site's own machines: a capture is judged without it, unless named.
fn policy(args: &Args) -> Result<Policy, CommandError> {
    let (path, named) = match &args.policy {
        Some(path) => (path.clone(), true),
        None if args.host.is_live() => (PathBuf::from(POLICY_PATH), false),
        None => return Ok(Policy::default()),
    };
    let shown = path.display();
    match read_plain_file(&path, LARGEST_POLICY) {
        Ok(bytes) => {
            let text = String::from_utf8(bytes)
                .map_err(|_| CommandError::usage(anyhow!("{shown}: not UTF-8, so this is no policy")))?;
            Policy::parse(&text).map_err(|error| CommandError::usage(anyhow!("{shown}: {error}")))
        }
        Err(error) if !named && error.kind() == std::io::ErrorKind::NotFound => Ok(Policy::default()),
        Err(error) => Err(CommandError::usage(anyhow!("cannot read {shown}: {error}"))),
    }
}
