//! What several checks ask of the kind of machine.

use zenkai_facts::Facts;

use crate::Outcome;

/// For rules about real hardware: guests and containers are let out.
pub(in crate::checks) fn needs_hardware(facts: &Facts) -> Result<(), Outcome> {
    if facts.virtualisation.is_guest() == Some(true) {
        return Err(Outcome::not_applicable("the hardware belongs to the hypervisor"));
    }
    if facts.virtualisation.is_container() == Some(true) {
        return Err(Outcome::not_applicable("the hardware belongs to the container's host"));
    }
    Ok(())
}

/// A share in thousandths as per cent with one decimal.
pub(in crate::checks) fn per_cent(per_mille: u64) -> String {
    format!("{}.{} %", per_mille / 10, per_mille % 10)
}
