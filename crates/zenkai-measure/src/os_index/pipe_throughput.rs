//! Bytes through a pipe within one process: no context switch, only the copies and the system calls.

use std::io::{self, Read, Write};

use super::{Bench, Test};

/// Less than a page and less than `PIPE_BUF`, as most messages are.
const BLOCK: usize = 512;

pub(super) struct PipeThroughput;

impl Test for PipeThroughput {
    fn name(&self) -> &'static str {
        "pipe"
    }

    fn unit(&self) -> &'static str {
        "B/s"
    }

    fn what(&self) -> &'static str {
        "bytes written to and read from a pipe, 512 at a time"
    }

    fn run(&self, bench: &Bench) -> io::Result<f64> {
        let (mut reader, mut writer) = io::pipe()?;
        let mut block = [1_u8; BLOCK];
        let rate = bench.rate(|times| {
            for _ in 0..times {
                writer.write_all(&block)?;
                reader.read_exact(&mut block)?;
            }
            Ok(())
        })?;
        Ok(rate * crate::statistics::real(BLOCK))
    }
}
