//! Which machine a read-only command looks at.

use std::{
    io::{IsTerminal, Write},
    path::{Path, PathBuf},
};

use anyhow::{Context as _, anyhow};
use zenkai_host::{
    AnsweredHost, Capture, FakeHost, Host, LiveHost, Query, Reply, RootDir,
    probe::{self, ProbeOptions},
    read_plain_file,
};

use zenkai_report::printable;

use super::{CommandError, profile};

/// The machine to look at: this one, unless told otherwise.
#[derive(Debug, Clone, Default, clap::Args)]
#[group(multiple = false)]
pub(super) struct HostArgs {
    /// Look at a capture made by `zenkai capture`
    #[arg(long, value_name = "FILE")]
    pub(super) capture: Option<PathBuf>,
    /// Look at a directory laid out like a machine's root (an unpacked sosreport, a container)
    #[arg(long, value_name = "DIR")]
    pub(super) root: Option<PathBuf>,
}

impl HostArgs {
    /// Whether this is the machine we run on.
    pub(super) fn is_live(&self) -> bool {
        self.capture.is_none() && self.root.is_none()
    }

    pub(super) fn open(&self) -> Result<Box<dyn Host>, CommandError> {
        if let Some(path) = &self.capture {
            return Ok(Box::new(FakeHost::from_capture(load(path)?)));
        }
        if let Some(path) = &self.root {
            return Ok(Box::new(root(path)?));
        }
        Ok(Box::new(LiveHost))
    }

    /// As [`HostArgs::open`], with what it takes more than looking to know: how far the active profile is in force, and
    /// the active probe when `probe` is set.
    pub(super) fn open_probed(
        &self,
        probe: bool,
        err: &mut dyn Write,
    ) -> Result<Box<dyn Host>, CommandError> {
        let host: Box<dyn Host> = match &self.capture {
            Some(path) => {
                let capture = load(path)?;
                if capture.may_be_cut() {
                    writeln!(err, "zenkai: {}: {MAY_BE_CUT}", printable(&path.to_string_lossy()))?;
                }
                Box::new(FakeHost::from_capture(capture))
            }
            None => self.open()?,
        };
        // A capture holds the answer of its machine.
        let in_force = if self.capture.is_none() { profile::in_force(&*host, self.is_live())? } else { None };
        let host = match in_force {
            Some(json) => Box::new(AnsweredHost::new(host, Query::Profile, Reply::Text(json))),
            None => host,
        };
        if !probe {
            return Ok(host);
        }
        // A progress line is for a person; a log file must not collect it.
        let shown = std::io::stderr().is_terminal();
        let mut progress = |step: &str| {
            if shown {
                let _ = write!(err, "\r\x1b[Kprobing: {step} …").and_then(|()| err.flush());
            }
        };
        let result = probe::run(&ProbeOptions::default(), &mut progress);
        if shown {
            let _ = write!(err, "\r\x1b[K");
        }
        let result = result.context("the probe could not run")?;
        let json = serde_json::to_string(&result)?;
        Ok(Box::new(AnsweredHost::new(host, Query::Probe, Reply::Text(json))))
    }
}

/// A directory that stands for a machine's `/`.
pub(super) fn root(path: &Path) -> Result<RootDir, CommandError> {
    let name = path.to_str().ok_or_else(|| CommandError::usage(anyhow!("the path is not UTF-8")))?;
    let host = RootDir::open(name).with_context(|| format!("cannot open {name} as a machine's root"))?;
    if ["/proc", "/sys", "/etc"].iter().all(|dir| host.list(dir).is_err()) {
        return Err(CommandError::usage(anyhow!("{name} holds neither proc, sys nor etc"))
            .hint("give the folder that stands for the machine's /, such as the inside of a sosreport"));
    }
    Ok(host)
}

/// What is said of a capture that has no end mark.
pub(super) const MAY_BE_CUT: &str = "made by an older zenkai, so nothing tells whether it is whole";

/// A larger file is no capture: that is far more than a machine has to tell.
const LARGEST_CAPTURE: u64 = 256 << 20;

pub(super) fn load(path: &Path) -> Result<Capture, CommandError> {
    let shown = path.display();
    let bytes = read_plain_file(path, LARGEST_CAPTURE)
        .map_err(|error| CommandError::usage(anyhow!("cannot read {shown}: {error}")))?;
    parse(path, bytes)
}

/// The capture that these bytes of the file `path` are.
pub(super) fn parse(path: &Path, bytes: Vec<u8>) -> Result<Capture, CommandError> {
    let shown = path.display();
    let again = "make the capture again with `zenkai capture -o FILE`";
    if bytes.is_empty() {
        return Err(CommandError::usage(anyhow!("{shown}: line 1: the file is empty")).hint(again));
    }
    let text = String::from_utf8(bytes).map_err(|error| {
        let good = String::from_utf8_lossy(&error.as_bytes()[..error.utf8_error().valid_up_to()]);
        let line = 1 + good.matches('\n').count();
        CommandError::usage(anyhow!("{shown}: line {line}: not UTF-8, so this is no capture")).hint(again)
    })?;
    Capture::parse(&text).map_err(|error| CommandError::usage(anyhow!("{shown}: {error}")).hint(again))
}
