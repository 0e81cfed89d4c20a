//! What a journal says.

use std::collections::{HashMap, HashSet};

use serde::{Deserialize, Serialize};
use zenkai_host::{Act, Knob, Value};

use super::TransactionError;

/// The format of journals that this program writes and reads.
pub(super) const SCHEMA: u32 = 1;

/// What a transaction is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// It takes the place of the active profile.
    Profile,
    /// It ends the active profile.
    Off,
    /// It changes something beside the profile, such as a finding's remedy.
    Fix,
    /// It enters an arm of an experiment, and is undone when the experiment leaves the arm or dies.
    Trial {
        /// Whether it stands in for the active profile, or comes on top of it.
        instead_of_profile: bool,
    },
    /// It undoes another transaction.
    Undo {
        /// Which.
        of: u64,
    },
}

/// The first record.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) struct Begin {
    pub(super) schema: u32,
    pub(super) boot_id: String,
    pub(super) kind: Kind,
    pub(super) label: String,
    pub(super) names: Vec<String>,
    /// Seconds since 1970.
    pub(super) time: u64,
    pub(super) command: String,
}

/// A knob that is turned.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Turn {
    pub(super) knob: Knob,
    pub(super) from: Value,
    pub(super) to: Value,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) alternatives: Vec<String>,
    /// What it showed before any active profile turned it.
    pub(super) base: Value,
    /// It is put back rather than tuned: it may need several rounds, and it is not held afterwards.
    pub(super) back: bool,
}

/// Something that is run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Run {
    pub(super) act: Act,
    pub(super) undo: Option<Act>,
    /// It ends what an earlier transaction started.
    pub(super) back: bool,
}

/// One thing done, in order.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Deed {
    Turn(Turn),
    Run(Run),
}

/// A knob that may move by itself when another is turned.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Save {
    pub(super) knob: Knob,
    pub(super) from: Value,
    pub(super) base: Value,
}

/// A knob that the active profile held, and that the next one wants as it is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Kept {
    pub(super) knob: Knob,
    pub(super) base: Value,
    pub(super) left: Value,
}

/// One line.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Record {
    Begin(Begin),
    Deed(Deed),
    Save(Save),
    Kept(Kept),
    /// Everything above is on disk; from here on the machine may be changed.
    Prepared,
    /// The deed of this number, counted from 0, is about to be done.
    Doing(usize),
    /// The knob shows something else than what was written.
    Left {
        knob: Knob,
        value: Value,
    },
    /// The kernel refused; the knob was left alone.
    Refused(Knob),
    /// It could not be put back, and shows this.
    Stuck {
        what: String,
        knob: Option<Knob>,
        shows: Value,
        why: String,
    },
    End(End),
}

/// How a transaction ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum End {
    /// Everything was done.
    Done,
    /// The refused part is missing.
    Partly,
    /// Everything was put back.
    RolledBack {
        /// Why.
        why: String,
    },
    /// It was cut short by a reboot.
    Lost,
    /// It was to be put back, and something could not be; the next undo or off tries again.
    NeedsAttention {
        /// Why it was put back.
        why: String,
    },
}

/// A journal as read.
#[derive(Debug, Clone)]
pub(super) struct Journal {
    pub(super) id: u64,
    pub(super) begin: Begin,
    pub(super) deeds: Vec<Deed>,
    pub(super) saves: Vec<Save>,
    /// The knobs of the plan, also those that were right already. Known only while it is carried out.
    pub(super) wanted: Vec<Knob>,
    pub(super) kept: Vec<Kept>,
    pub(super) prepared: bool,
    /// The deeds that were announced one by one.
    pub(super) doing: HashSet<usize>,
    /// The latest of them, as long as what came of it is not recorded.
    pub(super) in_doubt: Option<usize>,
    pub(super) left: HashMap<Knob, Value>,
    pub(super) refused: HashSet<Knob>,
    /// What could not be put back, and what it shows.
    pub(super) stuck: HashMap<Knob, Value>,
    /// The acts that could not be undone, by the name of what undoes them.
    pub(super) stuck_acts: HashSet<String>,
    pub(super) end: Option<End>,
    /// How many bytes make whole records.
    pub(super) length: usize,
}

impl Journal {
    pub(super) fn new(id: u64, begin: Begin) -> Self {
        Self {
            id,
            begin,
            deeds: Vec::new(),
            saves: Vec::new(),
            wanted: Vec::new(),
            kept: Vec::new(),
            prepared: false,
            doing: HashSet::new(),
            in_doubt: None,
            left: HashMap::new(),
            refused: HashSet::new(),
            stuck: HashMap::new(),
            stuck_acts: HashSet::new(),
            end: None,
            length: 0,
        }
    }

