//! Doing what a prepared journal says, and taking it back.

use std::io;

use rustix::io::Errno;
use zenkai_host::{Knob, TunableHost, Value, errno_name, value};

use super::{
    Fate, Row,
    journal::{Deed, End, Journal, Record, Run, Turn, line},
    store::JournalFile,
};
use crate::same;

/// Knobs that move each other are put back in at most this many rounds.
const ROUNDS: usize = 3;

/// Does every deed in order. When one fails everything is put back, unless `keep_going`.
pub(super) fn execute(
    host: &dyn TunableHost,
    file: &JournalFile,
    journal: &mut Journal,
    keep_going: bool,
) -> (End, Vec<Row>) {
    let mut rows = Vec::new();
    let mut failed = None;
    for nth in 0..journal.deeds.len() {
        let done = match journal.deeds[nth].clone() {
            Deed::Turn(turn) => turn_one(host, file, journal, nth, &turn, &mut rows),
            Deed::Run(run) => run_one(host, file, journal, nth, &run, &mut rows),
        };
        // A journal that takes no more records is a failure like any other: nothing may be done that it cannot tell.
        if let Err(why) = done {
            failed = Some(failed.unwrap_or(why));
            if !keep_going {
                let back = put_back(host, journal, nth + 1);
                rows.extend(back);
                return (End::RolledBack { why: failed.unwrap_or_default() }, rows);
            }
        }
    }
    let backs: Vec<(Knob, Value)> =
        journal.turns().filter(|turn| turn.back).map(|turn| (turn.knob.clone(), turn.to.clone())).collect();
    if !backs.is_empty() {
        rows.extend(settle(host, &backs, false));
    }
    if let Err(why) = note_side_effects(host, file, journal, &mut rows) {
        let deeds = journal.deeds.len();
        rows.extend(put_back(host, journal, deeds));
        return (End::RolledBack { why }, rows);
    }
    (if failed.is_some() { End::Partly } else { End::Done }, rows)
}

fn turn_one(
    host: &dyn TunableHost,
    file: &JournalFile,
    journal: &mut Journal,
    nth: usize,
    turn: &Turn,
    rows: &mut Vec<Row>,
) -> Result<(), String> {
    if turn.knob.is_persistent() {
        let noted = file.append(&line(&Record::Doing(nth))).and_then(|()| file.sync());
        noted.map_err(|error| error.to_string())?;
    }
    journal.doing.insert(nth);
    let set = std::iter::once(turn.to.clone())
        .chain(turn.alternatives.iter().map(|choice| choice.as_str().into()))
        .map(|to| host.set(&turn.knob, &to).map(|()| to))
        .reduce(|one, next| match one {
            Err(ref error) if is_errno(error, Errno::INVAL) => next,
            other => other,
        });
    let row = |fate| Row::new(&turn.knob, turn.from.clone(), turn.to.clone(), fate);
    match set.unwrap_or_else(|| Err(Errno::INVAL.into())) {
        Ok(wrote) => {
            let shows = value(host, &turn.knob).unwrap_or_else(|_| wrote.clone());
            if same(&shows, &turn.to) {
                rows.push(row(if turn.back { Fate::Restored } else { Fate::Set }));
                return Ok(());
            }
            rows.push(row(Fate::Adjusted { shows: shows.clone() }));
            note_left(file, journal, &turn.knob, shows)
        }
        // What is put back may depend on another knob that is put back later: settled at the end.
        Err(_) if turn.back => Ok(()),
        Err(error) => {
            let why = errno_name(&error);
            rows.push(row(Fate::Refused { why: why.clone() }));
            journal.refused.insert(turn.knob.clone());
            let _ = file.append(&line(&Record::Refused(turn.knob.clone())));
            Err(format!("{}: writing {:?} failed with {why}", turn.knob, turn.to.text().unwrap_or("(none)")))
        }
    }
}

fn run_one(
    host: &dyn TunableHost,
    file: &JournalFile,
    journal: &mut Journal,
    nth: usize,
    run: &Run,
    rows: &mut Vec<Row>,
) -> Result<(), String> {
    file.append(&line(&Record::Doing(nth))).map_err(|error| error.to_string())?;
    journal.doing.insert(nth);
    let failed = match host.run(&run.act) {
        Ok(finished) if finished.code == 0 => None,
        Ok(finished) => Some(format!("exit code {}", finished.code)),
        Err(error) => Some(errno_name(&error)),
    };
    let fate = failed.clone().map_or(Fate::Set, |why| Fate::Refused { why });
    rows.push(Row { what: run.act.to_string(), knob: None, from: Value::Absent, to: Value::Absent, fate });
    failed.map_or(Ok(()), |why| Err(format!("{}: {why}", run.act)))
}

