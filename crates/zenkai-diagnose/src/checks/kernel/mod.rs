//! Checks of the kernel subsystem, worst first.

mod clock_read_enters_kernel;
mod system_call_dear;

use crate::Check;

/// The list.
pub static CHECKS: &[&Check] = &[&clock_read_enters_kernel::CHECK, &system_call_dear::CHECK];
