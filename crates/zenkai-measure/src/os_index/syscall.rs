//! The way into the kernel and back. `getppid` does next to nothing there, so that entry, exit and the mitigations on
//! that way are what is measured.

use std::{hint::black_box, io};

use super::{Bench, Test};

pub(super) struct Syscall;

impl Test for Syscall {
    fn name(&self) -> &'static str {
        "syscall"
    }

    fn what(&self) -> &'static str {
        "calls of getppid"
    }

    fn run(&self, bench: &Bench) -> io::Result<f64> {
        bench.rate(|times| {
            for _ in 0..times {
                black_box(rustix::process::getppid());
            }
            Ok(())
        })
    }
}
