//! The longest wake-up latency that CPUs may have, held as long as a file is open.

use std::{io, os::fd::OwnedFd};

use rustix::fs::{Mode, OFlags};

/// A limit on the wake-up latency of all CPUs. It is gone when dropped, or when this process ends, however it ends.
#[derive(Debug)]
pub struct HeldLatency {
    _device: OwnedFd,
}

/// Lets no CPU enter an idle state that takes longer to leave (Documentation/power/pm_qos_interface.rst: the device
/// takes a binary `s32` in microseconds).
pub fn hold_cpu_dma_latency(latency_us: u32) -> io::Result<HeldLatency> {
    let flags = OFlags::WRONLY | OFlags::CLOEXEC | OFlags::NOFOLLOW;
    let device = rustix::fs::open("/dev/cpu_dma_latency", flags, Mode::empty())?;
    let latency_us = i32::try_from(latency_us).unwrap_or(i32::MAX);
    rustix::io::write(&device, &latency_us.to_ne_bytes())?;
    Ok(HeldLatency { _device: device })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Host, LiveHost};

    #[test]
    fn a_limit_is_there_as_long_as_it_is_held() {
        let shown = || LiveHost.read("/dev/cpu_dma_latency");
        let Ok(before) = shown() else { return };
        let Ok(held) = hold_cpu_dma_latency(77) else { return };
        let at_most = |bytes: &[u8]| bytes.try_into().map(i32::from_ne_bytes).is_ok_and(|us| us <= 77);
        assert!(at_most(&shown().unwrap()));
        drop(held);
        assert_eq!(shown().unwrap(), before);
    }
}
