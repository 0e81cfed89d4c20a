//! A plan is applied whole or not at all, and everything that is applied can be undone, from a journal that is on
//! disk before the first knob is turned.

mod error;
mod held;
mod journal;
mod prepare;
mod run;
mod store;

use std::time::Duration;

use zenkai_host::{Host, Knob, TunableHost, Value, value};

pub use error::TransactionError;
pub use held::Held;
pub use journal::{End, Kind};
pub use store::Store;

use crate::{Plan, same};
use journal::{Begin, Journal, Record, SCHEMA, canonical, line};

/// So many finished transactions are kept.
const KEEP: usize = 100;
/// Room for the records that close a journal, besides one for each deed.
const CLOSING_BYTES: usize = 4096;
const RECORD_BYTES: usize = 512;

/// What a transaction is for, as the journal and `log` tell it.
#[derive(Debug, Clone)]
pub struct Request {
    /// What it is for.
    pub kind: Kind,
    /// In a few words: `profile balanced`, `fix clock-source`, `off`.
    pub label: String,
    /// The profiles, when it is for some.
    pub names: Vec<String>,
    /// Now, in seconds since 1970.
    pub time: u64,
    /// The command line.
    pub command: String,
    /// A failed step does not take the others back.
    pub keep_going: bool,
}

/// What was done.
#[derive(Debug, Clone)]
pub struct Report {
    /// The transaction; `None` when there was nothing to do.
    pub id: Option<u64>,
    /// How it ended.
    pub end: End,
    /// What became of each knob, in order.
    pub rows: Vec<Row>,
}

/// What became of one knob or act.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Row {
    /// The knob or act, for people.
    pub what: String,
    /// The knob.
    pub knob: Option<Knob>,
    /// What it showed before.
    pub from: Value,
    /// What it was to show.
    pub to: Value,
    /// What became of it.
    pub fate: Fate,
}

/// What became of a knob.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Fate {
    /// It shows what was wanted.
    Set,
    /// The kernel made it something else.
    Adjusted {
        /// What it shows.
        shows: Value,
    },
    /// The kernel refused.
    Refused {
        /// The errno's name, or how the script ended.
        why: String,
    },
    /// Nothing was done, and that is right: it is gone, or the kernel alone decides about it.
    Skipped {
        /// Why.
        why: String,
    },
    /// It shows again what it showed before.
    Restored,
    /// It could not be put back.
    NotRestored {
        /// Why.
        why: String,
    },
    /// Somebody else, or a later transaction, has changed it since, so it was left alone.
    Kept {
        /// What it shows.
        shows: Value,
    },
}

/// The profile in force.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Active {
    /// The transaction that applied it.
    pub id: u64,
    /// The profiles.
    pub names: Vec<String>,
    /// Whether it was applied since this boot; otherwise only what is in files is still held.
    pub this_boot: bool,
}

/// One line of the log.
#[derive(Debug, Clone)]
pub struct LogEntry {
    /// Its number.
    pub id: u64,
    /// What it was for.
    pub kind: Kind,
    /// The same in words.
    pub label: String,
    /// When, in seconds since 1970.
    pub time: u64,
    /// How it ended; `None` when it was cut short and not yet recovered.
    pub end: Option<End>,
    /// How many knobs it turned.
    pub changes: usize,
    /// The transaction that undid it.
    pub undone_by: Option<u64>,
    /// Whether it is the active profile.
    pub active: bool,
}

impl Row {
    fn new(knob: &Knob, from: Value, to: Value, fate: Fate) -> Self {
        Self { what: knob.to_string(), knob: Some(knob.clone()), from, to, fate }
    }
}

/// The state directory, locked, with nothing unfinished in it. Plan while you hold one, so that nobody changes the
/// machine between planning and applying.
#[derive(Debug)]
pub struct Session<'s> {
    store: &'s Store,
    boot_id: String,
    /// What had to be put back first, because an earlier run was cut short.
    pub recovered: Option<Report>,
    _lock: store::Lock,
}

impl<'s> Session<'s> {
    /// Takes the lock, waiting for at most `wait`, and recovers from a run that was cut short.
    pub fn begin(
        host: &dyn TunableHost,
        store: &'s Store,
        command: &str,
        wait: Duration,
    ) -> Result<Self, TransactionError> {
        let lock = store.lock(command, wait)?;
        let boot_id = boot_id(host).ok_or(TransactionError::NoBootId)?;
        let recovered = recover(host, store, &boot_id)?;
        let mut session = Self { store, boot_id, recovered, _lock: lock };
        let left = session.leave_dead_trial(host)?;
        session.recovered = match (session.recovered.take(), left) {
            (Some(first), Some(then)) => Some(Report { rows: [first.rows, then.rows].concat(), ..then }),
            (first, then) => first.or(then),
        };
        Ok(session)
    }

