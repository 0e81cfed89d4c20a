//! Copying a file block by block, from and to the page cache: the file system's path, not the disk's speed.

use std::fs::{File, OpenOptions};
use std::io::{self, Read, Seek, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use rustix::fs::OFlags;

use super::{Bench, Test};

/// Small enough to be copied before anything is written back.
const FILE: usize = 1024 * 1024;

pub(super) struct Copy {
    pub(super) name: &'static str,
    pub(super) block: usize,
}

impl Test for Copy {
    fn name(&self) -> &'static str {
        self.name
    }

    fn unit(&self) -> &'static str {
        "B/s"
    }

    fn what(&self) -> &'static str {
        match self.block {
            256 => "bytes of a file of 1 MiB copied, 256 B at a time",
            1024 => "bytes of a file of 1 MiB copied, 1 KiB at a time",
            _ => "bytes of a file of 1 MiB copied, 4 KiB at a time",
        }
    }

    fn run(&self, bench: &Bench) -> io::Result<f64> {
        let explain =
            |error: io::Error| io::Error::new(error.kind(), format!("{}: {error}", bench.dir.display()));
        let mut source = nameless(&bench.dir).map_err(explain)?;
        let mut target = nameless(&bench.dir).map_err(explain)?;
        source.write_all(&vec![b'z'; FILE]).map_err(explain)?;
        let mut block = vec![0; self.block];
        let rate = bench.rate(|times| {
            for _ in 0..times {
                source.rewind()?;
                target.rewind()?;
                for _ in 0..FILE / self.block {
                    source.read_exact(&mut block)?;
                    target.write_all(&block)?;
                }
            }
            Ok(())
        })?;
        Ok(rate * crate::statistics::real(FILE))
    }
}

/// A file that has no name and goes when it is closed, whatever happens (O_TMPFILE in open(2)).
fn nameless(dir: &Path) -> io::Result<File> {
    let flags = i32::try_from((OFlags::TMPFILE | OFlags::CLOEXEC).bits()).unwrap_or(0);
    OpenOptions::new().read(true).write(true).custom_flags(flags).open(dir)
}
