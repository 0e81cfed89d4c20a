//! Power management of ATA disks, by commands that the kernel hands to the disk (`HDIO_DRIVE_CMD`,
//! Documentation/userspace-api/ioctl/hdio.rst; commands and words as in ACS-4).

use std::{io, os::fd::OwnedFd};

use rustix::{
    fs::{FileType, Mode, OFlags},
    io::Errno,
    ioctl::{self, Opcode, Updater},
};

use crate::{DiskParameter, Reply, Value};

/// `HDIO_DRIVE_CMD` (`include/uapi/linux/hdreg.h`), which is older than the scheme of ioctl numbers.
const DRIVE_COMMAND: Opcode = 0x031f;
/// Command, count, feature and number of sectors to read; the kernel writes status, error and count back.
const HEAD_SIZE: usize = 4;
/// Command codes.
const IDENTIFY_DEVICE: u8 = 0xec;
const SET_FEATURES: u8 = 0xef;
/// Features of `SET_FEATURES`.
const ENABLE_APM: u8 = 0x05;
const DISABLE_APM: u8 = 0x85;
/// The level that stands for off (`hdparm -B`).
const OFF: u8 = 255;

/// What the disk itself says now; `HDIO_GET_IDENTITY` would give what the kernel learned when it found the disk.
///
/// Errors: `EOPNOTSUPP` when it is no ATA disk, has no such feature, or cannot tell (the standby timer).
pub(super) fn value(device: &str, parameter: DiskParameter) -> io::Result<Reply> {
    if parameter != DiskParameter::Apm {
        return Err(Errno::OPNOTSUPP.into());
    }
    let mut answer = identify_request();
    run(&open(device)?, &mut answer)?;
    Ok(Reply::Text(apm_level(&answer[HEAD_SIZE..])?.to_string()))
}

/// Sets the level. Errors as for [`value`]; `EIO` when the disk refuses.
pub(super) fn set(device: &str, parameter: DiskParameter, value: &Value) -> io::Result<()> {
    if parameter != DiskParameter::Apm {
        return Err(Errno::OPNOTSUPP.into());
    }
    let level = value.text().and_then(|text| text.parse().ok()).ok_or(Errno::INVAL)?;
    run(&open(device)?, &mut apm_request(level)?)
}

fn identify_request() -> [u8; HEAD_SIZE + 512] {
    let mut request = [0; HEAD_SIZE + 512];
    request[0] = IDENTIFY_DEVICE;
    request[3] = 1;
    request
}

fn apm_request(level: u8) -> io::Result<[u8; HEAD_SIZE]> {
    match level {
        0 => Err(Errno::INVAL.into()),
        OFF => Ok([SET_FEATURES, 0, DISABLE_APM, 0]),
        _ => Ok([SET_FEATURES, level, ENABLE_APM, 0]),
    }
}

/// From words 83 (has it), 86 (has it switched on) and 91 (the level) of the disk's description.
fn apm_level(description: &[u8]) -> io::Result<u8> {
    let word =
        |at: usize| Some(u16::from_le_bytes([*description.get(2 * at)?, *description.get(2 * at + 1)?]));
    let (Some(has), Some(is_on), Some(level)) = (word(83), word(86), word(91)) else {
        return Err(Errno::PROTO.into());
    };
    // Bits 15 and 14 say whether the word means anything.
    if has >> 14 != 1 || has & 1 << 3 == 0 {
        return Err(Errno::OPNOTSUPP.into());
    }
    Ok(if is_on & 1 << 3 == 0 { OFF } else { level.to_le_bytes()[0] })
}

fn open(device: &str) -> io::Result<OwnedFd> {
    if device.is_empty() || device.contains('/') {
        return Err(Errno::INVAL.into());
    }
    // O_NONBLOCK: an empty drive is not waited for, and no pipe either.
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::CLOEXEC | OFlags::NOCTTY;
    let disk = rustix::fs::open(format!("/dev/{device}"), flags, Mode::empty())?;
    if FileType::from_raw_mode(rustix::fs::fstat(&disk)?.st_mode) != FileType::BlockDevice {
        return Err(Errno::NOTBLK.into());
    }
    Ok(disk)
}