    /// What the profile in force holds.
    pub fn held(&self) -> Result<Held, TransactionError> {
        Held::of(self.store, &self.boot_id)
    }

    /// Applies the plan, all of it or nothing.
    pub fn apply(
        &self,
        host: &dyn TunableHost,
        plan: &Plan,
        request: &Request,
    ) -> Result<Report, TransactionError> {
        let mistakes: Vec<String> = plan
            .mistakes()
            .map(|step| match &step.state {
                crate::State::Cannot { why, .. } => format!("{}: {why}", step.wish.origin),
                _ => step.wish.origin.to_string(),
            })
            .collect();
        if !mistakes.is_empty() && !request.keep_going {
            return Err(TransactionError::Mistakes(mistakes));
        }
        let (active, lingering) = match request.kind {
            Kind::Profile | Kind::Off => find_in_force(self.store)?,
            Kind::Trial { instead_of_profile: true } => (find_active(self.store)?, Vec::new()),
            Kind::Fix | Kind::Trial { .. } | Kind::Undo { .. } => (None, Vec::new()),
        };
        let stuck = lingering.iter().flat_map(|journal| prepare::stuck(journal, &self.boot_id)).collect();
        let mut journal = Journal::new(self.next_id()?, self.begin_record(request));
        let mut rows = prepare::fill(host, &mut journal, plan, active.as_ref(), stuck, &self.boot_id);
        let same_names =
            active.as_ref().map_or(request.names.is_empty(), |active| active.begin.names == request.names);
        let is_choice = matches!(request.kind, Kind::Profile | Kind::Off);
        if journal.deeds.is_empty() && (!is_choice || same_names) {
            return Ok(Report { id: None, end: End::Done, rows });
        }
        let (end, done) = self.commit(host, &mut journal, request.keep_going)?;
        rows.extend(done);
        let is_refused_trial = matches!((request.kind, &end), (Kind::Trial { .. }, End::RolledBack { .. }));
        if is_refused_trial && !rows.iter().any(|row| matches!(row.fate, Fate::NotRestored { .. })) {
            // An experiment leaves no trace in the log.
            self.store.remove(journal.id)?;
            return Ok(Report { id: None, end, rows });
        }
        Ok(Report { id: Some(journal.id), end, rows })
    }

    /// Undoes a transaction, or the latest that is not undone. What somebody changed since is kept, unless `force`.
    pub fn undo(
        &self,
        host: &dyn TunableHost,
        id: Option<u64>,
        force: bool,
        request: &Request,
    ) -> Result<Report, TransactionError> {
        let target = find_target(self.store, id)?;
        let kind = Kind::Undo { of: target.journal.id };
        let begin = Begin { kind, ..self.begin_record(request) };
        let mut journal = Journal::new(self.next_id()?, begin);
        let mut rows = prepare::fill_undo(host, &mut journal, &target, &self.boot_id, force);
        let (end, done) = self.commit(host, &mut journal, true)?;
        rows.extend(done);
        Ok(Report { id: Some(journal.id), end, rows })
    }

    /// Leaves the arm that transaction `id` entered. Nothing is left of it in the log when all is as it was before.
    pub fn leave(
        &self,
        host: &dyn TunableHost,
        id: u64,
        request: &Request,
    ) -> Result<Report, TransactionError> {
        let report = self.undo(host, Some(id), false, request)?;
        if let (Some(undo), End::Done) = (report.id, &report.end) {
            // In this order: an undo of nothing is harmless, an arm without its undo would be left again.
            self.store.remove(id)?;
            self.store.remove(undo)?;
        }
        Ok(report)
    }

    /// Leaves the arm of an experiment that died: whoever holds the lock knows that no experiment is alive.
    fn leave_dead_trial(&self, host: &dyn TunableHost) -> Result<Option<Report>, TransactionError> {
        let mut undone = Vec::new();
        for id in self.store.ids()?.into_iter().rev() {
            let Some(journal) = self.store.load(id)? else { continue };
            match journal.begin.kind {
                Kind::Undo { of } if journal.counts() => undone.push(of),
                Kind::Undo { .. } => {}
                Kind::Trial { .. } if journal.counts() && !undone.contains(&id) => {
                    let Begin { kind, label, names, time, command, .. } = journal.begin;
                    let request = Request { kind, label, names, time, command, keep_going: true };
                    return self.leave(host, id, &request).map(Some);
                }
                // An experiment has at most one arm entered, and nobody else comes in between.
                _ => break,
            }
        }
        Ok(None)
    }

    fn begin_record(&self, request: &Request) -> Begin {
        Begin {
            schema: SCHEMA,
            boot_id: self.boot_id.clone(),
            kind: request.kind,
            label: request.label.clone(),
            names: request.names.clone(),
            time: request.time,
            command: request.command.clone(),
        }
    }

