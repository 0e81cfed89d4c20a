//! The ethtool ioctl (`linux/ethtool.h`, `linux/sockios.h`).
//!
//! Every request is one byte buffer in the kernel's layout: filled and read here with checked accesses, so that
//! the only unsafe step is the system call itself. Only "get" commands are sent from here; all but wake-on-LAN may be
//! asked for without privilege (`dev_ethtool()` in `net/ethtool/ioctl.c`). `ethtool_set.rs` sends the others.

pub(super) mod layout;
mod link_modes;

use std::{ffi::c_void, io, os::fd::OwnedFd, ptr};

use rustix::{
    io::Errno,
    ioctl::{Ioctl, IoctlOutput, Opcode},
    net::{AddressFamily, SocketFlags, SocketType},
};

use crate::{EthtoolRequest, Reply};

/// `SIOCETHTOOL`.
const SIOCETHTOOL: Opcode = 0x8946;
/// `IFNAMSIZ`, the terminating NUL included.
const NAME_SIZE: usize = 16;
/// More counters or features than any driver has; a larger count from the kernel is refused.
const COUNT_LIMIT: usize = 65_536;
/// Room behind every buffer whose length the driver chooses: the kernel writes as many entries as the driver has
/// at that moment, and a driver may have gained queues since it was asked for the count.
const SLACK: usize = 64 * 1024;
/// `ETH_GSTRING_LEN`.
const STRING_SIZE: usize = 32;
/// `ETH_SS_STATS` and `ETH_SS_FEATURES`.
const SET_STATISTICS: u32 = 1;
pub(super) const SET_FEATURES: u32 = 4;

const GDRVINFO: u32 = 0x03;
pub(super) const GWOL: u32 = 0x05;
pub(super) const GCOALESCE: u32 = 0x0e;
pub(super) const GRINGPARAM: u32 = 0x10;
pub(super) const GPAUSEPARAM: u32 = 0x12;
const GSTRINGS: u32 = 0x1b;
const GSTATS: u32 = 0x1d;
const GSSET_INFO: u32 = 0x37;
const GFEATURES: u32 = 0x3a;
pub(super) const GCHANNELS: u32 = 0x3c;
const GEEE: u32 = 0x44;
const GLINKSETTINGS: u32 = 0x4c;

/// Asks one network device.
pub(super) fn query(device: &str, request: EthtoolRequest) -> io::Result<Reply> {
    let device = Device::open(device)?;
    let parsed = match request {
        EthtoolRequest::Driver => layout::driver(&device.ask(GDRVINFO, 196)?),
        EthtoolRequest::Link => layout::link(&device.link()?),
        EthtoolRequest::Rings => layout::words(&device.ask(GRINGPARAM, 36)?, &layout::RINGS),
        EthtoolRequest::Channels => layout::words(&device.ask(GCHANNELS, 36)?, &layout::CHANNELS),
        EthtoolRequest::Coalesce => layout::words(&device.ask(GCOALESCE, 92)?, &layout::COALESCE),
        EthtoolRequest::Pause => layout::words(&device.ask(GPAUSEPARAM, 16)?, &layout::PAUSE),
        EthtoolRequest::Eee => layout::words(&device.ask(GEEE, 40)?, &layout::EEE),
        EthtoolRequest::WakeOnLan => layout::words(&device.ask(GWOL, 20)?, &layout::WAKE_ON_LAN),
        EthtoolRequest::Features => device.features()?,
        EthtoolRequest::Statistics => device.statistics()?,
    };
    // A kernel that answers with less than it promised is a broken kernel, not a missing feature.
    parsed.ok_or_else(|| Errno::PROTO.into())
}

/// `struct ifreq` as this ioctl uses it: the name and a pointer, then the rest of the union.
#[repr(C)]
struct Request {
    name: [u8; NAME_SIZE],
    data: *mut c_void,
    rest: [u64; 2],
}

