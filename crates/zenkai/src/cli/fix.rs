//! `zenkai doctor --fix`: the remedies of findings, through the same transaction as profiles.

use std::{collections::BTreeMap, io::Write};

use anyhow::anyhow;
use zenkai_diagnose::{Diagnosis, Remedy, Reported, Selection, checks};
use zenkai_host::{Host, Knob, LiveHost};
use zenkai_report::{Block, FixNote, FixOutcome};
use zenkai_tune::{
    Plan, Scene, Setting, State, Want, Wish, nearest,
    plugins::{KERNEL_ARGUMENT_RISK, kernel_argument_wishes},
    profile::Origin,
    transaction::{Kind, Request},
};

use super::{
    CommandError, Exit,
    change::{self, changing, exit, request},
    doctor::{self, Args},
    output,
};

#[derive(Debug, clap::Args)]
pub(super) struct FixArgs {
    /// Set what these checks recommend, all or nothing; `zenkai undo` takes it back
    #[arg(
        long,
        value_name = "CHECK",
        num_args = 1..,
        value_delimiter = ',',
        conflicts_with_all = ["only", "min_impact", "all"]
    )]
    pub(super) fix: Vec<String>,
    /// With --fix: show the plan and change nothing
    #[arg(long, requires = "fix")]
    dry_run: bool,
    /// With --fix: keep what worked when something is refused
    #[arg(long, requires = "fix")]
    keep_going: bool,
}

/// What is to be done about the named checks, and what is to be said of each.
struct Fix {
    notes: Vec<FixNote>,
    wishes: Vec<Wish>,
}

pub(super) fn run(args: &Args, out: &mut dyn Write, err: &mut dyn Write) -> Result<Exit, CommandError> {
    let mut names = args.fixing.fix.clone();
    names.sort();
    names.dedup();
    names.iter().try_for_each(|name| known(name))?;
    if !args.fixing.dry_run && !args.host.is_live() {
        return Err(CommandError::usage(anyhow!("a capture or a directory cannot be changed"))
            .hint("--dry-run shows the plan"));
    }
    if !args.fixing.dry_run {
        // Before the machine is loaded by a probe.
        change::may_change()?;
    }
    let host = args.host.open_probed(args.probe, err)?;
    if args.fixing.dry_run {
        let Fix { mut notes, wishes } = fix(args, &*host, &names)?;
        let plan = Plan::new(&*host, wishes);
        notes.extend(cannot(&plan));
        if args.json {
            let json = zenkai_report::fix_json(&notes, zenkai_report::plan_json(&names, &plan)?);
            output::write_json(out, &json)?;
        } else {
            let mut blocks = zenkai_report::fix_notes(&notes);
            blocks.extend(zenkai_report::plan(&format!("plan: fix {}", names.join(" ")), &plan));
            output::write_blocks(out, &blocks)?;
        }
        return Ok(outcome(&notes, Exit::Fine));
    }
    let (notes, plan, report) = changing(err, |session| {
        let Fix { mut notes, wishes } = fix(args, &*host, &names)?;
        let plan = Plan::new(&LiveHost, wishes);
        notes.extend(cannot(&plan));
        let label = format!("fix {}", names.join(" "));
        let request = Request { label, keep_going: args.fixing.keep_going, ..request(Kind::Fix) };
        let report = session.apply(&LiveHost, &plan, &request)?;
        Ok((notes, plan, report))
    })?;
    if args.json {
        let json = zenkai_report::transaction_json(&report, Some(&plan))?;
        output::write_json(out, &zenkai_report::fix_json(&notes, json))?;
    } else {
        let mut blocks = zenkai_report::fix_notes(&notes);
        blocks.extend(zenkai_report::transaction(&report, Some(&plan)));
        if report.id.is_some()
            && plan.changes().any(|step| !step.wish.knob().is_some_and(Knob::is_persistent))
        {
            blocks.push(Block::Text(KEEPING.to_owned()));
        }
        output::write_blocks(out, &blocks)?;
    }
    Ok(outcome(&notes, exit(&report)))
}

const KEEPING: &str = "what the kernel holds lasts until the next boot; a profile of your own keeps it";

/// Refuses what is no check. There is no word for all of them: each has a risk of its own, and somebody should have
/// read it.
fn known(name: &str) -> Result<(), CommandError> {
    if checks::find(name).is_some() {
        return Ok(());
    }
    if name == "all" {
        return Err(CommandError::usage(anyhow!("--fix takes checks by name: each has its own risk"))
            .hint("`zenkai doctor` shows the findings, their fix and its risk"));
    }
    let hint = match nearest(name, checks::CHECKS.iter().map(|check| check.id)) {
        Some(near) => format!("`{near}`"),
        None => "`zenkai checks` lists them".to_owned(),
    };
    Err(CommandError::usage(anyhow!("no check is called `{name}`")).hint(hint))
}

