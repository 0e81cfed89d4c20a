//! The table of a mapped device, through the device mapper's control device (`linux/dm-ioctl.h`).

use std::{ffi::c_void, io, ptr};

use rustix::{
    fs::{Mode, OFlags},
    io::Errno,
    ioctl::{Ioctl, IoctlOutput, Opcode},
};

use crate::Reply;

/// `DM_TABLE_STATUS`: `_IOWR(0xfd, 12, struct dm_ioctl)`.
const DM_TABLE_STATUS: Opcode = 0xc138_fd0c;
/// Asks for the table, not for the targets' state.
const DM_STATUS_TABLE_FLAG: u32 = 1 << 4;
/// The kernel had more to say than there was room for.
const DM_BUFFER_FULL_FLAG: u32 = 1 << 8;
/// `sizeof(struct dm_ioctl)`.
const HEAD_SIZE: usize = 312;
/// `sizeof(struct dm_target_spec)`.
const TARGET_SIZE: usize = 40;
/// Room for some hundred targets; a volume with more is told as `E2BIG`, not in part.
const BUFFER_SIZE: usize = 64 * 1024;
/// The interface since Linux 2.6; the kernel refuses only another major version.
const VERSION: [u32; 3] = [4, 0, 0];

/// The targets of the device with this number, one a line: start and length in sectors, type, parameters.
///
/// A dm-crypt table may hold the key itself, so such a target is answered with its type alone: the parameters never
/// leave this function.
pub(super) fn table(major: u32, minor: u32) -> io::Result<Reply> {
    let control = rustix::fs::open("/dev/mapper/control", OFlags::RDWR | OFlags::CLOEXEC, Mode::empty())?;
    let mut buffer = vec![0_u8; BUFFER_SIZE];
    for (place, word) in VERSION.iter().enumerate() {
        put(&mut buffer, place * 4, *word);
    }
    put(&mut buffer, 12, u32::try_from(BUFFER_SIZE).map_err(|_| Errno::INVAL)?);
    put(&mut buffer, 16, u32::try_from(HEAD_SIZE).map_err(|_| Errno::INVAL)?);
    put(&mut buffer, 28, DM_STATUS_TABLE_FLAG);
    // `huge_encode_dev()`; the upper half stays zero for every number there is.
    put(&mut buffer, 40, (minor & 0xff) | (major << 8) | ((minor & !0xff) << 12));
    call(&control, &mut buffer)?;
    if word(&buffer, 28).ok_or(Errno::PROTO)? & DM_BUFFER_FULL_FLAG != 0 {
        return Err(Errno::TOOBIG.into());
    }
    targets(&buffer).map(Reply::Text).ok_or_else(|| Errno::PROTO.into())
}

/// `struct dm_ioctl` and the room behind it, which the kernel fills up to the size written at its start.
#[repr(transparent)]
struct Request(*mut c_void);

// SAFETY: the command takes a pointer to `struct dm_ioctl` whose `data_size` says how much may be written; `call` passes
// a buffer of that size.
#[expect(unsafe_code, reason = "an ioctl has no safe form")]
unsafe impl Ioctl for Request {
    type Output = ();

    const IS_MUTATING: bool = true;

    fn opcode(&self) -> Opcode {
        DM_TABLE_STATUS
    }

    fn as_ptr(&mut self) -> *mut c_void {
        self.0
    }

    unsafe fn output_from_ptr(_: IoctlOutput, _: *mut c_void) -> rustix::io::Result<()> {
        Ok(())
    }
}

#[expect(unsafe_code, reason = "an ioctl has no safe form")]
fn call(control: &std::os::fd::OwnedFd, buffer: &mut [u8]) -> io::Result<()> {
    let request = Request(ptr::from_mut(buffer).cast());
    // SAFETY: the buffer is live and writable, its `data_size` field holds its length, and this command reads only.
    unsafe { rustix::ioctl::ioctl(control, request) }?;
    Ok(())
}

/// The lines of all targets; `None` when the answer does not hold together.
fn targets(buffer: &[u8]) -> Option<String> {
    let start = usize::try_from(word(buffer, 16)?).ok()?;
    let count = word(buffer, 20)?;
    let mut lines = String::new();
    let mut at = start;
    // Each target takes at least its head: more of them than fit are a broken answer.
    for _ in 0..count.min(u32::try_from(BUFFER_SIZE / TARGET_SIZE).ok()?) {
        let head = buffer.get(at..at.checked_add(TARGET_SIZE)?)?;
        let kind = text(head.get(24..)?)?;
        let parameters = text(buffer.get(at.checked_add(TARGET_SIZE)?..)?)?;
        let parameters = if kind == "crypt" { "" } else { parameters };
        let (first, length) = (long(head, 0)?, long(head, 8)?);
        lines.push_str(format!("{first} {length} {kind} {parameters}").trim_end());
        lines.push('\n');
        at = start.checked_add(usize::try_from(word(head, 20)?).ok()?)?;
    }
    Some(lines)
}

fn put(buffer: &mut [u8], at: usize, value: u32) {
    buffer.iter_mut().skip(at).zip(value.to_ne_bytes()).for_each(|(place, byte)| *place = byte);
}

fn word(buffer: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_ne_bytes(buffer.get(at..at.checked_add(4)?)?.try_into().ok()?))
}

fn long(buffer: &[u8], at: usize) -> Option<u64> {
    Some(u64::from_ne_bytes(buffer.get(at..at.checked_add(8)?)?.try_into().ok()?))
}

/// Up to the first NUL.
fn text(bytes: &[u8]) -> Option<&str> {
    std::str::from_utf8(bytes.split(|byte| *byte == 0).next()?).ok()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn answer(targets: &[(u64, u64, &str, &str)]) -> Vec<u8> {
        let mut buffer = vec![0_u8; 4096];
        put(&mut buffer, 16, 312);
        put(&mut buffer, 20, u32::try_from(targets.len()).unwrap());
        let mut at = 312;
        for (first, length, kind, parameters) in targets {
            let next = at + TARGET_SIZE + parameters.len() + 1;
            buffer[at..at + 8].copy_from_slice(&first.to_ne_bytes());
            buffer[at + 8..at + 16].copy_from_slice(&length.to_ne_bytes());
            put(&mut buffer, at + 20, u32::try_from(next - 312).unwrap());
            buffer[at + 24..at + 24 + kind.len()].copy_from_slice(kind.as_bytes());
            let text = at + TARGET_SIZE;
            buffer[text..text + parameters.len()].copy_from_slice(parameters.as_bytes());
            at = next;
        }
        buffer
    }

    #[test]
    fn keys_stay_where_they_are() {
        let buffer = answer(&[
            (0, 100, "striped", "2 256 8:0 2048 8:16 2048"),
            (100, 50, "crypt", "aes-xts 00112233445566778899 0 8:32 4096"),
        ]);
        assert_eq!(targets(&buffer).unwrap(), "0 100 striped 2 256 8:0 2048 8:16 2048\n100 50 crypt\n");
    }

    proptest! {
        #[test]
        fn broken_answers_never_panic(bytes in proptest::collection::vec(any::<u8>(), 0..600), count in 0_u32..9) {
            let mut bytes = bytes;
            put(&mut bytes, 16, 312);
            put(&mut bytes, 20, count);
            let _ = targets(&bytes);
        }
    }
}
