//! `zenkai record --runs N`: a workload measured several times as the machine is, to be put beside another recording.

use std::{
    fs::OpenOptions,
    io::Write,
    os::unix::fs::OpenOptionsExt as _,
    path::{Path, PathBuf},
    time::Duration,
};

use anyhow::{Context as _, anyhow};
use serde_json::json;
use zenkai_host::{FakeHost, Host, LiveHost, RecordingHost, gauges::Interrupt};
use zenkai_measure::{
    experiment::{Finish, Plan, RunError, Store, carry_out, settled_blocks},
    metric::Choice,
    workload,
};
use zenkai_report::Experiment;

use crate::cli::{
    CommandError, Exit, before_after,
    compare::{self, ArmSpec, Direction, LiveArm, LiveStage, Teller},
    labels, output, sysctls,
};

/// The capture of the machine in the directory of a recording.
pub(in crate::cli) const CAPTURE: &str = "machine.capture";

/// What no run of a recording may differ in from another.
const BOOTED: [(&str, &str); 2] =
    [("kernel", "/proc/sys/kernel/osrelease"), ("CPUs online", "/sys/devices/system/cpu/online")];

/// Over the options that go with `--runs`.
const HEADING: &str = "Several measured runs, before a change and after it";

/// The options of a recording of several runs.
#[derive(Debug, clap::Args)]
pub(super) struct Several {
    /// Run the command so many times, measure each run, and keep all of it with a capture of the machine, for
    /// `zenkai report --before A --after B`
    #[arg(
        long,
        value_name = "N",
        help_heading = HEADING,
        requires = "command",
        conflicts_with_all = ["time", "output", "live", "cgroup", "pid", "cpu", "show", "all"],
        value_parser = clap::value_parser!(u16).range(4..=1_000)
    )]
    pub(super) runs: Option<u16>,
    /// Go on with the recording of a label or in a directory that was interrupted
    #[arg(
        long,
        value_name = "NAME",
        help_heading = HEADING,
        conflicts_with_all = ["runs", "time", "interval", "output", "live", "cgroup", "pid", "cpu", "show", "all", "command"]
    )]
    pub(super) resume: Option<String>,
    /// Keep it on this machine under a name
    #[arg(long, value_name = "NAME", help_heading = HEADING, requires = "runs")]
    label: Option<String>,
    /// Keep it in this directory [default: zenkai-record-DATE in this directory]
    #[arg(long, value_name = "DIR", help_heading = HEADING, requires = "runs", conflicts_with = "label")]
    out: Option<PathBuf>,
    /// The number that is measured, as in `zenkai compare` [default: the tool's own, else time]
    #[arg(long, help_heading = HEADING, requires = "runs")]
    metric: Option<String>,
    /// Which direction is better [default: what the metric says]
    #[arg(long, value_enum, help_heading = HEADING, requires = "runs")]
    better: Option<Direction>,
    /// A run that takes longer has failed: 30s, 5m
    #[arg(long, value_name = "TIME", help_heading = HEADING, requires = "runs", value_parser = crate::cli::time::duration)]
    timeout: Option<Duration>,
}

impl Several {
    /// Measures `command`, sampling the machine every `interval`.
    pub(super) fn carry_out(
        &self,
        runs: u16,
        command: &[String],
        interval: Duration,
        json: bool,
        out: &mut dyn Write,
        err: &mut dyn Write,
    ) -> Result<Exit, CommandError> {
        if let Some(label) = &self.label {
            // Before the machine is looked at.
            labels::check(label)?;
        }
        let (arms, choice) = prepared(command, self.metric.as_deref())?;
        let (metric, better) = compare::metric(&choice, arms.first(), self.better)?;
        let now = compare::now_unix_s();
        let mut plan = Plan::recording(command.to_vec(), metric, better, now, usize::from(runs));
        plan.timeout_s = self.timeout.map(|timeout| timeout.as_secs_f64());
        (plan.sample_s, plan.created_unix_s) = (Some(interval.as_secs_f64()), now);
        // Before anything is made that a signal could leave behind.
        let interrupt = Interrupt::watch()?;
        let dir = match &self.label {
            Some(label) => labels::make_recording(label)?,
            None => compare::directory(self.out.as_ref(), "record", now)?,
        };
        let store = compare::create(&dir, plan)?;
        keep_capture(&dir)?;
        self.measure(store, &dir, (arms, choice, &interrupt), json, out, err)
    }

    /// Goes on with the recording of this label or in this directory. Without `--resume` a label that is taken is refused:
    /// who types the same command after a change means another recording.
    pub(super) fn go_on(
        &self,
        name: &str,
        json: bool,
        out: &mut dyn Write,
        err: &mut dyn Write,
    ) -> Result<Exit, CommandError> {
        let dir = compare::trusted_experiment(&labels::find_recording(name)?)?;
        let store = Store::open(&dir)?;
        if store.plan.arms.len() != 1 {
            return Err(CommandError::usage(anyhow!("{} is no recording", dir.display()))
                .hint(compare::resume("compare", &dir)));
        }
        let changed = changed(&dir);
        if !changed.is_empty() {
            return Err(CommandError::usage(anyhow!(
                "this machine is not as it was when the recording began, so new runs would not fit the old ones: {}",
                compare::visible(&changed.join("; "))
            ))
            .hint("zenkai record --runs N --label ANOTHER -- COMMAND"));
        }
        let metric = &store.plan.metric;
        let (arms, choice) =
            prepared(&store.plan.workload, Some(metric.pattern.as_deref().unwrap_or(&metric.name)))?;
        let interrupt = Interrupt::watch()?;
        if store.trials.is_empty() && !dir.join(CAPTURE).try_exists()? {
            // It was ended in between.
            keep_capture(&dir)?;
        }
        self.measure(store, &dir, (arms, choice, &interrupt), json, out, err)
    }

