//! A recording that is being made.

use std::{
    fs::File,
    io::{self, Write},
    time::{Duration, Instant},
};

use anyhow::anyhow;
use zenkai_host::{
    gauges::{Happened, Interrupt, Sent, wait},
    workload::{Ended, Ran},
};
use zenkai_measure::sampler::{Live, Recording, Sampler};

use super::{command::Command, live};
use crate::cli::{
    CommandError, Exit,
    compare::{stuck, visible},
};

/// How often the newest samples are shown.
const SHOWN: Duration = Duration::from_secs(1);
/// How often they are written to the file where they are not shown: to wake up for that costs a fifth of taking them.
const WRITTEN: Duration = Duration::from_secs(5);

/// Samples on their way to the file or into memory.
pub(super) struct Session<'a> {
    pub(super) interrupt: &'a Interrupt,
    pub(super) sampler: Sampler,
    /// When to end, counted from the start.
    pub(super) time: Option<Duration>,
    /// Where lines are shown: the values so far.
    pub(super) live: Option<Live>,
    pub(super) kept: Kept<'a>,
}

/// Where samples go.
pub(super) enum Kept<'a> {
    Memory(Vec<u8>),
    File(&'a mut File),
    /// The file could not be written on.
    Lost(io::Error),
}

impl Kept<'_> {
    /// A record that was only half written is no harm: its checksum tells.
    fn put(&mut self, piece: &[u8]) {
        let written = match self {
            Self::Memory(body) => {
                body.extend_from_slice(piece);
                return;
            }
            Self::File(file) => file.write_all(piece),
            Self::Lost(_) => return,
        };
        if let Err(error) = written {
            *self = Self::Lost(error);
        }
    }

    fn is_lost(&self) -> bool {
        matches!(self, Self::Lost(_))
    }
}

/// What ended a recording.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Over {
    /// The command did.
    Command,
    /// Its time is over, or nothing can be written any more.
    Time,
    /// Somebody asked for it.
    Signal,
    /// The same, and the command could not be ended.
    LeftBehind,
}

impl<'a> Session<'a> {
    /// Records until the command ends, the time is over or somebody wants it to end. A full disk ends a recording, not
    /// the command. Gives what was kept, and how the command ended.
    pub(super) fn follow(
        mut self,
        mut command: Option<Command>,
        out: &mut dyn Write,
        err: &mut dyn Write,
    ) -> Result<(Kept<'a>, Over, Option<Ran>), CommandError> {
        let start = Instant::now();
        let step = if self.live.is_some() { SHOWN } else { WRITTEN };
        let mut lines = 0;
        let mut over = loop {
            let next = step * (lines + 1);
            let end = self.time.unwrap_or(Duration::MAX);
            let left = next.min(end).saturating_sub(start.elapsed());
            let happened = wait(self.interrupt, command.as_ref().map(|command| &command.process), left)?;
            let mut over = self.over(happened, command.is_some());
            let ends = start.elapsed() >= end;
            if start.elapsed() >= next || ends || over.is_some() {
                lines += 1;
                self.keep();
            }
            if over.is_none() && (ends || self.kept.is_lost() && command.is_none()) {
                over = Some(Over::Time);
            }
            if let Some(over) = over {
                break over;
            }
            if let Some(live) = &self.live {
                live::line(&live.values(), lines - 1, out)?;
            }
        };
        if let Some(command) = command.as_mut().filter(|_| over != Over::Command) {
            self.end(command, err)?;
        }
        let rest = self.sampler.stop().to_bytes().split_off(Recording::mark().len());
        self.kept.put(&rest);
        let ran = match command.map(Command::finish).transpose() {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {
                over = Over::LeftBehind;
                None
            }
            ran => ran?,
        };
        Ok((self.kept, over, ran))
    }

    fn over(&self, happened: Happened, has_command: bool) -> Option<Over> {
        match happened {
            Happened::Nothing => None,
            Happened::Ended => Some(Over::Command),
            // Ctrl-C reached the command too, which may well take it for something else than its end.
            Happened::Signal => match self.interrupt.take() {
                Some(Sent::ByTerminal) if has_command => None,
                taken => taken.map(|_| Over::Signal),
            },
        }
    }

    /// Takes over what was recorded since the last time.
    fn keep(&mut self) {
        let piece = self.sampler.take();
        if let Some(live) = &mut self.live {
            live.feed(&piece);
        }
        self.kept.put(&piece);
    }

    /// Ends the command, which is sampled until then, or leaves it behind.
    fn end(&self, command: &mut Command, err: &mut dyn Write) -> io::Result<()> {
        command.end();
        let mut is_stuck = false;
        loop {
            match wait(self.interrupt, Some(&command.process), SHOWN)? {
                Happened::Ended => return Ok(()),
                Happened::Nothing => {}
                Happened::Signal => {
                    self.interrupt.take();
                    if is_stuck {
                        command.end();
                        return Ok(());
                    }
                    // It ends already; more cannot be asked for.
                }
            }
            if let Some(why) = command.stuck() {
                is_stuck = true;
                writeln!(err, "{}", visible(&stuck(&why)))?;
            }
        }
    }
}

/// How `record` ends: as the command did, whose exit code is ours.
pub(super) fn exit(over: Over, ran: Option<&Ran>, err: &mut dyn Write) -> io::Result<Exit> {
    let Some(ran) = ran else {
        return Ok(if over == Over::LeftBehind { Exit::Interrupted } else { Exit::Fine });
    };
    match (ran.ended, over) {
        (Ended::Exited(0), _) => {}
        (Ended::Exited(code), Over::Command) => {
            writeln!(err, "zenkai: the command ended with exit code {code}")?;
            return Ok(Exit::Command(u8::try_from(code).unwrap_or(1)));
        }
        (Ended::Signalled(signal), Over::Command) => {
            writeln!(err, "zenkai: the command was ended by signal {signal}")?;
            return Ok(Exit::Command(u8::try_from(128 + signal).unwrap_or(1)));
        }
        (_, Over::Signal) => return Ok(Exit::Interrupted),
        _ => writeln!(
            err,
            "zenkai: the time was over after {:.1} s, so the command was ended",
            ran.elapsed.as_secs_f64()
        )?,
    }
    Ok(Exit::Fine)
}

/// What was kept in memory, or that the file has it.
pub(super) fn body(kept: Kept) -> Result<Option<Recording>, CommandError> {
    match kept {
        Kept::Memory(bytes) => {
            Ok(Some(Recording::from_bytes(&bytes).map_err(|error| CommandError::usage(anyhow!(error)))?))
        }
        Kept::File(file) => file.sync_all().map(|()| None).map_err(Into::into),
        Kept::Lost(_) => Ok(None),
    }
}
