//! `bisect.json`: what a search is about, written before its first experiment.

use std::{io::Write, os::unix::fs::OpenOptionsExt as _, path::Path};

use anyhow::anyhow;
use serde::{Deserialize, Serialize};
use zenkai_host::{Host, LiveHost};
use zenkai_measure::{bisect::Settings, experiment::Plan};

use super::toggles::Sides;
use crate::cli::{CommandError, compare, experiment::read_small};

const SCHEMA: &str = "zenkai.bisect/1";
pub(super) const FILE: &str = "bisect.json";

/// What is laid down.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Laid {
    schema: String,
    pub(super) sides: Sides,
    /// The plan of each experiment, but for arms, seed and looks.
    pub(super) plan: Plan,
    /// Most pairs of an experiment that says something about settings.
    pairs: usize,
    /// How long a run took, in seconds.
    pub(super) run_s: f64,
    /// What the machine was booted with: name and what it showed.
    #[serde(default)]
    system: Vec<(String, String)>,
}

/// What is not toggled, and would make later runs another machine's.
const SYSTEM: [(&str, &str); 3] = [
    ("kernel", "/proc/sys/kernel/osrelease"),
    ("kernel arguments", "/proc/cmdline"),
    ("CPUs online", "/sys/devices/system/cpu/online"),
];

fn system(host: &dyn Host) -> Vec<(String, String)> {
    let shown = |(name, path): (&str, &str)| {
        let text = host.read(path).ok()?;
        Some((name.to_owned(), String::from_utf8_lossy(&text).trim().to_owned()))
    };
    SYSTEM.into_iter().filter_map(shown).collect()
}

impl Laid {
    pub(super) fn new(sides: Sides, plan: Plan, run_s: f64) -> Self {
        let pairs = plan.rule.looks.last().copied().unwrap_or_default();
        let system = system(&LiveHost);
        Self { schema: SCHEMA.to_owned(), sides, plan, pairs, run_s, system }
    }

    /// What of the machine is not as it was when the search was laid down, for the user.
    pub(super) fn changed(&self, host: &dyn Host) -> Vec<String> {
        let now = system(host);
        let shown = |name: &str| now.iter().find(|(other, _)| other == name).map(|(_, shown)| shown.as_str());
        let moved = |(name, then): &(String, String)| match shown(name) {
            Some(now) if now == then => None,
            now => Some(format!("{name}: {then} then, {} now", now.unwrap_or("unknown"))),
        };
        self.system.iter().filter_map(moved).chain(self.sides.changed(host)).collect()
    }

    pub(super) fn settings(&self) -> Settings {
        Settings { toggles: self.sides.toggles.len(), rho: self.plan.rule.rho, cap: self.pairs }
    }

    pub(super) fn write(&self, dir: &Path) -> Result<(), CommandError> {
        let path = dir.join(FILE);
        let failed = |error: std::io::Error| match error.kind() {
            std::io::ErrorKind::AlreadyExists => {
                CommandError::usage(anyhow!("{} has been used for a search already", dir.display()))
                    .hint(format!("{}, or another directory with --out", compare::resume("bisect", dir)))
            }
            _ => anyhow::Error::new(error).context(path.display().to_string()).into(),
        };
        compare::make_dir(dir)?;
        let text = serde_json::to_vec_pretty(self)?;
        let file = std::fs::OpenOptions::new().write(true).create_new(true).mode(0o644).open(&path);
        file.and_then(|mut file| file.write_all(&text).and_then(|()| file.sync_all())).map_err(failed)
    }

    pub(super) fn read(dir: &Path) -> Result<Self, CommandError> {
        let path = dir.join(FILE);
        let wrong = |why: String| {
            CommandError::usage(anyhow!("{}: {why}", path.display()))
                .hint("give the directory that `zenkai bisect` named when it began")
        };
        let bytes = read_small(&path).map_err(|error| wrong(error.to_string()))?;
        let laid: Self = serde_json::from_slice(&bytes).map_err(|error| wrong(error.to_string()))?;
        if laid.schema != SCHEMA {
            return Err(wrong(format!("{:?} is not {SCHEMA}: use the program that wrote it", laid.schema)));
        }
        Ok(laid)
    }
}
