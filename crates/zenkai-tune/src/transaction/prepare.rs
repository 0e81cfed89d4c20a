//! What a transaction is going to do, with everything it needs to take it back.

use std::collections::HashSet;

use zenkai_host::{Host, Knob, Value, value};

use super::{
    Fate, Row, Target, canonical,
    journal::{Deed, Journal, Kept, Kind, Run, Save, Turn},
};
use crate::{Plan, State, Step, Want, couplings::Moves, same};

/// Fills the journal for a plan that takes the place of the active profile.
pub(super) fn fill(
    host: &dyn Host,
    journal: &mut Journal,
    plan: &Plan,
    active: Option<&Journal>,
    stuck: Vec<Kept>,
    boot_id: &str,
) -> Vec<Row> {
    let mut rows = Vec::new();
    let held = held_now(active, stuck, boot_id);
    let base_of = |knob: &Knob, now: &Value| {
        let kept = held.iter().find(|kept| kept.knob == *knob);
        kept.filter(|kept| same(&kept.left, now)).map_or_else(|| now.clone(), |kept| kept.base.clone())
    };
    let (mut wanted, mut knobs) = (Vec::new(), Vec::new());
    for step in &plan.steps {
        let Some(knob) = step.wish.knob().map(canonical) else {
            wanted.extend(run_of(step).map(Deed::Run));
            continue;
        };
        match &step.state {
            State::Change { from, to, alternatives, .. } => {
                let from = value(host, &knob).unwrap_or_else(|_| from.clone());
                let base = base_of(&knob, &from);
                let (to, alternatives) = (to.clone(), alternatives.clone());
                wanted.push(Deed::Turn(Turn {
                    knob: knob.clone(),
                    from,
                    to,
                    alternatives,
                    base,
                    back: false,
                }));
            }
            State::Same { value } => {
                if let Some(kept) = held.iter().find(|kept| kept.knob == knob && same(&kept.left, value)) {
                    journal.kept.push(kept.clone());
                }
            }
            _ => continue,
        }
        knobs.push(knob);
    }
    // What a wanted knob sets by its nature (dirty_ratio, when dirty_bytes is wanted) is not put back against it.
    let opposite = |knob: &Knob| {
        let moves = Moves::by(knob);
        !moves.is_empty()
            && knobs.iter().any(|wanted| moves.contains(wanted) && Moves::by(wanted).contains(knob))
    };
    for end in ends(active, &held, boot_id) {
        let kept = match end {
            Deed::Turn(turn) => held.iter().find(|kept| kept.knob == turn.knob),
            Deed::Run(_) => {
                journal.deeds.push(end);
                None
            }
        };
        let Some(kept) = kept.filter(|kept| !knobs.contains(&kept.knob) && !opposite(&kept.knob)) else {
            continue;
        };
        let Ok(now) = value(host, &kept.knob) else { continue };
        if same(&now, &kept.base) {
            continue;
        }
        if same(&now, &kept.left) {
            push_back(journal, &kept.knob, now, kept.base.clone());
        } else {
            let fate = Fate::Kept { shows: now.clone() };
            rows.push(Row::new(&kept.knob, now, kept.base.clone(), fate));
        }
    }
    journal.deeds.extend(wanted);
    add_saves(host, journal, &base_of);
    let still = held.iter().filter(|kept| !knobs.contains(&kept.knob) && opposite(&kept.knob));
    hold_on(host, journal, still);
    journal.wanted = knobs;
    rows
}

fn run_of(step: &Step) -> Option<Run> {
    match (&step.state, &step.wish.want) {
        (State::Run | State::RunAgain, Want::Run { act, undo, .. }) => {
            Some(Run { act: act.clone(), undo: undo.clone(), back: false })
        }
        _ => None,
    }
}

/// What is held on, though nothing writes to it this time.
fn hold_on<'k>(host: &dyn Host, journal: &mut Journal, still: impl Iterator<Item = &'k Kept>) {
    for kept in still {
        let saved = journal.saves.iter().any(|save| save.knob == kept.knob);
        if !saved && value(host, &kept.knob).is_ok_and(|now| same(&now, &kept.left)) {
            journal.kept.push(kept.clone());
        }
    }
}

/// Fills the journal with the way back from `target`.
pub(super) fn fill_undo(
    host: &dyn Host,
    journal: &mut Journal,
    Target { journal: target, later, tried }: &Target,
    boot_id: &str,
    force: bool,
) -> Vec<Row> {
    let mut rows = Vec::new();
    let here = target.begin.boot_id == boot_id;
    let mut back = |journal: &mut Journal, knob: &Knob, left: &Value, from: &Value| {
        // Another boot's kernel values are gone already.
        let Ok(now) = value(host, knob) else { return };
        if (!here && !knob.is_persistent()) || same(&now, from) {
            return;
        }
        let tried = tried.as_ref().unwrap_or(target).stuck.get(knob);
        let ours = (same(&now, left) || tried.is_some_and(|shows| same(&now, shows)))
            && !later.iter().any(|journal| journal.touches(knob));
        if ours || force {
            push_back(journal, knob, now, from.clone());
        } else {
            rows.push(Row::new(knob, now.clone(), from.clone(), Fate::Kept { shows: now }));
        }
    };
    for deed in target.deeds.iter().rev() {
        match deed {
            Deed::Turn(turn) if target.refused.contains(&turn.knob) => {}
            Deed::Turn(turn) => back(journal, &turn.knob, target.left(&turn.knob, &turn.to), &turn.from),
            Deed::Run(run) => {
                let Some(undo) = run.undo.as_ref().filter(|_| here) else { continue };
                // What was undone before is not undone again.
                let tried = tried.as_ref().or(Some(target).filter(|target| target.lingers()));
                if tried.is_none_or(|tried| tried.stuck_acts.contains(&undo.to_string())) {
                    let run = Run { act: undo.clone(), undo: Some(run.act.clone()), back: true };
                    journal.deeds.push(Deed::Run(run));
                }
            }
        }
    }
    for save in &target.saves {
        back(journal, &save.knob, target.left(&save.knob, &save.from), &save.from);
    }
    add_saves(host, journal, &|_, now| now.clone());
    rows
}

