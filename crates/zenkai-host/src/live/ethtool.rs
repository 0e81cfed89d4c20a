//! The ethtool ioctl (`linux/ethtool.h`, `linux/sockios.h`).

use std::io;

use rustix::io::Errno;

use crate::{EthtoolRequest, Reply};

/// Asks one network device.
pub(super) fn query(_device: &str, _request: EthtoolRequest) -> io::Result<Reply> {
    Err(Errno::OPNOTSUPP.into())
}
