//! What the profile in force holds, for planning the next one.

use std::collections::HashMap;

use zenkai_host::{Host, Knob, Value};

use super::{Store, TransactionError, boot_id, canonical, find_active, find_stuck, journal::Kept, prepare};
use crate::same;

/// The knobs that the profile in force holds, with their values from before it. A profile is planned for the machine as
/// it was before: what takes the place of another one must not build upon it, and planning what is in force already must
/// give the same plan again.
#[derive(Debug, Clone, Default)]
pub struct Held(HashMap<Knob, Kept>);

impl Held {
    /// From the journals in this state directory, which must be this machine's.
    pub fn read(host: &dyn Host, store: &Store) -> Result<Self, TransactionError> {
        let Some(boot_id) = boot_id(host) else { return Ok(Self::default()) };
        let active = find_active(store)?;
        let stuck = find_stuck(store, active.as_ref().map_or(0, |active| active.id), &boot_id)?;
        let held = prepare::held_now(active.as_ref(), stuck, &boot_id);
        // Where a knob is held twice the first counts, as in `prepare`.
        Ok(Self(held.into_iter().rev().map(|kept| (kept.knob.clone(), kept)).collect()))
    }

    /// What the knob showed before the profile in force; `now` where that does not hold it, or where somebody else has
    /// changed it since.
    pub fn before(&self, knob: &Knob, now: Value) -> Value {
        if self.0.is_empty() {
            return now;
        }
        match self.0.get(&canonical(knob)) {
            Some(kept) if same(&kept.left, &now) => kept.base.clone(),
            _ => now,
        }
    }
}
