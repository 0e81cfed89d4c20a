//! Doing what a prepared journal says, and taking it back.

use std::io;

use rustix::io::Errno;
use zenkai_host::{Act, Knob, TunableHost, Value, errno_name, value};

use super::{
    Fate, Row,
    journal::{Deed, End, Journal, Kind, Record, Run, Turn, line},
    store::JournalFile,
};
use crate::{couplings::Moves, same};

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
                let back = put_back(host, journal);
                rows.extend(back);
                return (End::RolledBack { why: failed.unwrap_or_default() }, rows);
            }
        }
    }
    let again = disturbed_goals(host, journal);
    // What does not come to rest is told by the look at all of them below.
    settle(host, &again, false);
    let backs: Vec<(Knob, Value)> =
        journal.turns().filter(|turn| turn.back).map(|turn| (turn.knob.clone(), turn.to.clone())).collect();
    if !backs.is_empty() {
        rows.extend(settle(host, &backs, false));
    }
    if let Err(why) = note_side_effects(host, file, journal, &mut rows) {
        rows.extend(put_back(host, journal));
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
    announce(file, journal, nth, turn.knob.is_persistent())?;
    let row = |fate| Row::new(&turn.knob, turn.from.clone(), turn.to.clone(), fate);
    match set_first(host, turn) {
        Ok(wrote) => {
            let shows = value(host, &turn.knob).unwrap_or_else(|_| wrote.clone());
            if same(&shows, &turn.to) {
                rows.push(row(if turn.back { Fate::Restored } else { Fate::Set }));
                return Ok(());
            }
            // Whoever names alternatives is content with each of them.
            let chosen = |to: &Value| same(&shows, to);
            if chosen(&wrote) || turn.alternatives.iter().any(|to| chosen(&to.as_str().into())) {
                rows.push(Row::new(&turn.knob, turn.from.clone(), shows.clone(), Fate::Set));
                return note_left(file, journal, &turn.knob, shows);
            }
            rows.push(row(Fate::Adjusted { shows: shows.clone() }));
            note_left(file, journal, &turn.knob, shows)
        }
        // What is put back may depend on another knob that is put back later: settled at the end.
        Err(_) if turn.back => Ok(()),
        Err(error) if let Some(why) = no_failure(&turn.knob, &error) => {
            rows.push(row(Fate::Skipped { why: why.into() }));
            journal.refused.insert(turn.knob.clone());
            file.append(&line(&Record::Refused(turn.knob.clone()))).map_err(|error| error.to_string())
        }
        Err(error) => {
            let why = errno_name(&error);
            rows.push(row(Fate::Refused { why: why.clone() }));
            journal.refused.insert(turn.knob.clone());
            let _ = file.append(&line(&Record::Refused(turn.knob.clone())));
            Err(format!("{}: writing {:?} failed with {why}", turn.knob, turn.to.text().unwrap_or("(none)")))
        }
    }
}

