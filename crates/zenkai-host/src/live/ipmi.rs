//! Requests to the management controller through the kernel's IPMI driver (`include/uapi/linux/ipmi.h`,
//! `drivers/char/ipmi/ipmi_devintf.c`, `Documentation/driver-api/ipmi.rst`).

#![expect(unsafe_code, reason = "the driver is reached by ioctl only")]

use std::{
    ffi::{c_int, c_long, c_short},
    io,
    os::fd::OwnedFd,
    time::{Duration, Instant},
};

use rustix::{
    event::{PollFd, PollFlags, poll},
    fs::{Mode, OFlags},
    io::Errno,
    ioctl::{self, Opcode, Setter, Updater, opcode},
};

use crate::{
    Reply,
    dcmi::{GROUP_EXTENSION, POWER_READING},
};

/// The requests that may be sent: they ask and change nothing. Whatever else a controller can do, such as cutting the
/// power, is out of reach of this door.
const READING_ONLY: [(u8, u8); 3] = [
    (0x06, 0x01), // Get Device ID
    (GROUP_EXTENSION, POWER_READING),
    (GROUP_EXTENSION, 0x03), // DCMI Get Power Limit
];

/// A controller that answers at all answers in milliseconds.
const TIMEOUT: Duration = Duration::from_secs(2);

/// `IPMI_MAX_MSG_LENGTH`.
const ANSWER_LIMIT: u16 = 272;

/// `IPMI_MAX_ADDR_SIZE`.
const ADDRESS_LIMIT: usize = 40;

/// `IPMI_SYSTEM_INTERFACE_ADDR_TYPE` and `IPMI_BMC_CHANNEL`: the controller of this very machine.
const SYSTEM_INTERFACE: c_int = 0x0c;
const OWN_CHANNEL: c_short = 0x0f;

/// `struct ipmi_system_interface_addr`.
#[repr(C)]
struct SystemAddress {
    kind: c_int,
    channel: c_short,
    lun: u8,
}

/// `struct ipmi_msg`.
#[repr(C)]
struct Message {
    netfn: u8,
    command: u8,
    length: u16,
    data: *mut u8,
}

/// `struct ipmi_req`.
#[repr(C)]
struct Request {
    address: *mut SystemAddress,
    address_length: u32,
    id: c_long,
    message: Message,
}

/// `struct ipmi_recv`.
#[repr(C)]
struct Received {
    kind: c_int,
    address: *mut u8,
    address_length: u32,
    id: c_long,
    message: Message,
}

/// `IPMICTL_SEND_COMMAND`.
const SEND_COMMAND: Opcode = opcode::read::<Request>(b'i', 13);
/// `IPMICTL_RECEIVE_MSG_TRUNC`: a message that is too long is cut instead of left in the queue.
const RECEIVE_MESSAGE: Opcode = opcode::read_write::<Received>(b'i', 11);

/// Sends one request and waits at most two seconds for its answer.
pub(super) fn query(netfn: u8, command: u8, data: &[u8]) -> io::Result<Reply> {
    reads_only(netfn, command)?;
    Ok(Reply::Bytes(Controller::open()?.ask(netfn, command, data, TIMEOUT)?))
}

/// `EOPNOTSUPP` for a request that could change something.
fn reads_only(netfn: u8, command: u8) -> io::Result<()> {
    if READING_ONLY.contains(&(netfn, command)) { Ok(()) } else { Err(Errno::OPNOTSUPP.into()) }
}

/// The management controller of this machine, to be asked again and again (`/dev/ipmi0`).
#[derive(Debug)]
pub struct Controller {
    device: OwnedFd,
    /// Number of the last request: an answer that came too late must not be taken for a later one's.
    request: c_long,
}

impl Controller {
    /// Opens the device. That takes no answer of the controller.
    ///
    /// Errors: `ENOENT` without a controller or without the module `ipmi_devintf`, `EACCES` for all but root, `EBUSY`
    /// when more than 30 others have it open (`max_users` in `drivers/char/ipmi/ipmi_msghandler.c`).
    pub fn open() -> io::Result<Self> {
        let device = rustix::fs::open("/dev/ipmi0", OFlags::RDWR | OFlags::CLOEXEC, Mode::empty())?;
        Ok(Self { device, request: 0 })
    }

