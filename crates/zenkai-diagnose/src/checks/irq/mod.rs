//! Checks of the irq subsystem, worst first.

mod irq_default_affinity_narrow;
mod irq_on_isolated_cpu;
mod irq_one_cpu;
mod irqbalance_missing;
mod shared;

use crate::Check;

/// The list.
pub static CHECKS: &[&Check] = &[
    &irqbalance_missing::CHECK,
    &irq_one_cpu::CHECK,
    &irq_on_isolated_cpu::CHECK,
    &irq_default_affinity_narrow::CHECK,
];
