//! Two processes that wait for each other by turns: each round trip is two wake-ups and two switches.

use std::io::{self, Read, Write};
use std::process::Stdio;

use super::{Bench, Test, again};

pub(super) struct PipeSwitch;

impl Test for PipeSwitch {
    fn name(&self) -> &'static str {
        "pipe-switch"
    }

    fn what(&self) -> &'static str {
        "round trips of four bytes between two processes"
    }

    fn run(&self, bench: &Bench) -> io::Result<f64> {
        let mut command = again(&bench.program);
        command.arg("--peer").stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn()?;
        let (to, from) = (child.stdin.take(), child.stdout.take());
        let (mut to, mut from) = to.zip(from).ok_or(io::ErrorKind::BrokenPipe)?;
        let mut message = [7_u8; 4];
        let rate = bench.rate(|times| {
            for _ in 0..times {
                to.write_all(&message)?;
                from.read_exact(&mut message)?;
            }
            Ok(())
        });
        // The end of its input ends the other process.
        drop(to);
        child.wait()?;
        rate
    }
}

/// The other process: sends back what comes, until nothing comes any more.
pub fn peer(mut from: impl Read, to: &mut dyn Write) -> io::Result<()> {
    let mut message = [0; 4];
    loop {
        match from.read_exact(&mut message) {
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(()),
            result => result?,
        }
        to.write_all(&message)?;
        to.flush()?;
    }
}