    fn next_id(&self) -> Result<u64, TransactionError> {
        Ok(self.store.ids()?.last().map_or(1, |last| last + 1))
    }

    fn commit(
        &self,
        host: &dyn TunableHost,
        journal: &mut Journal,
        keep_going: bool,
    ) -> Result<(End, Vec<Row>), TransactionError> {
        let room = CLOSING_BYTES + RECORD_BYTES * (journal.deeds.len() + journal.saves.len());
        let file = self.store.create(journal.id, &journal.block(), room)?;
        let (end, rows) = run::execute(host, &file, journal, keep_going);
        let end = note_stuck(&file, journal, end, &rows);
        let (end, rows) = close(host, &file, journal, end, rows);
        // Old journals that stay a little longer are no reason to call this one failed.
        let _ = self.prune();
        Ok((end, rows))
    }

    /// Removes the oldest journals, but never the active profile's.
    fn prune(&self) -> Result<(), TransactionError> {
        let ids = self.store.ids()?;
        if ids.len() <= KEEP {
            return Ok(());
        }
        let active = find_active(self.store)?.map(|active| active.id);
        ids.iter()
            .take(ids.len() - KEEP)
            .filter(|id| Some(**id) != active)
            .try_for_each(|id| self.store.remove(*id))
    }
}

/// The profile in force, from the journals alone.
pub fn active(host: &dyn Host, store: &Store) -> Result<Option<Active>, TransactionError> {
    let boot_id = boot_id(host);
    Ok(find_active(store)?.filter(|journal| journal.begin.kind == Kind::Profile).map(|journal| Active {
        id: journal.id,
        this_boot: boot_id.as_ref() == Some(&journal.begin.boot_id),
        names: journal.begin.names,
    }))
}

/// All transactions, newest first.
pub fn log(store: &Store) -> Result<Vec<LogEntry>, TransactionError> {
    let active = find_active(store)?.filter(|journal| journal.begin.kind == Kind::Profile);
    let mut undone: Vec<(u64, u64)> = Vec::new();
    let mut entries = Vec::new();
    for id in store.ids()?.into_iter().rev() {
        let Some(journal) = store.load(id)? else { continue };
        if let (Kind::Undo { of }, true) = (journal.begin.kind, journal.counts()) {
            undone.push((of, id));
        }
        entries.push(LogEntry {
            id,
            kind: journal.begin.kind,
            changes: journal.turns().filter(|turn| !journal.refused.contains(&turn.knob)).count(),
            label: journal.begin.label,
            time: journal.begin.time,
            end: journal.end,
            undone_by: undone.iter().find(|(of, _)| *of == id).map(|(_, by)| *by),
            active: active.as_ref().is_some_and(|active| active.id == id),
        });
    }
    Ok(entries)
}

fn boot_id(host: &dyn Host) -> Option<String> {
    let knob = Knob::Attribute("/proc/sys/kernel/random/boot_id".into());
    let id = value(host, &knob).ok()?.text()?.trim().to_owned();
    (!id.is_empty()).then_some(id)
}

/// The latest transaction for a profile (or for none) that is in force, and those after it, newest first, that could not
/// put back everything when they failed. Journals are read from the newest back, so that it costs no more when there
/// are many.
fn find_in_force(store: &Store) -> Result<(Option<Journal>, Vec<Journal>), TransactionError> {
    let (mut undone, mut lingering) = (Vec::new(), Vec::new());
    for id in store.ids()?.into_iter().rev() {
        let Some(journal) = store.load(id)? else { continue };
        let (counts, is_undone) = (journal.counts(), undone.contains(&id));
        match journal.begin.kind {
            Kind::Undo { of } if counts => undone.push(of),
            Kind::Profile | Kind::Off if counts && !is_undone => return Ok((Some(journal), lingering)),
            _ if journal.lingers() && !is_undone => lingering.push(journal),
            _ => {}
        }
    }
    Ok((None, lingering))
}

/// The first of what [`find_in_force`] finds.
fn find_active(store: &Store) -> Result<Option<Journal>, TransactionError> {
    Ok(find_in_force(store)?.0)
}

/// A transaction to undo.
struct Target {
    journal: Journal,
    /// Those after it that are in force.
    later: Vec<Journal>,
    /// The latest try to undo it, when something was left over.
    tried: Option<Journal>,
}

