//! `zenkai profile`

use std::io::Write;

use anyhow::anyhow;
use clap::Subcommand;
use zenkai_facts::{
    Reason,
    services::{Differing, InForce, Unread},
};
use zenkai_host::{Host, Knob, LiveHost, Value, probe::Reading};
use zenkai_report::Verdict;
use zenkai_tune::{
    Fault, Plan, Scene, State, Step, When, Wish, nearest,
    profile::{self, Choice, Commands, Functions, Library, MainConf, Profile, ProfileError, recommend},
    transaction::Held,
    wishes,
};

use super::{CommandError, Exit, change, host::HostArgs, output, scripts};

/// Profiles as tuned has them: look at them, see what they would change here, apply them, take them off.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// List the profiles
    List(Common),
    /// Show a profile after all its includes were merged, every value with the line it comes from
    Show(Named),
    /// Show what applying would change here; nothing is changed
    ///
    /// Exit code: 0, or with --exit-code 2 when there is something to do.
    Plan(PlanArgs),
    /// Apply profiles: all of what they ask for, or nothing
    ///
    /// Exit code: 0 applied, 2 the profile is wrong and nothing was changed, 4 something was refused and everything was
    /// put back (with --keep-going: the rest was kept), 5 something could not be put back.
    Apply(change::ApplyArgs),
    /// Take the profile off: everything as it was before the first one
    Off(change::OffArgs),
    /// Write the skeleton of a profile of your own
    New(change::NewArgs),
    /// Compare this machine with the profile that is chosen, or with the named ones
    ///
    /// As root, the profile's own scripts are asked too.
    ///
    /// Exit code: 0 all as asked, 1 something differs, 3 nothing differs but something could not be looked at.
    Verify(VerifyArgs),
    /// Show which profile is chosen
    Active(Common),
    /// Show which profile fits this machine
    Recommend(Common),
}

#[derive(Debug, clap::Args)]
struct Common {
    #[command(flatten)]
    host: HostArgs,
    /// Write JSON
    #[arg(long)]
    json: bool,
}

#[derive(Debug, clap::Args)]
struct Named {
    /// Profiles; the later ones are stronger
    #[arg(required = true, value_name = "NAME")]
    names: Vec<String>,
    #[command(flatten)]
    common: Common,
}

#[derive(Debug, clap::Args)]
struct PlanArgs {
    #[command(flatten)]
    named: Named,
    /// End with 2 when there is something to do
    #[arg(long)]
    exit_code: bool,
}

#[derive(Debug, clap::Args)]
struct VerifyArgs {
    /// Profiles [default: the chosen one]
    #[arg(value_name = "NAME")]
    names: Vec<String>,
    #[command(flatten)]
    common: Common,
}

impl Args {
    /// Whether this changes the machine.
    pub(super) fn changes(&self) -> bool {
        match &self.command {
            Command::Apply(args) => args.changes(),
            Command::Off(_) => true,
            _ => false,
        }
    }
}

pub(super) fn run(args: &Args, out: &mut dyn Write, err: &mut dyn Write) -> Result<Exit, CommandError> {
    match &args.command {
        Command::Apply(args) => change::apply(args, out, err),
        Command::Off(args) => change::off(args, out, err),
        Command::New(args) => change::new(args, out),
        Command::List(common) => list(common, out),
        Command::Show(named) => show(named, out),
        Command::Plan(args) => plan(args, out),
        Command::Verify(args) => verify(args, out),
        Command::Active(common) => active(common, out),
        Command::Recommend(common) => recommended(common, out),
    }
}

/// A machine with its profiles.
pub(super) struct Tuned<'h> {
    host: &'h dyn Host,
    /// What functions that run a program use; without it they stay as they are written.
    pub(super) commands: Option<&'h dyn Commands>,
    pub(super) conf: MainConf,
    pub(super) library: Library<'h>,
    pub(super) state: profile::State,
    /// What the profile in force holds, where this is the machine that we run on.
    pub(super) held: Held,
}