fn note_left(file: &JournalFile, journal: &mut Journal, knob: &Knob, shows: Value) -> Result<(), String> {
    journal.left.insert(knob.clone(), shows.clone());
    file.append(&line(&Record::Left { knob: knob.clone(), value: shows })).map_err(|error| error.to_string())
}

/// Looks again at what may have moved by itself, so that undoing does not take it for somebody else's doing.
fn note_side_effects(
    host: &dyn TunableHost,
    file: &JournalFile,
    journal: &mut Journal,
    rows: &mut [Row],
) -> Result<(), String> {
    if journal.saves.is_empty() {
        return Ok(());
    }
    let watched: Vec<(Knob, Value)> = journal
        .turns()
        .filter(|turn| !journal.refused.contains(&turn.knob))
        .map(|turn| (turn.knob.clone(), journal.left(&turn.knob, &turn.to).clone()))
        .chain(journal.saves.iter().map(|save| (save.knob.clone(), save.from.clone())))
        .collect();
    for (knob, expected) in watched {
        let Ok(shows) = value(host, &knob) else { continue };
        if !same(&shows, &expected) {
            if let Some(row) = rows.iter_mut().find(|row| row.knob.as_ref() == Some(&knob)) {
                row.fate = Fate::Adjusted { shows: shows.clone() };
            }
            note_left(file, journal, &knob, shows)?;
        }
    }
    Ok(())
}

/// Puts back what the first `count` deeds did, and what moved with it.
pub(super) fn put_back(host: &dyn TunableHost, journal: &Journal, count: usize) -> Vec<Row> {
    let mut rows = Vec::new();
    let mut goals = Vec::new();
    for (nth, deed) in journal.deeds.iter().enumerate().take(count).rev() {
        match deed {
            Deed::Turn(turn) => goals.push((turn.knob.clone(), turn.from.clone())),
            Deed::Run(Run { undo: Some(undo), .. }) if journal.doing.contains(&nth) => {
                // Knobs that were turned after the act go back before it is undone.
                rows.extend(settle(host, &goals, true));
                let fate = match host.run(undo) {
                    Ok(finished) if finished.code == 0 => Fate::Restored,
                    Ok(finished) => Fate::NotRestored { why: format!("exit code {}", finished.code) },
                    Err(error) => Fate::NotRestored { why: errno_name(&error) },
                };
                let what = undo.to_string();
                rows.push(Row { what, knob: None, from: Value::Absent, to: Value::Absent, fate });
            }
            Deed::Run(_) => {}
        }
    }
    goals.extend(journal.saves.iter().map(|save| (save.knob.clone(), save.from.clone())));
    rows.retain(|row| row.knob.is_none());
    rows.extend(settle(host, &goals, true));
    rows
}

/// Writes what differs, again and again until nothing does: knobs that move each other, such as `dirty_bytes` (which
/// refuses 0) and `dirty_ratio` (which makes it 0), come to rest in the second round. `all` also tells of knobs that
/// were right at once.
pub(super) fn settle(host: &dyn TunableHost, goals: &[(Knob, Value)], all: bool) -> Vec<Row> {
    let mut wrote = vec![false; goals.len()];
    let mut refusals: Vec<Option<String>> = vec![None; goals.len()];
    for _ in 0..ROUNDS {
        let mut quiet = true;
        for (nth, (knob, goal)) in goals.iter().enumerate() {
            match value(host, knob) {
                Ok(shows) if same(&shows, goal) => refusals[nth] = None,
                // What is gone (a device that was taken out) has nothing left to restore.
                Err(error) if error.kind() == io::ErrorKind::NotFound => {
                    refusals[nth] = Some("it is gone".into());
                }
                _ => {
                    quiet = false;
                    wrote[nth] = true;
                    refusals[nth] = host.set(knob, goal).err().map(|error| errno_name(&error));
                }
            }
        }
        if quiet {
            break;
        }
    }
    let mut rows = Vec::new();
    for (nth, (knob, goal)) in goals.iter().enumerate() {
        let shows = value(host, knob).unwrap_or(Value::Absent);
        let fate = match refusals[nth].take() {
            Some(why) => Fate::NotRestored { why },
            None if same(&shows, goal) => Fate::Restored,
            None => Fate::NotRestored { why: "the kernel made it something else".into() },
        };
        if (all && wrote[nth]) || matches!(fate, Fate::NotRestored { .. }) {
            rows.push(Row::new(knob, shows, goal.clone(), fate));
        }
    }
    rows
}

fn is_errno(error: &io::Error, errno: Errno) -> bool {
    error.raw_os_error() == Some(errno.raw_os_error())
}