fn find_target(store: &Store, id: Option<u64>) -> Result<Target, TransactionError> {
    let (mut undone, mut later, mut failed_undos) = (Vec::new(), Vec::new(), Vec::<Journal>::new());
    for this in store.ids()?.into_iter().rev() {
        let Some(journal) = store.load(this)? else { continue };
        let in_force = journal.counts() || journal.lingers();
        let refuse = |why| Err(TransactionError::NotUndoable { id: this, why });
        match journal.begin.kind {
            Kind::Undo { .. } if id == Some(this) => {
                return refuse("it is an undo itself; apply again instead");
            }
            Kind::Undo { .. } if !journal.counts() => failed_undos.push(journal),
            _ if !in_force && id == Some(this) => return refuse("it was rolled back already"),
            _ if undone.contains(&this) && id == Some(this) => return refuse("it was undone already"),
            _ if !in_force || undone.contains(&this) => {}
            Kind::Undo { of } => undone.push(of),
            _ if id.is_none_or(|id| id == this) => {
                let tried = failed_undos.into_iter().find(|undo| {
                    undo.begin.kind == Kind::Undo { of: this }
                        && matches!(undo.end, Some(End::NeedsAttention { .. }))
                });
                return Ok(Target { journal, later, tried });
            }
            _ => later.push(journal),
        }
    }
    Err(id.map_or(TransactionError::NothingToUndo, TransactionError::NoSuch))
}

/// Says in the journal what could not be put back, and in the end that there is such a thing.
fn note_stuck(file: &store::JournalFile, journal: &Journal, end: End, rows: &[Row]) -> End {
    let is_last = |nth: usize| rows[nth + 1..].iter().all(|row| row.what != rows[nth].what);
    let mut any = false;
    for (_, row) in rows.iter().enumerate().filter(|(nth, _)| is_last(*nth)) {
        let Fate::NotRestored { why } = &row.fate else { continue };
        any = true;
        let (what, knob, why) = (row.what.clone(), row.knob.clone(), why.clone());
        // A journal that takes no more fails again, and is dealt with, when it is closed.
        let _ = file.append(&line(&Record::Stuck { what, knob, shows: row.from.clone(), why }));
    }
    match (end, journal.begin.kind) {
        (End::RolledBack { why }, _) if any => End::NeedsAttention { why },
        (End::Done | End::Partly, Kind::Undo { .. }) if any => {
            End::NeedsAttention { why: "undoing it is what was asked for".into() }
        }
        (End::Done, _) if any => End::Partly,
        (end, _) => end,
    }
}

/// Puts the end on disk. Where that fails the end is cut off again and everything taken back, so that the journal and
/// the machine agree; where even that fails the end stands, and so does what was done.
fn close(
    host: &dyn TunableHost,
    file: &store::JournalFile,
    journal: &Journal,
    end: End,
    mut rows: Vec<Row>,
) -> (End, Vec<Row>) {
    let length = file.length();
    let appended = file.append(&line(&Record::End(end.clone())));
    let written = appended.is_ok();
    let Err(error) = appended.and_then(|()| file.sync()) else { return (end, rows) };
    if written && file.cut(length).is_err() {
        return (end, rows);
    }
    rows.extend(run::put_back(host, journal));
    let end = End::RolledBack { why: error.to_string() };
    // Without this record the next run finds everything put back already, and closes the journal itself.
    let _ = file.append(&line(&Record::End(end.clone()))).and_then(|()| file.sync());
    (end, rows)
}

/// Closes what an earlier run left open. Only the newest journal can be: each run starts with this.
fn recover(host: &dyn TunableHost, store: &Store, boot_id: &str) -> Result<Option<Report>, TransactionError> {
    let Some(id) = store.ids()?.pop() else { return Ok(None) };
    let journal = match store.load(id)? {
        Some(journal) if journal.end.is_some() => return Ok(None),
        // The machine is first touched when the journal says that it is prepared.
        Some(journal) if journal.prepared => journal,
        _ => {
            store.remove(id)?;
            return Ok(None);
        }
    };
    let file = store.reopen(id, journal.length)?;
    let (end, rows) = if journal.begin.boot_id == boot_id {
        let why = "the run that applied it was cut short".to_owned();
        (End::RolledBack { why }, run::put_back(host, &journal))
    } else {
        // A reboot has undone what the kernel held; a file is put back only where it is exactly ours.
        let goals: Vec<(Knob, Value)> = journal
            .turns()
            .rev()
            .filter(|turn| turn.knob.is_persistent())
            .filter(|turn| value(host, &turn.knob).is_ok_and(|shows| same(&shows, &turn.to)))
            .map(|turn| (turn.knob.clone(), turn.from.clone()))
            .collect();
        (End::Lost, run::settle(host, &goals, true))
    };
    let end = note_stuck(&file, &journal, end, &rows);
    file.append(&line(&Record::End(end.clone())))?;
    file.sync()?;
    Ok(Some(Report { id: Some(id), end, rows }))
}

#[cfg(test)]
mod tests;
