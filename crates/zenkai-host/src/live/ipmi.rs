//! Requests to the local BMC through the kernel's IPMI driver (`linux/ipmi.h`).

use std::io;

use rustix::io::Errno;

use crate::Reply;

/// Sends one request and waits at most two seconds for its answer.
pub(super) fn query(_netfn: u8, _command: u8, _data: &[u8]) -> io::Result<Reply> {
    Err(Errno::OPNOTSUPP.into())
}