/// What is held: by the active profile, and by what could not be put back since.
pub(super) fn held_now(active: Option<&Journal>, stuck: Vec<Kept>, boot_id: &str) -> Vec<Kept> {
    let mut held = active.map(|active| held(active, boot_id)).unwrap_or_default();
    for stuck in stuck {
        match held.iter_mut().find(|kept| kept.knob == stuck.knob) {
            Some(kept) => kept.left = stuck.left,
            None => held.push(stuck),
        }
    }
    held
}

/// What the active profile holds: knobs, and what moved with them, with the value from before it.
fn held(active: &Journal, boot_id: &str) -> Vec<Kept> {
    let here = active.begin.boot_id == boot_id;
    // What the one before held and could not be put back is still to go back.
    let stuck = active.turns().filter(|turn| turn.back).filter_map(|turn| {
        let left = active.stuck.get(&turn.knob)?.clone();
        Some(Kept { knob: turn.knob.clone(), base: turn.to.clone(), left })
    });
    let mut held: Vec<Kept> = stuck.filter(|kept| here || kept.knob.is_persistent()).collect();
    if active.begin.kind != Kind::Profile {
        return held;
    }
    held.extend(active.kept.clone());
    held.extend(active.turns().filter(|turn| !turn.back && !active.refused.contains(&turn.knob)).map(
        |turn| {
            let left = active.left(&turn.knob, &turn.to).clone();
            Kept { knob: turn.knob.clone(), base: turn.base.clone(), left }
        },
    ));
    held.extend(active.saves.iter().map(|save| {
        let left = active.left(&save.knob, &save.from).clone();
        Kept { knob: save.knob.clone(), base: save.base.clone(), left }
    }));
    held.retain(|kept| here || kept.knob.is_persistent());
    held
}

/// What a transaction that was put back could not put back, with the value to go back to.
pub(super) fn stuck(journal: &Journal, boot_id: &str) -> Vec<Kept> {
    let here = journal.begin.boot_id == boot_id;
    let turns = journal.turns().map(|turn| (&turn.knob, if turn.back { &turn.from } else { &turn.base }));
    let saves = journal.saves.iter().map(|save| (&save.knob, &save.base));
    let stuck = turns.chain(saves).filter_map(|(knob, base)| {
        let left = journal.stuck.get(knob)?.clone();
        Some(Kept { knob: knob.clone(), base: base.clone(), left })
    });
    stuck.filter(|kept| here || kept.knob.is_persistent()).collect()
}

/// What ends the active profile, in the reverse of its own order: an act that came before a file is undone when the file
/// is back. A turn stands for the knob that is held.
fn ends(active: Option<&Journal>, held: &[Kept], boot_id: &str) -> Vec<Deed> {
    let turn = |kept: &Kept| {
        let (knob, from, to) = (kept.knob.clone(), kept.left.clone(), kept.base.clone());
        let base = to.clone();
        Deed::Turn(Turn { knob, from, to, alternatives: Vec::new(), base, back: true })
    };
    let deeds = active.map_or(&[][..], |active| &active.deeds);
    let here = active.is_some_and(|active| active.begin.boot_id == boot_id);
    let mut ends = Vec::new();
    for deed in deeds.iter().rev() {
        match deed {
            Deed::Turn(done) => ends.extend(held.iter().find(|kept| kept.knob == done.knob).map(turn)),
            Deed::Run(Run { act, undo: Some(undo), back: false }) if here => {
                ends.push(Deed::Run(Run { act: undo.clone(), undo: Some(act.clone()), back: true }));
            }
            Deed::Run(_) => {}
        }
    }
    let rest = held
        .iter()
        .rev()
        .filter(|kept| deeds.iter().all(|deed| !matches!(deed, Deed::Turn(turn) if turn.knob == kept.knob)));
    ends.extend(rest.map(turn));
    ends
}

fn push_back(journal: &mut Journal, knob: &Knob, from: Value, to: Value) {
    let (knob, base) = (knob.clone(), to.clone());
    journal.deeds.push(Deed::Turn(Turn { knob, from, to, alternatives: Vec::new(), base, back: true }));
}

fn add_saves(host: &dyn Host, journal: &mut Journal, base_of: &dyn Fn(&Knob, &Value) -> Value) {
    let turned: HashSet<Knob> = journal.turns().map(|turn| turn.knob.clone()).collect();
    for knob in Moves::by_any(&turned).here(host) {
        if turned.contains(&knob) {
            continue;
        }
        if let Ok(from) = value(host, &knob) {
            let base = base_of(&knob, &from);
            journal.saves.push(Save { knob, from, base });
        }
    }
}