/// Only [`identify_request`] and [`apm_request`] come here: neither touches data on the disk.
#[expect(unsafe_code, reason = "an ioctl has no safe form")]
fn run<const SIZE: usize>(disk: &OwnedFd, request: &mut [u8; SIZE]) -> io::Result<()> {
    // SAFETY: the number is the kernel's, and means a buffer of the four bytes and as many sectors as the last of them
    // says, which is what the two requests are.
    let command = unsafe { Updater::<DRIVE_COMMAND, [u8; SIZE]>::new(request) };
    // SAFETY: the buffer is alive and writable until the call returns, and of bytes, for which any value is one.
    match unsafe { ioctl::ioctl(disk, command) } {
        // Drivers of other disks do not know the ioctl; those of loop and device mapper call it invalid.
        Err(Errno::NOTTY | Errno::INVAL) => Err(Errno::OPNOTSUPP.into()),
        result => Ok(result?),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn code(result: io::Result<impl std::fmt::Debug>) -> Option<i32> {
        result.unwrap_err().raw_os_error()
    }

    #[test]
    fn the_bytes_that_reach_the_disk() {
        assert_eq!(apm_request(128).unwrap(), [0xef, 128, 0x05, 0]);
        assert_eq!(apm_request(255).unwrap(), [0xef, 0, 0x85, 0]);
        assert_eq!(code(apm_request(0)), Some(Errno::INVAL.raw_os_error()));
        let identify = identify_request();
        assert_eq!((&identify[..4], identify.len()), (&[0xec, 0, 0, 1][..], 516));
    }

    #[test]
    fn what_a_disk_says_of_itself() {
        let disk = |has: u16, is_on: u16, level: u16| {
            let mut words = [0_u16; 256];
            (words[83], words[86], words[91]) = (has, is_on, level);
            apm_level(&words.map(u16::to_le_bytes).concat())
        };
        assert_eq!(disk(0x4008, 0x0008, 0x4080).unwrap(), 0x80);
        assert_eq!(disk(0x4008, 0, 0x4080).unwrap(), 255, "switched off");
        let unsupported = Some(Errno::OPNOTSUPP.raw_os_error());
        assert_eq!(code(disk(0x4000, 8, 1)), unsupported);
        assert_eq!(code(disk(0xffff, 0xffff, 1)), unsupported, "a word that means nothing");
        assert_eq!(code(apm_level(&[0; 100])), Some(Errno::PROTO.raw_os_error()));
    }

    /// No machine of the tests has an ATA disk: what is none must say so, and nothing else may happen.
    #[test]
    fn other_devices_are_refused() {
        let apm = DiskParameter::Apm;
        assert_eq!(code(value("null", apm)), Some(Errno::NOTBLK.raw_os_error()));
        assert_eq!(code(value("../etc/passwd", apm)), Some(Errno::INVAL.raw_os_error()));
        assert_eq!(code(value("", apm)), Some(Errno::INVAL.raw_os_error()));
        assert_eq!(code(value("no-such-disk", apm)), Some(Errno::NOENT.raw_os_error()));
        assert_eq!(code(set("null", apm, &"0".into())), Some(Errno::NOTBLK.raw_os_error()));
        assert_eq!(code(set("null", apm, &"256".into())), Some(Errno::INVAL.raw_os_error()));
        assert_eq!(code(value("vda", DiskParameter::Spindown)), Some(Errno::OPNOTSUPP.raw_os_error()));
        for disk in ["vda", "loop0"].into_iter().filter(|disk| open(disk).is_ok()) {
            let unsupported = Some(Errno::OPNOTSUPP.raw_os_error());
            assert_eq!(code(value(disk, apm)), unsupported, "{disk}");
            assert_eq!(code(set(disk, apm, &"128".into())), unsupported, "{disk}");
        }
    }
}
