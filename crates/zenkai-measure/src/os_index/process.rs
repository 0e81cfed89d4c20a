//! Making a process: fork, exit, wait. Copying page tables, the scheduler and the PID table are in it.

use std::io;

use super::{Bench, Test};

pub(super) struct Process;

impl Test for Process {
    fn name(&self) -> &'static str {
        "process"
    }

    fn what(&self) -> &'static str {
        "processes forked, ended and waited for"
    }

    fn run(&self, bench: &Bench) -> io::Result<f64> {
        bench.rate(|times| (0..times).try_for_each(|_| zenkai_host::workload::fork_and_wait()))
    }
}
