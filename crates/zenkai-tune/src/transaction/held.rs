//! What the profile in force holds, for planning the next one.

use std::collections::HashMap;

use zenkai_host::{Act, Host, Knob, Value};

use super::{
    Kind, Store, TransactionError, boot_id, canonical, find_in_force,
    journal::{Deed, Journal, Kept},
    prepare,
};
use crate::same;

/// The knobs that the profile in force holds, with their values from before it. A profile is planned for the machine as
/// it was before: what takes the place of another one must not build upon it, and planning what is in force already must
/// give the same plan again.
#[derive(Debug, Clone, Default)]
pub struct Held {
    knobs: HashMap<Knob, Kept>,
    /// What the profile in force has run since the boot.
    ran: Vec<Act>,
}

impl Held {
    /// From the journals in this state directory, which must be this machine's.
    pub fn read(host: &dyn Host, store: &Store) -> Result<Self, TransactionError> {
        boot_id(host).map_or_else(|| Ok(Self::default()), |boot_id| Self::of(store, &boot_id))
    }

    pub(super) fn of(store: &Store, boot_id: &str) -> Result<Self, TransactionError> {
        let (active, lingering) = find_in_force(store)?;
        let stuck = lingering.iter().flat_map(|journal| prepare::stuck(journal, boot_id)).collect();
        let held = prepare::held_now(active.as_ref(), stuck, boot_id);
        // Where a knob is held twice the first counts, as in `prepare`.
        let knobs = held.into_iter().rev().map(|kept| (kept.knob.clone(), kept)).collect();
        let here = |active: &Journal| active.begin.kind == Kind::Profile && active.begin.boot_id == boot_id;
        let deeds = active.filter(here).map(|active| active.deeds).unwrap_or_default();
        let ran = deeds.into_iter().filter_map(|deed| match deed {
            Deed::Run(run) if !run.back => Some(run.act),
            _ => None,
        });
        Ok(Self { knobs, ran: ran.collect() })
    }

    /// Whether the profile in force has run this since the boot.
    pub(crate) fn has_run(&self, act: &Act) -> bool {
        self.ran.contains(act)
    }

    /// What the knob showed before the profile in force; `now` where that does not hold it, or where somebody else has
    /// changed it since.
    pub fn before(&self, knob: &Knob, now: Value) -> Value {
        if self.knobs.is_empty() {
            return now;
        }
        match self.knobs.get(&canonical(knob)) {
            Some(kept) if same(&kept.left, &now) => kept.base.clone(),
            _ => now,
        }
    }
}
