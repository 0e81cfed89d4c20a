//! What is read, and how.

use std::{
    cell::RefCell,
    fmt::Display,
    sync::{Arc, Mutex, PoisonError},
    time::{Duration, Instant},
};

use zenkai_host::gauges::{Counter, Event, Gauge, Register, Subject};

use super::{
    Options,
    channel::Channels,
    template::{Digits, FAILURE, Lines, SECTION},
};

/// How often a source is read, at most as often as there are samples.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Cadence {
    /// In every sample: it costs a few microseconds.
    Always,
    /// In every other sample, those with an even number: it costs more, and moves slowly.
    Even,
    /// In every other sample, those with an odd number.
    Odd,
    /// Once a second: it costs more, or interrupts CPUs.
    Second,
    /// Every ten seconds: it costs most. The mean over a recording is as exact, since both ends are always read.
    Slow,
}

impl Cadence {
    /// The least time between two readings, in nanoseconds.
    pub(super) fn least_ns(self) -> u64 {
        match self {
            Self::Always | Self::Even | Self::Odd => 0,
            Self::Second => 1_000_000_000,
            Self::Slow => 10_000_000_000,
        }
    }

    /// Whether a sample with this number, counted from 0, is one to read it in, as far as that depends on the number.
    pub(super) fn takes(self, number: u64) -> bool {
        match self {
            Self::Even => number.is_multiple_of(2),
            Self::Odd => !number.is_multiple_of(2),
            Self::Always | Self::Second | Self::Slow => true,
        }
    }
}

/// A file or several of one kind.
pub(super) struct Source {
    /// What it is called in `missing` and in the file.
    pub(super) name: &'static str,
    pub(super) cadence: Cadence,
    pub(super) digits: Digits,
    /// What there is to read; the reason, where there is nothing.
    pub(super) open: fn(&Options) -> Result<Vec<Part>, String>,
    /// The channels in what was read.
    pub(super) channels: fn(&Lines, &mut Channels),
}

/// One file of a source.
pub(super) struct Part {
    /// Its name in the template; empty where it is the only one.
    section: String,
    reader: Reader,
}

enum Reader {
    /// With its path, to open it again when the device has been away, as files of a CPU that was offline.
    Kept(RefCell<Gauge>, String),
    /// One of so many that they cannot all stay open.
    Named(String),
    /// The value, the times enabled and running, summed over the counters. Where they are of single CPUs, those.
    Counters(Vec<Counter>, Option<Arc<Cpus>>),
    Registers(Register, &'static [(&'static str, u32)]),
    /// Somebody else reads it and tells what there is.
    Told(Box<Tell>),
    /// It could not be opened, for this reason.
    Absent(String),
}

/// Appends what there is now.
type Tell = dyn Fn(&mut Vec<u8>) -> std::io::Result<()> + Send;

/// `ENODEV`.
const NO_DEVICE: i32 = rustix::io::Errno::NODEV.raw_os_error();

/// Watches over the CPUs that are online. The kernel takes counters off a CPU that goes offline and does not put them
/// back (`perf_event_exit_cpu` in `kernel/events/core.c`), and one that came online later has none.
pub(super) struct Cpus {
    online: Gauge,
    first: Vec<u8>,
    watch: Mutex<Watch>,
}

struct Watch {
    changed: bool,
    looked: Instant,
}

/// Readings closer together than this belong to one sample: counters are read one after the other.
const ONE_SAMPLE: Duration = Duration::from_millis(1);

impl Cpus {
    /// Those that are online now.
    pub(super) fn now() -> std::io::Result<Arc<Self>> {
        let online = Gauge::open("/sys/devices/system/cpu/online")?;
        let mut first = Vec::new();
        online.read(&mut first)?;
        let watch = Mutex::new(Watch { changed: false, looked: Instant::now() });
        Ok(Arc::new(Self { online, first, watch }))
    }

    /// An error from the first change on.
    fn same(&self) -> std::io::Result<()> {
        let mut watch = self.watch.lock().unwrap_or_else(PoisonError::into_inner);
        if !watch.changed && watch.looked.elapsed() > ONE_SAMPLE {
            let mut now = Vec::new();
            self.online.read(&mut now)?;
            *watch = Watch { changed: now != self.first, looked: Instant::now() };
        }
        if watch.changed {
            return Err(std::io::Error::other(
                "a CPU went offline or online; the kernel does not count on it",
            ));
        }
        Ok(())
    }
}

/// Instead of a reason: nobody asked for this source.
pub(super) const NOT_ASKED: &str = "";

/// A source keeps at most so many files open: a process may often have no more than 1 024 in all, and a workload
/// inherits that limit, so it is not raised.
const KEPT: usize = 64;