/// Writes the value, or the first of its alternatives that the kernel knows (EINVAL: it does not), and gives it.
fn set_first(host: &dyn TunableHost, turn: &Turn) -> io::Result<Value> {
    let mut to = turn.to.clone();
    let mut alternatives = turn.alternatives.iter();
    loop {
        match host.set(&turn.knob, &to) {
            Ok(()) => return Ok(to),
            Err(error) if is_errno(&error, Errno::INVAL) => match alternatives.next() {
                Some(next) => to = next.as_str().into(),
                None => return Err(error),
            },
            Err(error) => return Err(error),
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
    announce(file, journal, nth, true)?;
    let failed = match host.run(&run.act) {
        Ok(finished) if finished.code == 0 => None,
        Ok(finished) => Some(format!("exit code {}", finished.code)),
        Err(error) => Some(errno_name(&error)),
    };
    let is_undo = matches!(journal.begin.kind, Kind::Undo { .. });
    let fate = match failed.clone() {
        None => Fate::Set,
        // What an undo does not do is still there.
        Some(why) if is_undo && run.back => Fate::NotRestored { why },
        Some(why) => Fate::Refused { why },
    };
    rows.push(Row { what: run.act.to_string(), knob: None, from: Value::Absent, to: Value::Absent, fate });
    failed.map_or(Ok(()), |why| Err(format!("{}: {why}", run.act)))
}

/// Says in the journal which deed is next, so that only one is in doubt when we die. That outlives us at once; for what
/// outlives a reboot it must be on disk too.
fn announce(file: &JournalFile, journal: &mut Journal, nth: usize, on_disk: bool) -> Result<(), String> {
    let noted = file.append(&line(&Record::Doing(nth)));
    let noted = if on_disk { noted.and_then(|()| file.sync()) } else { noted };
    noted.map_err(|error| error.to_string())?;
    journal.announce(nth);
    Ok(())
}

fn note_left(file: &JournalFile, journal: &mut Journal, knob: &Knob, shows: Value) -> Result<(), String> {
    journal.note_left(knob.clone(), shows.clone());
    file.append(&line(&Record::Left { knob: knob.clone(), value: shows })).map_err(|error| error.to_string())
}

/// What was wanted and is moved by a later step (`nr_requests`, when the scheduler is set after it). Of two that move
/// each other (`dirty_bytes` and `dirty_ratio`) the later stays.
fn disturbed_goals(host: &dyn TunableHost, journal: &Journal) -> Vec<(Knob, Value)> {
    let turns: Vec<(&Turn, Moves)> = journal
        .turns()
        .filter(|turn| !turn.back && !journal.refused.contains(&turn.knob))
        .map(|turn| (turn, Moves::by(&turn.knob)))
        .collect();
    let moved_later = |nth: usize| {
        let (turn, moves) = &turns[nth];
        turns[nth + 1..]
            .iter()
            .any(|(later, others)| others.contains(&turn.knob) && !moves.contains(&later.knob))
    };
    let moved = turns.iter().enumerate().filter(|(nth, _)| moved_later(*nth));
    let right_before = journal.saves.iter().filter(|save| {
        let others = Moves::by(&save.knob);
        journal.wanted.contains(&save.knob) && turns.iter().all(|(turn, _)| !others.contains(&turn.knob))
    });
    moved
        .map(|(_, (turn, _))| (turn.knob.clone(), journal.left(&turn.knob, &turn.to).clone()))
        .chain(right_before.map(|save| (save.knob.clone(), save.from.clone())))
        .filter(|(knob, goal)| value(host, knob).is_ok_and(|shows| !same(&shows, goal)))
        .collect()
}

/// Looks again at what may have moved by itself, so that undoing does not take it for somebody else's doing.
fn note_side_effects(
    host: &dyn TunableHost,
    file: &JournalFile,
    journal: &mut Journal,
    rows: &mut [Row],
) -> Result<(), String> {
    let moved = Moves::by_any(journal.turns().map(|turn| &turn.knob));
    let watched: Vec<(Knob, Value)> = journal
        .turns()
        .filter(|turn| moved.contains(&turn.knob) && !journal.refused.contains(&turn.knob))
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

/// What has to be done about a knob when a transaction is taken back.
enum Back {
    /// It is ours: it goes back.
    Put,
    /// It is as it was.
    Fine,
    /// Somebody else changed it.
    Keep(Value),
}

/// Takes back what was begun, the last deed first, and what moved with it. An act is undone when it was announced: it
/// may have run. What shows neither our value nor the old one was changed by somebody else, and is kept.
pub(super) fn put_back(host: &dyn TunableHost, journal: &Journal) -> Vec<Row> {
    let moved = Moves::by_any(journal.begun().map(|(_, turn)| &turn.knob));
    let (mut rows, mut goals) = (Vec::new(), Vec::new());
    for (nth, deed) in journal.deeds.iter().enumerate().rev() {
        match deed {
            Deed::Turn(turn) => match back(host, journal, nth, turn, &moved) {
                Back::Put => goals.push((turn.knob.clone(), turn.from.clone())),
                Back::Fine => {}
                Back::Keep(shows) => {
                    let fate = Fate::Kept { shows: shows.clone() };
                    rows.push(Row::new(&turn.knob, shows, turn.from.clone(), fate));
                }
            },
            Deed::Run(Run { undo: Some(undo), .. }) if journal.doing.contains(&nth) => {
                // Knobs that were turned after the act go back before it is undone.
                settle(host, &goals, true);
                rows.push(take_back_act(host, undo));
            }
            Deed::Run(_) => {}
        }
    }
    let saves = journal.saves.iter().filter(|save| moved.contains(&save.knob));
    goals.extend(saves.map(|save| (save.knob.clone(), save.from.clone())));
    rows.extend(settle(host, &goals, true));
    rows
}

fn take_back_act(host: &dyn TunableHost, undo: &Act) -> Row {
    let fate = match host.run(undo) {
        Ok(finished) if finished.code == 0 => Fate::Restored,
        Ok(finished) => Fate::NotRestored { why: format!("exit code {}", finished.code) },
        Err(error) => Fate::NotRestored { why: errno_name(&error) },
    };
    Row { what: undo.to_string(), knob: None, from: Value::Absent, to: Value::Absent, fate }
}

fn back(host: &dyn TunableHost, journal: &Journal, nth: usize, turn: &Turn, moved: &Moves) -> Back {
    let begun = journal.doing.contains(&nth);
    // The one deed we may have died in: what the kernel made of the value is not known.
    if journal.in_doubt == Some(nth) || moved.contains(&turn.knob) {
        return Back::Put;
    }
    match value(host, &turn.knob) {
        Ok(shows) if same(&shows, &turn.from) => Back::Fine,
        Ok(shows) if begun && same(&shows, journal.left(&turn.knob, &turn.to)) => Back::Put,
        Ok(shows) if begun && same(&shows, &turn.to) => Back::Put,
        Ok(shows) => Back::Keep(shows),
        Err(_) if begun => Back::Put,
        Err(_) => Back::Fine,
    }
}

/// Writes what differs, again and again until nothing does: knobs that move each other, such as `dirty_bytes` (which
/// refuses 0) and `dirty_ratio` (which makes it 0), come to rest in the second round. `all` also tells of knobs that
/// were right at once.
pub(super) fn settle(host: &dyn TunableHost, goals: &[(Knob, Value)], all: bool) -> Vec<Row> {
    let mut wrote = vec![false; goals.len()];
    let mut gone = vec![false; goals.len()];
    let mut refusals: Vec<Option<String>> = vec![None; goals.len()];
    for _ in 0..ROUNDS {
        let mut quiet = true;
        for (nth, (knob, goal)) in goals.iter().enumerate() {
            match value(host, knob) {
                Ok(shows) if same(&shows, goal) => refusals[nth] = None,
                // What is gone (a device that was taken out) has nothing left to restore.
                Err(error) if error.kind() == io::ErrorKind::NotFound => {
                    gone[nth] = true;
                    refusals[nth] = None;
                }
                _ => {
                    quiet = false;
                    wrote[nth] = true;
                    let error = host.set(knob, goal).err();
                    gone[nth] = error.as_ref().is_some_and(|error| is_task_gone(knob, error));
                    refusals[nth] = error.filter(|_| !gone[nth]).map(|error| errno_name(&error));
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
            None if gone[nth] && !same(&shows, goal) => Fate::Skipped { why: "it is gone".into() },
            None if same(&shows, goal) => Fate::Restored,
            None => Fate::NotRestored { why: "the kernel made it something else".into() },
        };
        if (all && wrote[nth]) || !matches!(fate, Fate::Restored) {
            rows.push(Row::new(knob, shows, goal.clone(), fate));
        }
    }
    rows
}

fn is_task_gone(knob: &Knob, error: &io::Error) -> bool {
    matches!(knob, Knob::Task { .. }) && no_failure(knob, error).is_some()
}

/// Why a knob that cannot be turned is none to be turned.
fn no_failure(knob: &Knob, error: &io::Error) -> Option<&'static str> {
    match knob {
        Knob::Task { .. } if is_errno(error, Errno::SRCH) || is_errno(error, Errno::NOENT) => {
            Some("the task has ended")
        }
        // kernel/irq/proc.c, write_irq_affinity(): EIO when irq_can_set_affinity_usr() says no.
        Knob::Attribute(path)
            if is_errno(error, Errno::IO)
                && path.starts_with("/proc/irq/")
                && path.rsplit('/').next().is_some_and(|name| name.starts_with("smp_affinity")) =>
        {
            Some("the kernel manages this interrupt itself")
        }
        _ => None,
    }
}

fn is_errno(error: &io::Error, errno: Errno) -> bool {
    error.raw_os_error() == Some(errno.raw_os_error())
}
