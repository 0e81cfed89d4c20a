//! What the checks of interrupts share.
