//! Running what is no knob.

use std::io;

use rustix::io::Errno;

use crate::{Act, Finished};

pub(super) fn run(_act: &Act) -> io::Result<Finished> {
    Err(Errno::OPNOTSUPP.into())
}