// SAFETY: SIOCETHTOOL takes a pointer to `struct ifreq`, which `Request` spells out in full size, so the kernel
// reads and writes inside it; nothing but its `data` is followed, and `Device::call` guards that.
#[expect(unsafe_code, reason = "an ioctl has no safe form")]
unsafe impl Ioctl for Request {
    type Output = ();

    const IS_MUTATING: bool = true;

    fn opcode(&self) -> Opcode {
        SIOCETHTOOL
    }

    fn as_ptr(&mut self) -> *mut c_void {
        ptr::from_mut(self).cast()
    }

    unsafe fn output_from_ptr(_: IoctlOutput, _: *mut c_void) -> rustix::io::Result<()> {
        Ok(())
    }
}

/// A device by name, and a socket to ask through.
pub(super) struct Device {
    socket: OwnedFd,
    name: [u8; NAME_SIZE],
}

impl Device {
    pub(super) fn open(name: &str) -> io::Result<Self> {
        let bytes = name.as_bytes();
        if bytes.is_empty() || bytes.len() >= NAME_SIZE || bytes.contains(&b'/') || bytes.contains(&0) {
            return Err(Errno::INVAL.into());
        }
        let mut padded = [0; NAME_SIZE];
        padded.iter_mut().zip(bytes).for_each(|(place, byte)| *place = *byte);
        // Any socket will do: device ioctls are handled before the protocol sees them (`sock_do_ioctl()`).
        let flags = SocketFlags::CLOEXEC;
        let socket = rustix::net::socket_with(AddressFamily::UNIX, SocketType::DGRAM, flags, None)?;
        Ok(Self { socket, name: padded })
    }

    /// Sends a buffer that starts with its command and has room for all the kernel may write.
    #[expect(unsafe_code, reason = "an ioctl has no safe form")]
    pub(super) fn call(&self, buffer: &mut [u8]) -> io::Result<()> {
        let request = Request { name: self.name, data: buffer.as_mut_ptr().cast(), rest: [0; 2] };
        // SAFETY: `data` points to a live, writable buffer. Commands with a fixed answer get at least that much
        // (`ask`), the others the count the kernel named plus SLACK; alignment is the kernel's own business, it
        // copies bytes. No command here makes the kernel touch other memory of ours.
        unsafe { rustix::ioctl::ioctl(&self.socket, request) }?;
        Ok(())
    }

    /// A command whose answer has a fixed size. Newer kernels never write more than their own, older structure.
    pub(super) fn ask(&self, command: u32, size: usize) -> io::Result<Vec<u8>> {
        let mut buffer = vec![0; size];
        layout::put(&mut buffer, 0, command);
        self.call(&mut buffer)?;
        Ok(buffer)
    }

    /// The handshake of `ETHTOOL_GLINKSETTINGS`: asked with no room for masks, the kernel answers with the number
    /// of words it wants, negated; asked again with that number, it answers in full.
    fn link(&self) -> io::Result<Vec<u8>> {
        let first = self.ask(GLINKSETTINGS, layout::LINK_HEAD)?;
        let words = layout::wanted_mask_words(&first).ok_or(Errno::PROTO)?;
        let mut buffer = vec![0; layout::LINK_HEAD + 3 * 4 * usize::from(words)];
        layout::put(&mut buffer, 0, GLINKSETTINGS);
        layout::put_byte(&mut buffer, layout::LINK_MASK_WORDS, words);
        self.call(&mut buffer)?;
        Ok(buffer)
    }