impl<'h> Tuned<'h> {
    pub(super) fn open(host: &'h dyn Host) -> Result<Self, ProfileError> {
        let conf = MainConf::read(host)?;
        let library = Library::new(host, conf.profile_directories.clone());
        Ok(Self {
            host,
            commands: None,
            library,
            state: profile::State::read(host)?,
            held: Held::default(),
            conf,
        })
    }

    /// The machine that we run on, with what the profile in force holds.
    pub(super) fn open_live() -> Result<Tuned<'static>, CommandError> {
        Self::open_live_with(change::held()?)
    }

    /// The same for who knows already what the profile in force holds.
    pub(super) fn open_live_with(held: Held) -> Result<Tuned<'static>, CommandError> {
        let tuned = Tuned::open(&LiveHost).map_err(CommandError::usage)?;
        Ok(Tuned { held, ..tuned })
    }

    /// The machine that these arguments name.
    fn open_for_plan(host: &'h dyn Host, args: &HostArgs) -> Result<Self, CommandError> {
        if args.is_live() { Self::open_live() } else { Self::open(host).map_err(CommandError::usage) }
    }

    pub(super) fn functions(&self) -> Functions<'h> {
        Functions { host: self.host, commands: self.commands }
    }

    /// The profile merged from these names and the post-loaded one.
    pub(super) fn load(&self, names: &[String]) -> Result<Profile, ProfileError> {
        self.load_with(names, self.commands)
    }

    /// The same, with these programs for its functions.
    pub(super) fn load_with(
        &self,
        names: &[String],
        commands: Option<&dyn Commands>,
    ) -> Result<Profile, ProfileError> {
        let functions = Functions { host: self.host, commands };
        self.library.load(names, self.state.post_loaded.as_deref(), &functions)
    }

    pub(super) fn scene(&self) -> Scene<'_> {
        Scene { held: &self.held, ..Scene::new(self.host, self.conf.reapply_sysctl) }
    }

    pub(super) fn wishes(&self, profile: &Profile) -> Vec<Wish> {
        wishes(&self.scene(), profile, &self.conf, self.functions())
    }

    pub(super) fn plan(&self, profile: &Profile) -> Plan {
        Plan::beside(&self.held, self.host, self.wishes(profile))
    }

    /// The profile that fits this machine; balanced where `recommend_command` says not to look.
    pub(super) fn recommended(&self) -> Result<String, ProfileError> {
        if !self.conf.recommend_command {
            return Ok("balanced".to_owned());
        }
        Ok(recommend(self.host)?.profile)
    }

    /// The names of the chosen profile; none when none is wanted.
    pub(super) fn chosen(&self) -> Result<Option<Vec<String>>, ProfileError> {
        Ok(match self.state.choice() {
            Choice::Named(names) => Some(names),
            Choice::Recommended => Some(vec![self.recommended()?]),
            Choice::None => None,
        })
    }

    /// What to tell the user about a profile that cannot be loaded.
    pub(super) fn failure(&self, error: ProfileError) -> CommandError {
        let near = match &error {
            ProfileError::NotFound { name, .. } => {
                let known = self.library.list();
                nearest(name, known.iter().map(|(name, _)| name.as_str())).map(str::to_owned)
            }
            _ => None,
        };
        let failure = CommandError::usage(error);
        match near {
            Some(name) => failure.hint(format!("`{name}`")),
            None => failure,
        }
    }
}

fn list(args: &Common, out: &mut dyn Write) -> Result<Exit, CommandError> {
    let host = args.host.open()?;
    let list = Tuned::open(&*host).map_err(CommandError::usage)?.library.list();
    if args.json {
        output::write_json(out, &zenkai_report::profile_list_json(&list))?;
    } else {
        output::write_blocks(out, &zenkai_report::profile_list(&list))?;
    }
    Ok(Exit::Fine)
}

