//! A small BMC for QEMU's `ipmi-bmc-extern` (its "VM" serial protocol): device id, two sensors with their SDRs, and
//! DCMI power reading and limit. It is a thread of this process, one for each guest.
//!
//! A test in the guest decides what it shows, by three commands of its own (network function 0x30):
//!
//! | `ipmitool raw` | |
//! | --- | --- |
//! | `0x30 1 LOW HIGH` | the machine draws so many watts from now on |
//! | `0x30 2 MOOD` | how it takes "Get Power Reading" from now on: see [`Mood`] |
//! | `0x30 3` | how often it was asked for a power reading: low byte, high byte |

use std::io::{Read, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;

/// Bytes of the serial protocol: end of a message, end of a command, escape.
const END: u8 = 0xa0;
const END_COMMAND: u8 = 0xa1;
const ESCAPE: u8 = 0xaa;

/// IPMI completion codes.
const BUSY: u8 = 0xc0;
const BAD_COMMAND: u8 = 0xc1;
const BAD_LENGTH: u8 = 0xc7;
const NOT_PRESENT: u8 = 0xcb;
const BAD_FIELD: u8 = 0xcc;

/// A running BMC; it ends when dropped.
pub(crate) struct Bmc {
    socket: PathBuf,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Bmc {
    /// Begins to listen on a socket.
    pub(crate) fn start(socket: &Path, watts: u16) -> std::io::Result<Self> {
        let listener = UnixListener::bind(socket)?;
        let stop = Arc::new(AtomicBool::new(false));
        let seen = Arc::clone(&stop);
        let thread = std::thread::spawn(move || {
            let mut state = State::new(watts);
            for stream in listener.incoming().flatten() {
                if seen.load(Ordering::SeqCst) {
                    return;
                }
                // A guest that goes away is no failure of the BMC.
                drop(state.serve(stream));
            }
        });
        Ok(Self { socket: socket.into(), stop, thread: Some(thread) })
    }
}

impl Drop for Bmc {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::SeqCst);
        // Connecting wakes the thread. If that fails, waiting for it would take for ever.
        if let (Ok(_), Some(thread)) = (UnixStream::connect(&self.socket), self.thread.take()) {
            drop(thread.join());
        }
    }
}

/// How the BMC takes a question for its power reading.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Mood {
    /// 0: it answers.
    Well,
    /// 1: it does not answer. After 4 s QEMU gives up in its place (`hw/ipmi/ipmi_bmc_extern.c`).
    Silent,
    /// 2: it has no time.
    Busy,
    /// 3: it knows no such command.
    Unable,
    /// 4: it answers that it does not measure at the moment.
    Inactive,
    /// 5: it answers zeros, as one without a meter.
    Zeros,
}

impl Mood {
    fn of(number: u8) -> Option<Self> {
        let moods = [Self::Well, Self::Silent, Self::Busy, Self::Unable, Self::Inactive, Self::Zeros];
        moods.get(usize::from(number)).copied()
    }
}

/// What the BMC knows.
struct State {
    watts: u16,
    mood: Mood,
    /// How often it was asked for a power reading.
    asked: u16,
    limit_active: bool,
    limit_watts: u16,
    limit_action: u8,
    records: Vec<Vec<u8>>,
}

impl State {
    fn new(watts: u16) -> Self {
        let records =
            vec![sensor_record(1, "CPU Temp", 0x01, 1, 1), sensor_record(2, "Pwr Consumption", 0x0b, 6, 2)];
        let mood = Mood::Well;
        Self { watts, mood, asked: 0, limit_active: false, limit_watts: 0, limit_action: 0, records }
    }

    /// Talks to one guest until it goes away.
    fn serve(&mut self, mut stream: UnixStream) -> std::io::Result<()> {
        send(&mut stream, &[0x00, 1], END_COMMAND)?; // the version of the protocol
        let (mut message, mut escaped, mut byte) = (Vec::<u8>::new(), false, [0_u8; 1]);
        while stream.read(&mut byte)? == 1 {
            match byte[0] {
                END => {
                    // Sequence, network function and LUN, command, data, checksum.
                    if let [sequence, function, command, data @ .., _] = message.as_slice() {
                        let answer = self.handle(function >> 2, *command, data);
                        if !answer.is_empty() {
                            let mut reply = vec![*sequence, function.wrapping_add(4), *command];
                            reply.extend(answer);
                            let sum = reply.iter().fold(0_u8, |sum, byte| sum.wrapping_add(*byte));
                            reply.push(sum.wrapping_neg());
                            send(&mut stream, &reply, END)?;
                        }
                    }
                    message.clear();
                }
                END_COMMAND => message.clear(),
                ESCAPE => escaped = true,
                other => message.push(if std::mem::take(&mut escaped) { other & !0x10 } else { other }),
            }
        }
        Ok(())
    }