    fn measure(
        &self,
        mut store: Store,
        dir: &Path,
        (arms, choice, interrupt): (Vec<LiveArm>, Choice, &Interrupt),
        json: bool,
        out: &mut dyn Write,
        err: &mut dyn Write,
    ) -> Result<Exit, CommandError> {
        let mut stage = LiveStage::new(None, arms, choice, interrupt);
        stage.ready(&store.plan, &store.trials, dir);
        let runs = store.plan.rule.looks.last().copied().unwrap_or_default();
        let mut teller = Teller::new(store.plan.clone(), &store.trials, err);
        let done = settled_blocks(&store.plan, &store.trials).map_or(0, |blocks| blocks.len());
        let there = if done > 0 { format!(", {done} of them there already") } else { String::new() };
        teller.keep(&format!("{runs} runs, kept in {}{there}", dir.display()));
        let finish = carry_out(&mut store, &mut stage, &mut |progress| teller.tell(progress));
        teller.end();
        if store.trials.is_empty() && self.label.is_some() {
            // Else a mistyped command would take the label.
            std::fs::remove_dir_all(dir).with_context(|| dir.display().to_string())?;
        }
        self.told(finish, &store, dir, json, out, err)
    }

    fn told(
        &self,
        finish: Result<Finish, RunError>,
        store: &Store,
        dir: &Path,
        json: bool,
        out: &mut dyn Write,
        err: &mut dyn Write,
    ) -> Result<Exit, CommandError> {
        let count = store.trials.len();
        let shown = dir.display().to_string();
        let name = self.label.as_deref().or(self.resume.as_deref()).unwrap_or(&shown);
        let resume = compare::resume("record", Path::new(name));
        let exit = match finish {
            Ok(Finish::Done(_)) => Exit::Fine,
            Ok(Finish::Interrupted) => {
                writeln!(err, "interrupted; {count} runs are kept")?;
                if count > 0 {
                    writeln!(err, "to go on: {resume}")?;
                }
                Exit::Interrupted
            }
            Err(error) => {
                let error = match error {
                    RunError::NothingWorks(why) => CommandError::usage(anyhow!("the command fails: {why}")),
                    error => CommandError::usage(error),
                };
                if count == 0 {
                    return Err(error);
                }
                writeln!(err, "{count} runs are kept in {shown}")?;
                return Err(error.hint(resume));
            }
        };
        if count == 0 {
            return Ok(exit);
        }
        let experiment = Experiment::recording(&shown, &store.plan, &store.trials);
        if json {
            let mut value = zenkai_report::recording_json(&experiment);
            value["name"] = json!(name);
            output::write_json(out, &value)?;
        } else {
            output::write_blocks(out, &zenkai_report::recording(&experiment))?;
        }
        writeln!(
            err,
            "zenkai: kept as {shown}; after the change record again, then\n  zenkai report --before {name} --after \
             ANOTHER"
        )?;
        Ok(exit)
    }
}

/// The machine as it is, with the workload, and the number that is measured.
fn prepared(command: &[String], metric: Option<&str>) -> Result<(Vec<LiveArm>, Choice), CommandError> {
    let arms = vec![LiveArm { spec: ArmSpec::now(), workload: workload::prepare(command) }];
    let choice = compare::choice(metric, &arms)?;
    Ok((arms, choice))
}

/// What the machine was booted with, where that is not as in the recording's capture. A capture that is missing or damaged
/// says nothing; reports tell that.
fn changed(dir: &Path) -> Vec<String> {
    let Ok(then) = before_after::capture(dir).map(FakeHost::from_capture) else { return Vec::new() };
    let shown = |host: &dyn Host, path: &str| {
        host.read(path).ok().map(|text| String::from_utf8_lossy(&text).trim().to_owned())
    };
    let moved = |(name, path): (&str, &str)| {
        let (then, now) = (shown(&then, path)?, shown(&LiveHost, path)?);
        (then != now).then(|| format!("{name}: {then} then, {now} now"))
    };
    BOOTED.into_iter().filter_map(moved).collect()
}

/// What the machine is now, beside the trials.
fn keep_capture(dir: &Path) -> Result<(), CommandError> {
    let host = RecordingHost::new(LiveHost);
    zenkai_facts::observe(&host);
    sysctls::record(host.inner(), &host);
    let text = host.into_capture().anonymised().to_text();
    let path = dir.join(CAPTURE);
    let file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&path);
    file.and_then(|mut file| file.write_all(text.as_bytes()).and_then(|()| file.sync_all()))
        .with_context(|| path.display().to_string())?;
    Ok(())
}