fn show(args: &Named, out: &mut dyn Write) -> Result<Exit, CommandError> {
    let host = args.common.host.open()?;
    let tuned = Tuned::open(&*host).map_err(CommandError::usage)?;
    let profile = tuned.load(&args.names).map_err(|error| tuned.failure(error))?;
    if args.common.json {
        output::write_json(out, &zenkai_report::profile_json(&profile)?)?;
    } else {
        output::write_blocks(out, &zenkai_report::profile(&profile))?;
    }
    Ok(Exit::Fine)
}

fn plan(args: &PlanArgs, out: &mut dyn Write) -> Result<Exit, CommandError> {
    let Named { names, common } = &args.named;
    let host = common.host.open()?;
    let tuned = Tuned::open_for_plan(&*host, &common.host)?;
    let profile = tuned.load(names).map_err(|error| tuned.failure(error))?;
    let plan = tuned.plan(&profile);
    if common.json {
        output::write_json(out, &zenkai_report::plan_json(&profile.names, &plan)?)?;
    } else {
        output::write_blocks(
            out,
            &zenkai_report::plan(&format!("plan: {}", profile.names.join(" ")), &plan),
        )?;
    }
    Ok(if args.exit_code && !plan.is_empty() { Exit::Changes } else { Exit::Fine })
}

fn verify(args: &VerifyArgs, out: &mut dyn Write) -> Result<Exit, CommandError> {
    let host = args.common.host.open()?;
    let mut tuned = Tuned::open_for_plan(&*host, &args.common.host)?;
    let names = if args.names.is_empty() {
        let chosen = tuned.chosen().map_err(CommandError::usage)?;
        chosen.ok_or_else(|| CommandError::usage(anyhow!("no profile is chosen")).hint("name one"))?
    } else {
        args.names.clone()
    };
    let profile = tuned.load(&names).map_err(|error| tuned.failure(error))?;
    let plan = if args.common.host.is_live() {
        compared(&mut tuned, &profile, &names, false)?
    } else {
        tuned.plan(&profile)
    };
    if args.common.json {
        output::write_json(out, &zenkai_report::verify_json(&profile.names, &plan)?)?;
    } else {
        let title = format!("verify: {}", profile.names.join(" "));
        output::write_blocks(out, &zenkai_report::verify(&title, &plan))?;
    }
    Ok(verdict(&plan))
}

/// This machine compared with the profile: the plan again, and what scripts of the profile say. Programs are run only as
/// root, and only when nobody else could have written the profile; otherwise what they would say is not known.
pub(super) fn compared(
    tuned: &mut Tuned,
    profile: &Profile,
    names: &[String],
    ignore_missing: bool,
) -> Result<Plan, CommandError> {
    if !change::is_root() || change::trusted(profile).is_err() {
        return Ok(tuned.plan(profile));
    }
    tuned.commands = Some(&change::Programs);
    let profile = tuned.load(names).map_err(|error| tuned.failure(error))?;
    let mut plan = tuned.plan(&profile);
    scripts::ask(&LiveHost, &mut plan, ignore_missing);
    Ok(plan)
}

/// How far the machine is as the profile asks that is said to be active, for the facts ([`Query::Profile`]); none without
/// such a profile. Nothing is run for it.
///
/// [`Query::Profile`]: zenkai_host::Query::Profile
pub(super) fn in_force(host: &dyn Host, live: bool) -> Result<Option<String>, CommandError> {
    let tuned = match Tuned::open(host) {
        Ok(tuned) if tuned.state.active.is_empty() => return Ok(None),
        Ok(tuned) if live => Ok(Tuned { held: change::held().unwrap_or_default(), ..tuned }),
        other => other,
    };
    let in_force = match tuned.and_then(|tuned| Ok(tuned.plan(&tuned.load(&tuned.state.active)?))) {
        Ok(plan) => Reading::Value(seen(host, &plan)),
        Err(error) => Reading::Absent(error.to_string()),
    };
    Ok(Some(serde_json::to_string(&in_force)?))
}