    /// The names of a string set.
    pub(super) fn strings(&self, set: u32) -> io::Result<Vec<String>> {
        // struct ethtool_sset_info: command, reserved, mask of sets (64 bit), one word per set that exists.
        let mut info = vec![0; 16 + 4];
        layout::put(&mut info, 0, GSSET_INFO);
        layout::put(&mut info, if cfg!(target_endian = "big") { 12 } else { 8 }, 1 << set);
        self.call(&mut info)?;
        let mask = layout::wide(&info, 8).ok_or(Errno::PROTO)?;
        if mask == 0 {
            return Err(Errno::OPNOTSUPP.into());
        }
        let count = bounded(layout::word(&info, 16))?;
        // struct ethtool_gstrings: command, set, count, then the strings.
        let mut buffer = vec![0; 12 + count * STRING_SIZE + SLACK];
        layout::put(&mut buffer, 0, GSTRINGS);
        layout::put(&mut buffer, 4, set);
        self.call(&mut buffer)?;
        if bounded(layout::word(&buffer, 8))? != count {
            return Err(Errno::AGAIN.into());
        }
        let strings = buffer.get(12..).unwrap_or_default().chunks_exact(STRING_SIZE);
        Ok(strings.take(count).map(layout::c_string).collect())
    }

    fn features(&self) -> io::Result<Option<Reply>> {
        let names = self.strings(SET_FEATURES)?;
        let blocks = names.len().div_ceil(32);
        // struct ethtool_gfeatures: command, number of blocks, then four words a block. The kernel writes no
        // more blocks than it is offered.
        let mut buffer = vec![0; 8 + blocks * 16];
        layout::put(&mut buffer, 0, GFEATURES);
        layout::put(&mut buffer, 4, u32::try_from(blocks).unwrap_or(0));
        self.call(&mut buffer)?;
        Ok(layout::features(names, &buffer))
    }

    fn statistics(&self) -> io::Result<Option<Reply>> {
        let names = self.strings(SET_STATISTICS)?;
        if names.is_empty() {
            return Err(Errno::OPNOTSUPP.into());
        }
        // struct ethtool_stats: command, count, then 64-bit counters.
        let mut buffer = vec![0; 8 + names.len() * 8 + SLACK];
        layout::put(&mut buffer, 0, GSTATS);
        layout::put(&mut buffer, 4, u32::try_from(names.len()).unwrap_or(0));
        self.call(&mut buffer)?;
        if bounded(layout::word(&buffer, 4))? != names.len() {
            return Err(Errno::AGAIN.into());
        }
        Ok(layout::statistics(names, &buffer))
    }
}

/// A count from the kernel, unless it is absurd.
fn bounded(count: Option<u32>) -> io::Result<usize> {
    let count = usize::try_from(count.ok_or(Errno::PROTO)?).map_err(|_| Errno::PROTO)?;
    if count > COUNT_LIMIT { Err(Errno::FBIG.into()) } else { Ok(count) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_no_device_has_are_refused() {
        for name in ["", "a/b", "0123456789abcdef", "a\0b"] {
            assert_eq!(
                query(name, EthtoolRequest::Driver).unwrap_err().raw_os_error(),
                Some(Errno::INVAL.raw_os_error())
            );
        }
        let missing = query("zenkai-none", EthtoolRequest::Driver).unwrap_err();
        assert_eq!(missing.raw_os_error(), Some(Errno::NODEV.raw_os_error()));
    }

    /// The loopback device exists everywhere, even in an empty network namespace.
    #[test]
    fn loopback_answers() {
        let Reply::Named(features) = query("lo", EthtoolRequest::Features).unwrap() else { panic!() };
        assert!(features.iter().any(|(name, _)| name == "tx-tcp-segmentation"), "{features:?}");
        assert!(features.iter().all(|(_, bits)| *bits < 16));
        let rings = query("lo", EthtoolRequest::Rings).unwrap_err();
        assert_eq!(rings.raw_os_error(), Some(Errno::OPNOTSUPP.raw_os_error()));
        assert!(query("lo", EthtoolRequest::Statistics).is_err());
    }

    #[test]
    fn absurd_counts_are_refused() {
        assert!(bounded(Some(u32::MAX)).is_err());
        assert!(bounded(None).is_err());
        assert_eq!(bounded(Some(3)).unwrap(), 3);
    }
}