    /// The answer to a request: a completion code and data. Nothing at all if it does not answer.
    fn handle(&mut self, function: u8, command: u8, data: &[u8]) -> Vec<u8> {
        const GUID: &[u8; 17] = b"\0zenkai-lab-bmc-0";
        match (function, command) {
            (0x00, 0x01) => vec![0, 0x21, 0, 0, 0], // chassis: on
            (0x04, 0x27) => vec![0; 8],             // thresholds: none
            (0x04, 0x2d) => match data.first() {
                Some(1) => vec![0, 62, 0xc0, 0xc0],
                Some(2) => vec![0, u8::try_from(self.watts / 2).unwrap_or(u8::MAX), 0xc0, 0xc0],
                _ => vec![NOT_PRESENT],
            },
            (0x06, 0x01) => vec![0, 0x20, 1, 1, 0x10, 2, 0x9f, 0x57, 1, 0, 1, 0], // device id
            (0x06, 0x04) => vec![0, 0x55, 0],                                     // self test passed
            (0x06, 0x08 | 0x37) => GUID.to_vec(),
            (0x06, 0x2e | 0x30) => vec![0],
            (0x06, 0x2f | 0x31) => vec![0, 0], // global enables, message flags
            (0x06, 0x42) => match data.first().map(|channel| channel & 15) {
                Some(channel @ (0 | 15)) => vec![0, channel, 12, 5, 0x81, 0xf2, 0x1b, 0, 0, 0],
                _ => vec![BAD_FIELD],
            },
            (0x0a, 0x20) => {
                let count = u8::try_from(self.records.len()).unwrap_or(u8::MAX);
                [&[0, 0x51, count, 0, 0xff, 0xff], [0; 8].as_slice(), &[2]].concat()
            }
            (0x0a, 0x22) => vec![0, 1, 0], // reservation 1
            (0x0a, 0x23) => self.record(data),
            (0x30, _) => self.ordered(command, data),
            (0x2c, _) if data.first() == Some(&0xdc) => self.dcmi(command, &data[1..]),
            _ => vec![BAD_COMMAND],
        }
    }

    /// Part of a sensor's record: reservation, record number, offset, length are asked for.
    fn record(&self, data: &[u8]) -> Vec<u8> {
        let &[_, _, low, high, offset, length] = data else { return vec![BAD_LENGTH] };
        let number = usize::from(u16::from_le_bytes([low, high])).saturating_sub(1);
        let Some(record) = self.records.get(number) else { return vec![NOT_PRESENT] };
        let next = if number + 1 < self.records.len() {
            u16::try_from(number + 2).unwrap_or(0xffff)
        } else {
            0xffff
        };
        let from = usize::from(offset).min(record.len());
        let to = if length == 0xff { record.len() } else { (from + usize::from(length)).min(record.len()) };
        [&[0], next.to_le_bytes().as_slice(), &record[from..to]].concat()
    }

    /// What a test orders.
    fn ordered(&mut self, command: u8, data: &[u8]) -> Vec<u8> {
        match (command, data) {
            (1, &[low, high]) => {
                self.watts = u16::from_le_bytes([low, high]);
                vec![0]
            }
            (2, &[mood]) => match Mood::of(mood) {
                Some(mood) => {
                    self.mood = mood;
                    vec![0]
                }
                None => vec![BAD_FIELD],
            },
            (3, []) => [&[0], self.asked.to_le_bytes().as_slice()].concat(),
            (1..=3, _) => vec![BAD_LENGTH],
            _ => vec![BAD_COMMAND],
        }
    }

    fn power_reading(&mut self) -> Vec<u8> {
        self.asked = self.asked.wrapping_add(1);
        let (now, state) = match self.mood {
            Mood::Silent => return Vec::new(),
            Mood::Busy => return vec![BUSY],
            Mood::Unable => return vec![BAD_COMMAND],
            Mood::Well => (self.watts, 0x40),
            Mood::Inactive => (self.watts, 0),
            Mood::Zeros => (0, 0x40),
        };
        let (low, high) = if now == 0 { (0, 0) } else { (now.saturating_sub(40), now.saturating_add(60)) };
        let values: Vec<u8> = [now, low, high, now].iter().flat_map(|watts| watts.to_le_bytes()).collect();
        let stamp = [1_700_000_000_u32.to_le_bytes(), 1000_u32.to_le_bytes()].concat();
        [&[0, 0xdc], values.as_slice(), &stamp, &[state]].concat()
    }