    /// Sends one request that reads and waits for its answer, which begins with a completion code.
    ///
    /// Errors: `ETIMEDOUT` when none came within `patience`; `EOPNOTSUPP` for a request that could change something.
    pub fn ask(&mut self, netfn: u8, command: u8, data: &[u8], patience: Duration) -> io::Result<Vec<u8>> {
        reads_only(netfn, command)?;
        let until = Instant::now() + patience;
        self.request = self.request.wrapping_add(1);
        send(&self.device, self.request, netfn, command, data)?;
        loop {
            let left = until.saturating_duration_since(Instant::now());
            let left = left.try_into().map_err(|_| Errno::INVAL)?;
            let mut ready = [PollFd::new(&self.device, PollFlags::IN)];
            match poll(&mut ready, Some(&left)) {
                Ok(0) => return Err(Errno::TIMEDOUT.into()),
                Ok(_) => {}
                Err(Errno::INTR) => continue,
                Err(error) => return Err(error.into()),
            }
            if let (request, answer) = receive(&self.device)?
                && request == self.request
            {
                return Ok(answer);
            }
        }
    }
}

fn send(device: &OwnedFd, id: c_long, netfn: u8, command: u8, data: &[u8]) -> io::Result<()> {
    let mut address = SystemAddress { kind: SYSTEM_INTERFACE, channel: OWN_CHANNEL, lun: 0 };
    let mut data = data.to_vec();
    let length = u16::try_from(data.len()).map_err(|_| Errno::MSGSIZE)?;
    let request = Request {
        address: &raw mut address,
        address_length: u32::try_from(size_of::<SystemAddress>()).unwrap_or(0),
        id,
        message: Message { netfn, command, length, data: data.as_mut_ptr() },
    };
    // SAFETY: the number is made for `Request`, which is laid out as `struct ipmi_req`.
    let command = unsafe { Setter::<SEND_COMMAND, Request>::new(request) };
    // SAFETY: the kernel only reads `address` and `length` bytes of `data`, both alive until it returns.
    unsafe { ioctl::ioctl(device, command) }?;
    Ok(())
}

/// An answer, and the number of the request that it belongs to.
fn receive(device: &OwnedFd) -> io::Result<(c_long, Vec<u8>)> {
    let mut address = [0_u8; ADDRESS_LIMIT];
    let mut answer = vec![0_u8; usize::from(ANSWER_LIMIT)];
    let mut received = Received {
        kind: 0,
        address: address.as_mut_ptr(),
        address_length: u32::try_from(address.len()).unwrap_or(0),
        id: 0,
        message: Message { netfn: 0, command: 0, length: ANSWER_LIMIT, data: answer.as_mut_ptr() },
    };
    // SAFETY: the number is made for `Received`, which is laid out as `struct ipmi_recv`.
    let command = unsafe { Updater::<RECEIVE_MESSAGE, Received>::new(&mut received) };
    // SAFETY: the kernel writes at most the stated lengths into `address` and `answer`, both alive until it returns,
    // and writes only plain numbers into `received`.
    unsafe { ioctl::ioctl(device, command) }?;
    answer.truncate(usize::from(received.message.length));
    Ok((received.id, answer))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[cfg(target_pointer_width = "64")]
    fn laid_out_as_the_kernel_does() {
        assert_eq!(size_of::<SystemAddress>(), 8);
        assert_eq!((size_of::<Request>(), size_of::<Received>()), (40, 48));
        // _IOR('i', 13, struct ipmi_req), _IOWR('i', 11, struct ipmi_recv).
        assert_eq!((SEND_COMMAND, RECEIVE_MESSAGE), (0x8028_690d, 0xc030_690b));
    }

    #[test]
    fn commands_that_change_something_stay_out() {
        let chassis_control = query(0x00, 0x02, &[0]).unwrap_err();
        assert_eq!(chassis_control.raw_os_error(), Some(Errno::OPNOTSUPP.raw_os_error()));
    }
}
