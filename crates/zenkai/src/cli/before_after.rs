//! `zenkai report --before A --after B`: two recordings of one workload on one axis.

use std::{
    collections::BTreeMap,
    io::{self, Write},
    path::{Path, PathBuf},
};

use anyhow::anyhow;
use zenkai_host::Capture;
use zenkai_measure::{
    experiment::{
        Comparison, JoinError, Joined, Plan, SideOf, Store, Trial, join, look_apart, settled_blocks,
    },
    explain::{About, Explanation, explain_apart},
};
use zenkai_report::{BeforeAfter, Detail, Experiment, TimeSeries};

use super::{
    CommandError,
    diff::TwoMachines,
    experiment::{read_small, unreadable},
    labels, output,
    record::CAPTURE,
    recordings::Recordings,
    report::Format,
};

/// One recording as read.
struct Side {
    /// What the user calls it.
    name: String,
    dir: PathBuf,
    plan: Plan,
    trials: Vec<Trial>,
}

impl Side {
    fn open(name: &str) -> Result<Self, CommandError> {
        let dir = labels::find_recording(name)?;
        let (plan, all) = Store::read(&dir).map_err(|error| unreadable(&dir, error))?;
        let settled = settled_blocks(&plan, &all).map_err(|error| {
            CommandError::usage(anyhow!("{}: {error}", dir.display()))
                .hint("the files of a recording belong together: copy the whole directory")
        })?;
        // Of a block that was spoilt and run again only the last attempt counts.
        let trials: Vec<Trial> = settled.into_iter().flatten().cloned().collect();
        Ok(Self { name: name.to_owned(), dir, plan, trials })
    }

    fn of(&self) -> SideOf<'_> {
        SideOf { name: &self.name, plan: &self.plan, trials: &self.trials }
    }
}

/// Both recordings, and what was found.
struct Both {
    sides: [Side; 2],
    joined: Joined,
    comparisons: [Comparison; 1],
    explanations: [Explanation; 1],
    series: Vec<TimeSeries>,
    /// What makes the two less alike, and what keeps something from being shown.
    warnings: Vec<String>,
    notes: Vec<String>,
    machines: Option<TwoMachines>,
}

impl Both {
    fn open(before: &str, after: &str) -> Result<Self, CommandError> {
        let sides = [Side::open(before)?, Side::open(after)?];
        let real = [0, 1].map(|side| sides[side].dir.canonicalize().ok());
        if real[0].is_some() && real[0] == real[1] {
            return Err(CommandError::usage(anyhow!("{before} and {after} are the same recording"))
                .hint("record again after the change, under another name"));
        }
        let joined = join(sides[0].of(), sides[1].of()).map_err(refused)?;
        let mut warnings = joined.notes.clone();
        let (series, about, notes) = recordings(&sides, &joined);
        let explanation = explain_apart(&joined.plan, &joined.trials, &about);
        let machines = machines(&sides, &mut warnings)?;
        Ok(Self {
            comparisons: [look_apart(&joined)],
            explanations: [explanation],
            sides,
            joined,
            series,
            warnings,
            notes,
            machines,
        })
    }

    fn shown(&self) -> BeforeAfter<'_> {
        let experiment = Experiment {
            dir: "",
            plan: &self.joined.plan,
            trials: &self.joined.trials,
            comparisons: &self.comparisons,
            explanations: &self.explanations,
            host: None,
            same: None,
            series: &self.series,
            confirmed: &[],
            notes: &self.notes,
            apart: true,
        };
        BeforeAfter {
            experiment,
            names: [0, 1].map(|side| self.sides[side].name.as_str()),
            laid_down: [0, 1].map(|side| self.sides[side].plan.created_unix_s),
            warnings: &self.warnings,
            states: self.machines.as_ref().map(TwoMachines::states),
        }
    }
}

fn refused(error: JoinError) -> CommandError {
    let hint = match &error {
        JoinError::Workload { .. } => "record the same command on both sides",
        JoinError::Metric { .. } => "record with the same --metric and --better on both sides",
        JoinError::NoArm(_) | JoinError::Empty(_) => "zenkai record --runs 10 --label NAME -- COMMAND",
    };
    CommandError::usage(error).hint(hint)
}

/// What was sampled on both sides, in bins of one width.
fn recordings(sides: &[Side; 2], joined: &Joined) -> (Vec<TimeSeries>, BTreeMap<String, About>, Vec<String>) {
    let (mut series, mut about, mut notes) = (Vec::new(), BTreeMap::new(), Vec::new());
    for (arm, side) in sides.iter().enumerate() {
        let found = Recordings::of_arm(&side.dir, &joined.plan, &joined.trials, arm);
        series.extend(found.series);
        about.extend(found.about);
        let name = &joined.plan.arms[arm].name;
        for note in found.notes {
            // What both sides could not measure is said once.
            let before = format!("before: {note}");
            match notes.iter_mut().find(|known| **known == before) {
                Some(known) if arm == 1 => *known = note,
                _ => notes.push(format!("{name}: {note}")),
            }
        }
    }
    (series, about, notes)
}

/// The two states of the machine, where both sides hold a capture. What is missing or damaged is noted: the numbers do
/// not need it.
fn machines(sides: &[Side; 2], warnings: &mut Vec<String>) -> Result<Option<TwoMachines>, CommandError> {
    let mut captures = Vec::new();
    for side in sides {
        match capture(&side.dir) {
            Ok(capture) => captures.push(capture),
            Err(_) if is_absent(&side.dir.join(CAPTURE)) => {
                warnings.push(format!(
                    "{} holds no capture of the machine, so what differs is not shown; `zenkai record --runs` makes \
                     one",
                    side.name
                ));
                return Ok(None);
            }
            Err(error) => {
                warnings.push(format!("{:#}; what differs is not shown", error.error));
                return Ok(None);
            }
        }
    }
    let names = [&*sides[0].name, &*sides[1].name];
    <[Capture; 2]>::try_from(captures).ok().map(|both| TwoMachines::of_captures(names, both)).transpose()
}

/// The machine's state in the directory of a recording, which may be anybody's: a named pipe does not make us wait.
pub(super) fn capture(dir: &Path) -> Result<Capture, CommandError> {
    let path = dir.join(CAPTURE);
    let bytes = read_small(&path)
        .map_err(|error| CommandError::usage(anyhow!("cannot read {}: {error}", path.display())))?;
    super::host::parse(&path, bytes)
}

fn is_absent(path: &Path) -> bool {
    path.symlink_metadata().is_err_and(|error| error.kind() == io::ErrorKind::NotFound)
}

/// The report of `before` and `after`, directories or labels.
pub(super) fn write(
    before: &str,
    after: &str,
    format: Format,
    detail: Detail,
    out: &mut dyn Write,
) -> Result<(), CommandError> {
    let both = Both::open(before, after)?;
    let report = both.shown();
    match format {
        Format::Html => out.write_all(zenkai_report::before_after_html(&report).as_bytes())?,
        Format::Text => output::write_blocks(out, &zenkai_report::before_after(&report, detail))?,
        Format::Json => output::write_json(out, &zenkai_report::before_after_json(&report)?)?,
    }
    Ok(())
}
