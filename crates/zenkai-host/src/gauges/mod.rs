//! Reading the live machine again and again: files that stay open, performance counters, clocks.
//!
//! [`Host`](crate::Host) is for looking once. What is read a hundred times a second must cost a system call and
//! nothing more, so these go straight to the machine we run on, never to a capture.

mod clock;
mod file;
mod perf;
mod process;
mod wait;

pub use crate::live::ipmi::Controller;
pub use clock::{Moment, pin_this_thread, real_time_ns, thread_cpu_ns};
pub use file::{Gauge, Register};
pub use perf::{Count, Counter, Event, Subject};
pub use process::ProcessTable;
pub(crate) use wait::with_no_signal_blocked;
pub use wait::{Happened, Interrupt, Process, Sent, wait};