impl Part {
    /// A file.
    pub(super) fn file(section: impl Display, path: &str) -> Result<Self, String> {
        let gauge = Gauge::open(path).map_err(|error| format!("{path}: {error}"))?;
        Ok(Self { section: section.to_string(), reader: Reader::Kept(RefCell::new(gauge), path.to_owned()) })
    }

    /// Files that are all there.
    pub(super) fn files(files: Vec<(String, String)>) -> Vec<Self> {
        let keep = files.len() <= KEPT;
        let part = |(section, path): (String, String)| {
            let reader = match keep.then(|| Gauge::open(&path)) {
                Some(Ok(gauge)) => Reader::Kept(RefCell::new(gauge), path),
                // Where it cannot be opened, reading says why.
                _ => Reader::Named(path),
            };
            Self { section, reader }
        };
        files.into_iter().map(part).collect()
    }

    /// A performance counter; several, of the CPUs that `cpus` watches over, are summed up. Where it cannot be opened,
    /// reading says why.
    pub(super) fn counter(
        section: &str,
        event: Event,
        subjects: &[Subject],
        cpus: Option<&Arc<Cpus>>,
    ) -> Self {
        let counters: std::io::Result<_> =
            subjects.iter().map(|subject| Counter::open(event, *subject)).collect();
        let reader = match counters {
            Ok(counters) => Reader::Counters(counters, cpus.cloned()),
            Err(error) => Reader::Absent(format!("perf_event_open: {error}")),
        };
        Self { section: section.to_owned(), reader }
    }

    /// Registers of a CPU.
    pub(super) fn registers(cpu: usize, wanted: &'static [(&'static str, u32)]) -> Result<Self, String> {
        let register = Register::open(cpu).map_err(|error| format!("/dev/cpu/{cpu}/msr: {error}"))?;
        for (name, address) in wanted {
            register.read(*address).map_err(|error| format!("/dev/cpu/{cpu}/msr, {name}: {error}"))?;
        }
        Ok(Self { section: format!("cpu{cpu}"), reader: Reader::Registers(register, wanted) })
    }

    /// What a thread of its own reads.
    pub(super) fn told(
        section: &str,
        tell: impl Fn(&mut Vec<u8>) -> std::io::Result<()> + Send + 'static,
    ) -> Self {
        Self { section: section.to_owned(), reader: Reader::Told(Box::new(tell)) }
    }

    /// Appends what there is now, or the reason why there is nothing. Says whether the file has gone since it was opened.
    pub(super) fn read(&self, text: &mut Vec<u8>) -> bool {
        if !self.section.is_empty() {
            text.push(SECTION);
            text.extend_from_slice(self.section.as_bytes());
            text.push(b'\n');
        }
        let read = self.reader.read(text);
        let gone = read.as_ref().is_err_and(|error| {
            error.raw_os_error() == Some(NO_DEVICE) || error.kind() == std::io::ErrorKind::NotFound
        });
        if let Err(error) = read {
            text.push(FAILURE);
            text.extend_from_slice(error.to_string().replace('\n', " ").as_bytes());
        }
        if text.last() != Some(&b'\n') {
            text.push(b'\n');
        }
        gone
    }
}

impl Reader {
    fn read(&self, text: &mut Vec<u8>) -> std::io::Result<()> {
        match self {
            Self::Kept(gauge, path) => {
                let read = gauge.borrow().read(text);
                // What was taken away from sysfs stays dead for whoever had it open (`fs/kernfs/file.c`).
                if read.as_ref().is_err_and(|error| error.raw_os_error() == Some(NO_DEVICE)) {
                    let again = Gauge::open(path)?;
                    again.read(text)?;
                    gauge.replace(again);
                    return Ok(());
                }
                read
            }
            Self::Named(path) => Gauge::open(path)?.read(text),
            Self::Counters(counters, cpus) => {
                if let Some(cpus) = cpus {
                    cpus.same()?;
                }
                let (mut value, mut enabled, mut running) = (0_u64, 0_u64, 0_u64);
                for counter in counters {
                    let count = counter.read()?;
                    value = value.wrapping_add(count.value);
                    enabled = enabled.wrapping_add(count.enabled_ns);
                    running = running.wrapping_add(count.running_ns);
                }
                text.extend_from_slice(format!("{value} {enabled} {running}").as_bytes());
                Ok(())
            }
            Self::Absent(reason) => Err(std::io::Error::other(reason.clone())),
            Self::Told(tell) => tell(text),
            Self::Registers(register, wanted) => {
                for (name, address) in *wanted {
                    let value = register.read(*address)?;
                    text.extend_from_slice(format!("{name} {value}\n").as_bytes());
                }
                Ok(())
            }
        }
    }
}

/// A source that is one file.
pub(super) fn one_file(path: &str) -> Result<Vec<Part>, String> {
    Ok(vec![Part::file("", path)?])
}