/// What a plan says of the settings that act at once and stay as they are.
fn seen(host: &dyn Host, plan: &Plan) -> InForce {
    let mut seen = InForce { compared: 0, differing: Vec::new(), unread: Vec::new() };
    for Step { wish, state } in &plan.steps {
        let Some(knob) = wish.knob() else { continue };
        // Tasks come and go, and a function that was not called leaves no value to compare with.
        if knob.is_persistent() || matches!(knob, Knob::Task { .. }) || wish.asked.contains("${") {
            continue;
        }
        let shown = |value: &Value| value.text().unwrap_or("absent").trim().to_owned();
        match state {
            State::Same { .. } => seen.compared += 1,
            State::Change { from, to, when: When::Now, .. } => {
                seen.compared += 1;
                seen.differing.push(Differing {
                    setting: knob.to_string(),
                    shows: shown(from),
                    asked: shown(to),
                    at: wish.origin.to_string(),
                });
            }
            State::Cannot { fault: Fault::Reading, .. } => {
                if let Err(error) = zenkai_host::value(host, knob) {
                    seen.unread.push(Unread::new(knob.to_string(), &Reason::of(&error)));
                }
            }
            _ => {}
        }
    }
    seen
}

/// What could not be looked at is no success. What only a living process holds cannot be looked at, and is a success
/// only beside something that could.
fn verdict(plan: &Plan) -> Exit {
    let (mut known, mut unknown, mut held) = (0, 0, 0);
    for step in &plan.steps {
        match Verdict::of(step) {
            Some(Verdict::Differs) => return Exit::Findings,
            Some(Verdict::Unknown) if step.state == State::Hold => held += 1,
            Some(Verdict::Unknown) => unknown += 1,
            Some(_) => known += 1,
            None => {}
        }
    }
    if unknown > 0 || (held > 0 && known == 0) { Exit::PartlyUnreadable } else { Exit::Fine }
}

fn active(args: &Common, out: &mut dyn Write) -> Result<Exit, CommandError> {
    let host = args.host.open()?;
    let state = profile::State::read(&*host).map_err(CommandError::usage)?;
    let mode = state.effective_mode().word();
    if args.json {
        let value = serde_json::json!({
            "schema": "zenkai.active/1",
            "names": state.active,
            "mode": mode,
            "post_loaded": state.post_loaded,
        });
        output::write_json(out, &value)?;
        return Ok(Exit::Fine);
    }
    let names = if state.active.is_empty() { "none".to_owned() } else { state.active.join(" ") };
    let mut rows = vec![vec!["profile".to_owned(), names], vec!["mode".to_owned(), mode.to_owned()]];
    rows.extend(state.post_loaded.map(|name| vec!["post-loaded".to_owned(), name]));
    output::write_blocks(out, &[zenkai_report::Block::Table(rows)])?;
    Ok(Exit::Fine)
}

fn recommended(args: &Common, out: &mut dyn Write) -> Result<Exit, CommandError> {
    let host = args.host.open()?;
    let found = recommend(&*host).map_err(CommandError::usage)?;
    let origin = found.origin.map(|origin| origin.to_string());
    if args.json {
        let value = serde_json::json!({
            "schema": "zenkai.recommend/1",
            "profile": found.profile,
            "origin": origin,
            "notes": serde_json::to_value(&found.notes)?,
        });
        output::write_json(out, &value)?;
        return Ok(Exit::Fine);
    }
    let why = origin.map_or_else(|| "no rule matched".to_owned(), |origin| format!("by {origin}"));
    let mut blocks = vec![zenkai_report::Block::Text(format!("{} ({why})", found.profile))];
    blocks.extend(
        found.notes.iter().map(|note| zenkai_report::Block::Text(format!("{}: {}", note.origin, note.text))),
    );
    output::write_blocks(out, &blocks)?;
    Ok(Exit::Fine)
}
