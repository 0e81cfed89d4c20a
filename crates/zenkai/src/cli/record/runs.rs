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
use zenkai_host::{LiveHost, RecordingHost, gauges::Interrupt};
use zenkai_measure::{
    experiment::{Finish, Plan, RunError, Store, carry_out},
    workload,
};
use zenkai_report::Experiment;

use crate::cli::{
    CommandError, Exit,
    compare::{self, ArmSpec, Direction, LiveArm, LiveStage, Teller},
    labels, output, sysctls,
};

/// The capture of the machine in the directory of a recording.
pub(in crate::cli) const CAPTURE: &str = "machine.capture";

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
        let interrupt = Interrupt::watch()?;
        let arms = vec![LiveArm { spec: ArmSpec::now(), workload: workload::prepare(command) }];
        let choice = compare::choice(self.metric.as_deref(), &arms)?;
        let (metric, better) = compare::metric(&choice, arms.first(), self.better)?;
        let now = compare::now_unix_s();
        let mut plan = Plan::recording(command.to_vec(), metric, better, now, usize::from(runs));
        plan.timeout_s = self.timeout.map(|timeout| timeout.as_secs_f64());
        (plan.sample_s, plan.created_unix_s) = (Some(interval.as_secs_f64()), now);
        let dir = match &self.label {
            Some(label) => labels::make_recording(label)?,
            None => compare::directory(self.out.as_ref(), "record", now)?,
        };
        let mut store = compare::create(&dir, plan)?;
        keep_capture(&dir)?;
        let mut stage = LiveStage::new(None, arms, choice, &interrupt);
        stage.ready(&store.plan, &store.trials, &dir);
        let mut teller = Teller::new(store.plan.clone(), 0, err);
        teller.keep(&format!("{runs} runs, kept in {}", dir.display()));
        let finish = carry_out(&mut store, &mut stage, &mut |progress| teller.tell(progress));
        teller.end();
        if store.trials.is_empty() && self.label.is_some() {
            // Else a mistyped command would take the label.
            std::fs::remove_dir_all(&dir).with_context(|| dir.display().to_string())?;
        }
        self.told(finish, &store, &dir, json, out, err)
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
        let exit = match finish {
            Ok(Finish::Done(_)) => Exit::Fine,
            Ok(Finish::Interrupted) => {
                writeln!(err, "interrupted; {count} runs are kept")?;
                Exit::Interrupted
            }
            Err(error) => {
                if count > 0 {
                    writeln!(err, "{count} runs are kept in {}", dir.display())?;
                }
                return Err(match error {
                    RunError::NothingWorks(why) => CommandError::usage(anyhow!("the command fails: {why}")),
                    error => CommandError::usage(error),
                });
            }
        };
        if count == 0 {
            return Ok(exit);
        }
        let shown = dir.display().to_string();
        let name = self.label.as_deref().unwrap_or(&shown);
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