    /// The Data Center Manageability Interface.
    fn dcmi(&mut self, command: u8, data: &[u8]) -> Vec<u8> {
        let watts = |watts: u16| watts.to_le_bytes();
        match (command, data) {
            (1, [1, ..]) => vec![0, 0xdc, 1, 5, 2, 0, 1, 7], // capabilities: power management
            (1, _) => vec![0, 0xdc, 1, 5, 2, 0x20, 0, 0x20, 0x20],
            (2, _) => self.power_reading(),
            (3, _) => {
                let code = if self.limit_active { 0 } else { 0x80 }; // "no active set power limit"
                let mut reply = vec![code, 0xdc, 0, 0, self.limit_action];
                reply.extend(watts(self.limit_watts));
                reply.extend(1000_u32.to_le_bytes()); // correction time, ms
                reply.extend([0, 0, 1, 0]); // spare, sampling period of 1 s
                reply
            }
            (4, [_, _, _, action, low, high, ..]) => {
                self.limit_action = *action;
                self.limit_watts = u16::from_le_bytes([*low, *high]);
                vec![0, 0xdc]
            }
            (5, [active, ..]) => {
                self.limit_active = *active != 0;
                vec![0, 0xdc]
            }
            (4 | 5, _) => vec![BAD_LENGTH],
            _ => vec![BAD_COMMAND],
        }
    }
}

/// A full sensor record: number (also of the record), name, kind, unit, and what a reading is multiplied with.
fn sensor_record(number: u8, name: &str, kind: u8, unit: u8, factor: u8) -> Vec<u8> {
    let mut body = vec![0x20, 0, number, 3, 1, 0x7f, 0x68, kind, 1];
    body.extend([0; 6]);
    body.extend([0, unit, 0, 0, factor, 0, 0, 0, 0, 0, 7, 0, 0, 0, 0xff, 0]);
    body.extend([0; 11]);
    body.push(0xc0 | u8::try_from(name.len()).unwrap_or(0));
    body.extend(name.as_bytes());
    let length = u8::try_from(body.len()).unwrap_or(0);
    [&[number, 0, 0x51, 1, length], body.as_slice()].concat()
}

fn send(stream: &mut UnixStream, message: &[u8], end: u8) -> std::io::Result<()> {
    let mut bytes = Vec::new();
    for &byte in message {
        match byte {
            END | END_COMMAND | ESCAPE => bytes.extend([ESCAPE, byte | 0x10]),
            other => bytes.push(other),
        }
    }
    bytes.push(end);
    stream.write_all(&bytes)
}

#[cfg(test)]
mod tests {
    use super::State;

    #[test]
    fn dcmi_reads_watts_and_keeps_a_limit() {
        let mut bmc = State::new(245);
        assert_eq!(bmc.handle(0x2c, 2, &[0xdc, 1, 0, 0])[..4], [0, 0xdc, 245, 0]);
        assert_eq!(bmc.handle(0x2c, 3, &[0xdc, 0, 0])[0], 0x80, "no limit is active");
        assert_eq!(bmc.handle(0x2c, 4, &[0xdc, 0, 0, 0, 1, 200, 0, 0, 0]), [0, 0xdc]);
        assert_eq!(bmc.handle(0x2c, 5, &[0xdc, 1, 0, 0]), [0, 0xdc]);
        assert_eq!(bmc.handle(0x2c, 3, &[0xdc, 0, 0])[..7], [0, 0xdc, 0, 0, 1, 200, 0]);
    }

    #[test]
    fn a_test_decides_what_it_shows() {
        let mut bmc = State::new(245);
        let reading = [0xdc, 1, 0, 0];
        assert_eq!(bmc.handle(0x30, 1, &[0x90, 1]), [0]);
        assert_eq!(bmc.handle(0x2c, 2, &reading)[..4], [0, 0xdc, 0x90, 1]);
        assert_eq!(bmc.handle(0x2c, 2, &reading).last(), Some(&0x40));
        for (mood, answer) in [(1, vec![]), (2, vec![0xc0]), (3, vec![0xc1])] {
            assert_eq!(bmc.handle(0x30, 2, &[mood]), [0]);
            assert_eq!(bmc.handle(0x2c, 2, &reading), answer);
        }
        bmc.handle(0x30, 2, &[4]);
        assert_eq!(bmc.handle(0x2c, 2, &reading).last(), Some(&0));
        bmc.handle(0x30, 2, &[5]);
        assert_eq!(bmc.handle(0x2c, 2, &reading)[2..4], [0, 0]);
        assert_eq!(bmc.handle(0x30, 3, &[]), [0, 7, 0]);
        assert_eq!(bmc.handle(0x30, 2, &[6]), [0xcc]);
        assert_eq!(bmc.handle(0x30, 1, &[6]), [0xc7]);
    }

    #[test]
    fn records_follow_each_other() {
        let bmc = State::new(245);
        let first = bmc.record(&[1, 0, 0, 0, 0, 0xff]);
        assert_eq!(first[..3], [0, 2, 0], "the next one is 2");
        assert!(first.ends_with(b"CPU Temp"));
        assert_eq!(bmc.record(&[1, 0, 2, 0, 0, 5])[..3], [0, 0xff, 0xff]);
        assert_eq!(bmc.record(&[1, 0, 9, 0, 0, 5]), [0xcb]);
        assert_eq!(bmc.record(&[]), [0xc7]);
    }
}