    /// Reads a journal. Its last line may be cut short: we died in the middle of it. `None` when not even the first
    /// record is whole, so that nothing was begun.
    pub(super) fn parse(id: u64, path: &str, bytes: &[u8]) -> Result<Option<Self>, TransactionError> {
        let mut journal: Option<Self> = None;
        let mut length = 0;
        for (line, text) in bytes.split_inclusive(|byte| *byte == b'\n').enumerate() {
            let corrupt = |why: &dyn ToString| TransactionError::corrupt(path, line + 1, why.to_string());
            let Some(text) = text.strip_suffix(b"\n") else { break };
            let record = serde_json::from_slice(text).map_err(|error| corrupt(&error))?;
            length += text.len() + 1;
            match (&mut journal, record) {
                (None, Record::Begin(begin)) if begin.schema == SCHEMA => {
                    journal = Some(Self::new(id, begin));
                }
                (None, Record::Begin(_)) => return Err(corrupt(&"written by another version of zenkai")),
                (None, _) => return Err(corrupt(&"a journal starts with its `begin` record")),
                (Some(journal), record) => journal.add(record).map_err(|why| corrupt(&why))?,
            }
        }
        Ok(journal.map(|journal| Self { length, ..journal }))
    }

    fn add(&mut self, record: Record) -> Result<(), &'static str> {
        if self.end.is_some() {
            return Err("a record after the end");
        }
        let preparing =
            matches!(record, Record::Deed(_) | Record::Save(_) | Record::Kept(_) | Record::Prepared);
        if preparing == self.prepared && !matches!(record, Record::End(_)) {
            return Err("a record out of order");
        }
        match record {
            Record::Begin(_) => return Err("a second `begin` record"),
            Record::Deed(deed) => self.deeds.push(deed),
            Record::Save(save) => self.saves.push(save),
            Record::Kept(kept) => self.kept.push(kept),
            Record::Prepared => self.prepared = true,
            Record::Doing(nth) if nth >= self.deeds.len() => return Err("a deed that was not announced"),
            Record::Doing(nth) => self.announce(nth),
            Record::Left { knob, value } => self.note_left(knob, value),
            Record::Refused(knob) => {
                self.refused.insert(knob);
            }
            Record::Stuck { knob: Some(knob), shows, .. } => {
                self.stuck.insert(knob, shows);
            }
            Record::Stuck { what, .. } => {
                self.stuck_acts.insert(what);
            }
            Record::End(end) => self.end = Some(end),
        }
        Ok(())
    }

    /// Everything that is written before the machine is touched.
    pub(super) fn block(&self) -> Vec<u8> {
        let mut out = line(&Record::Begin(self.begin.clone()));
        self.deeds.iter().for_each(|deed| out.extend(line(&Record::Deed(deed.clone()))));
        self.saves.iter().for_each(|save| out.extend(line(&Record::Save(save.clone()))));
        self.kept.iter().for_each(|kept| out.extend(line(&Record::Kept(kept.clone()))));
        out.extend(line(&Record::Prepared));
        out
    }

    /// The deed of this number is done next.
    pub(super) fn announce(&mut self, nth: usize) {
        self.doing.insert(nth);
        self.in_doubt = Some(nth);
    }

    /// The knob shows something else than what was written.
    pub(super) fn note_left(&mut self, knob: Knob, value: Value) {
        if self.begun().any(|(nth, turn)| Some(nth) == self.in_doubt && turn.knob == knob) {
            self.in_doubt = None;
        }
        self.left.insert(knob, value);
    }

    /// The knobs that were begun to be turned, with their number.
    pub(super) fn begun(&self) -> impl Iterator<Item = (usize, &Turn)> {
        self.deeds.iter().enumerate().filter(|(nth, _)| self.doing.contains(nth)).filter_map(|(nth, deed)| {
            match deed {
                Deed::Turn(turn) => Some((nth, turn)),
                Deed::Run(_) => None,
            }
        })
    }

    /// The knobs it turns, in order.
    pub(super) fn turns(&self) -> impl DoubleEndedIterator<Item = &Turn> {
        self.deeds.iter().filter_map(|deed| match deed {
            Deed::Turn(turn) => Some(turn),
            Deed::Run(_) => None,
        })
    }

    /// Whether what it did is in force, unless it was undone.
    pub(super) fn counts(&self) -> bool {
        matches!(self.end, Some(End::Done | End::Partly))
    }

    /// Whether it is a change that should be gone and is not wholly.
    pub(super) fn lingers(&self) -> bool {
        matches!(self.end, Some(End::NeedsAttention { .. })) && !matches!(self.begin.kind, Kind::Undo { .. })
    }

    /// What the knob showed when the transaction was done.
    pub(super) fn left<'a>(&'a self, knob: &Knob, otherwise: &'a Value) -> &'a Value {
        self.left.get(knob).unwrap_or(otherwise)
    }

    /// Whether it turned, keeps or may have moved the knob.
    pub(super) fn touches(&self, knob: &Knob) -> bool {
        self.turns().any(|turn| turn.knob == *knob && !self.refused.contains(knob))
            || self.kept.iter().any(|kept| kept.knob == *knob)
    }
}

/// One record as a line. Strings, numbers and lists are all there is in it, so this cannot fail.
pub(super) fn line(record: &Record) -> Vec<u8> {
    let mut line = serde_json::to_vec(record).unwrap_or_default();
    line.push(b'\n');
    line
}

/// One name for a knob: a sysctl is its file.
pub(super) fn canonical(knob: &Knob) -> Knob {
    match (knob, knob.path()) {
        (Knob::Sysctl(_), Some(path)) => Knob::Attribute(path),
        _ => knob.clone(),
    }
}