fn fix(args: &Args, host: &dyn Host, names: &[String]) -> Result<Fix, CommandError> {
    let selection = Selection { only: names.to_vec(), min_impact: None };
    let (_, diagnosis) = doctor::look(args, host, &selection)?;
    let mut fix = Fix { notes: Vec::new(), wishes: Vec::new() };
    for name in names {
        let before = fix.notes.len();
        for reported in diagnosis.findings.iter().filter(|reported| reported.check == name) {
            fix.notes.push(note(reported));
        }
        if fix.notes.len() == before {
            fix.notes.push(silent(name, &diagnosis));
        }
    }
    let mut arguments = BTreeMap::new();
    let mut asking: Vec<&str> = Vec::new();
    for reported in &diagnosis.findings {
        let Remedy::Set(settings) = &reported.finding.remedy else { continue };
        for setting in settings {
            if let Knob::KernelArgument(key) = &setting.knob {
                arguments.insert(key.clone(), setting.value.clone());
                asking.push(reported.check);
            } else {
                fix.wishes.push(wish(setting, reported));
            }
        }
    }
    asking.dedup();
    fix.wishes.extend(for_the_next_boot(host, arguments.into_iter().collect(), &asking));
    Ok(fix)
}

fn wish(setting: &Setting, reported: &Reported) -> Wish {
    Wish { risk: Some(reported.risk.to_owned()), ..setting.wish(Origin::Check(reported.check.to_owned())) }
}

/// All arguments at once, since they stand in one file.
fn for_the_next_boot(host: &dyn Host, arguments: Vec<(String, String)>, asking: &[&str]) -> Vec<Wish> {
    if arguments.is_empty() {
        return Vec::new();
    }
    let scene = Scene::new(host, false);
    let mut wants = kernel_argument_wishes(&scene, &arguments);
    if wants.is_empty() {
        let why = "the boot loader is set already; it acts after a reboot".to_owned();
        wants.push(Want::Leave(why));
    }
    let asked: Vec<String> = arguments
        .iter()
        .map(|(key, value)| if value.is_empty() { format!("no {key}") } else { format!("{key}={value}") })
        .collect();
    let wish = |want| Wish {
        origin: Origin::Check(asking.join(", ")),
        unit: String::new(),
        plugin: String::new(),
        option: "kernel arguments".to_owned(),
        device: None,
        asked: asked.join(" "),
        want,
        risk: Some(KERNEL_ARGUMENT_RISK.to_owned()),
    };
    wants.into_iter().map(wish).collect()
}

/// What is said of a finding.
fn note(reported: &Reported) -> FixNote {
    let by_hand = |text: &str| FixOutcome::ByHand(text.to_owned());
    let outcome = match &reported.finding.remedy {
        Remedy::Set(_) => FixOutcome::Settable,
        Remedy::Do(text) => by_hand(text),
        Remedy::Firmware(text) => by_hand(&format!("in the firmware: {text}")),
        Remedy::Hardware(text) => by_hand(&format!("hardware: {text}")),
        Remedy::Hypervisor(text) => by_hand(&format!("on the hypervisor: {text}")),
        Remedy::None => by_hand("nothing to do; it is good to know"),
    };
    FixNote { check: reported.check.to_owned(), what: reported.finding.what.clone(), outcome }
}

/// What a remedy asks for and this machine does not take, once for each check.
fn cannot(plan: &Plan) -> Vec<FixNote> {
    let mut notes: Vec<FixNote> = Vec::new();
    for step in &plan.steps {
        let State::Cannot { why, .. } = &step.state else { continue };
        let check = match &step.wish.origin {
            Origin::Check(check) => check.clone(),
            other => other.to_string(),
        };
        if notes.iter().all(|note| note.check != check) {
            let what = "its remedy cannot be set here".to_owned();
            notes.push(FixNote { check, what, outcome: FixOutcome::ByHand(why.clone()) });
        }
    }
    notes
}

/// Why a check has no finding.
fn silent(name: &str, diagnosis: &Diagnosis) -> FixNote {
    let exempt = |list: &[zenkai_diagnose::Exempt]| {
        list.iter().find(|exempt| exempt.check == name).map(|exempt| exempt.reason.clone())
    };
    let unjudged = diagnosis.unjudged.iter().find(|unjudged| unjudged.check == name);
    let (what, outcome) = if let Some(reason) = exempt(&diagnosis.accepted) {
        (format!("accepted by this site's policy: {reason}"), FixOutcome::NotNeeded)
    } else if let Some(unjudged) = unjudged {
        let missing = &unjudged.missing;
        let what = format!("could not be judged: {}: {}", missing.source, missing.reason);
        (what, FixOutcome::NotJudged)
    } else if let Some(reason) = exempt(&diagnosis.not_applicable) {
        (format!("does not apply here: {reason}"), FixOutcome::NotNeeded)
    } else {
        ("found nothing wrong".to_owned(), FixOutcome::NotNeeded)
    };
    FixNote { check: name.to_owned(), what, outcome }
}

/// What went wrong with the transaction comes first, then what is left to a person, then what nobody could judge.
fn outcome(notes: &[FixNote], done: Exit) -> Exit {
    let any = |wanted: fn(&FixOutcome) -> bool| notes.iter().any(|note| wanted(&note.outcome));
    if done != Exit::Fine {
        done
    } else if any(|outcome| matches!(outcome, FixOutcome::ByHand(_))) {
        Exit::Findings
    } else if any(|outcome| matches!(outcome, FixOutcome::NotJudged)) {
        Exit::PartlyUnreadable
    } else {
        Exit::Fine
    }
}
