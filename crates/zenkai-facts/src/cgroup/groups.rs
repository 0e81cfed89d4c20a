//! What one control group says, in either version's spelling.

use std::collections::BTreeMap;

use serde::Serialize;

use super::{Place, Version};
use crate::{CpuSet, Observed, Reader, Reason, reader::join};

/// Version 1 shows "no limit" as the highest number of whole pages (`mm/memcontrol-v1.c`); no machine has as much.
const UNLIMITED_BYTES: u64 = 1 << 62;

/// The most lines taken from a file that has one for each disk.
const DEVICE_LIMIT: usize = 4096;

/// The CPU time that a group may use.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct CpuQuota {
    /// Time in each period, over all CPUs, in microseconds.
    pub quota_us: u64,
    /// Length of the period in microseconds; never 0.
    pub period_us: u64,
}

impl CpuQuota {
    /// The quota in CPUs.
    #[expect(clippy::cast_precision_loss, reason = "microseconds of a period are far below 2^52")]
    pub fn cpus(self) -> f64 {
        self.quota_us as f64 / self.period_us as f64
    }
}

impl std::fmt::Display for CpuQuota {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(out, "{} {}", self.quota_us, self.period_us)
    }
}

/// How often a group was stopped because its quota was used up.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Throttling {
    /// Periods in which the group had something to run.
    pub periods: u64,
    /// Those of them in which it was stopped.
    pub throttled_periods: u64,
    /// How long its CPUs were stopped in total, in microseconds.
    pub throttled_us: u64,
}

impl std::fmt::Display for Throttling {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(out, "nr_periods {} nr_throttled {}", self.periods, self.throttled_periods)
    }
}

/// CPU time of one group.
#[derive(Debug, Clone, Serialize)]
pub struct CpuGroup {
    /// The group below the mounted root, `/` for that root itself.
    pub path: String,
    /// Its limit; not applicable when there is none.
    pub quota: Observed<CpuQuota>,
    /// How often it ran into the limit.
    pub throttling: Observed<Throttling>,
    /// Its weight against its siblings: `cpu.weight` (100 is usual) or `cpu.shares` (1024 is usual).
    pub weight: Observed<u64>,
}

/// How often a group met a memory limit, counted since it was made.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct MemoryEvents {
    /// Times its processes were slowed down because it was over `memory.high`.
    pub high: u64,
    /// Times it was about to go over its limit and had to reclaim.
    pub max: u64,
    /// Times an allocation failed for it.
    pub oom: u64,
    /// Processes killed for it.
    pub oom_kill: u64,
}

impl std::fmt::Display for MemoryEvents {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(out, "high {} max {} oom {} oom_kill {}", self.high, self.max, self.oom, self.oom_kill)
    }
}

/// Memory of one group.
#[derive(Debug, Clone, Serialize)]
pub struct MemoryGroup {
    /// The group below the mounted root, `/` for that root itself.
    pub path: String,
    /// Its hard limit; not applicable when there is none.
    pub limit_bytes: Observed<u64>,
    /// Where it begins to be slowed down (version 2); not applicable when nowhere.
    pub high_bytes: Observed<u64>,
    /// What it uses, page cache included.
    pub current_bytes: Observed<u64>,
    /// How often it met its limits.
    pub events: Observed<MemoryEvents>,
}

/// A limit on one disk.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct IoLimit {
    /// The disk's number, as `8:0`.
    pub device: String,
    /// Most bytes read in a second.
    pub read_bytes_per_s: Option<u64>,
    /// Most bytes written in a second.
    pub write_bytes_per_s: Option<u64>,
    /// Most reads in a second.
    pub read_operations_per_s: Option<u64>,
    /// Most writes in a second.
    pub write_operations_per_s: Option<u64>,
}

impl std::fmt::Display for IoLimit {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.write_str(&self.device)?;
        for (name, value) in [
            ("rbps", self.read_bytes_per_s),
            ("wbps", self.write_bytes_per_s),
            ("riops", self.read_operations_per_s),
            ("wiops", self.write_operations_per_s),
        ] {
            if let Some(value) = value {
                write!(out, " {name}={value}")?;
            }
        }
        Ok(())
    }
}

/// Disk traffic of one group.
#[derive(Debug, Clone, Serialize)]
pub struct IoGroup {
    /// The group below the mounted root, `/` for that root itself.
    pub path: String,
    /// The limits, by disk; empty when there are none.
    pub limits: Observed<Vec<IoLimit>>,
}

/// Tasks of one group.
#[derive(Debug, Clone, Serialize)]
pub struct PidsGroup {
    /// The group below the mounted root, `/` for that root itself.
    pub path: String,
    /// The most tasks it may have; not applicable when there is no limit.
    pub limit: Observed<u64>,
    /// The tasks it has.
    pub current: Observed<u64>,
}

pub(super) fn cpu(reader: &Reader<'_>, dir: &str, place: &Place) -> CpuGroup {
    let (quota, weight) = if place.version == Version::V2 {
        (reader.text(&join(dir, "cpu.max")).parse(|text| quota_v2(&text)), "cpu.weight")
    } else {
        let period = reader.number::<u64>(&join(dir, "cpu.cfs_period_us"));
        (
            reader.text(&join(dir, "cpu.cfs_quota_us")).parse(|text| quota_v1(&text, period.value())),
            "cpu.shares",
        )
    };
    CpuGroup {
        path: place.name(dir),
        quota: limited(quota),
        throttling: reader.text(&join(dir, "cpu.stat")).parse(|text| throttling(&text)),
        weight: reader.number(&join(dir, weight)),
    }
}

pub(super) fn memory(reader: &Reader<'_>, dir: &str, place: &Place) -> MemoryGroup {
    let bytes = |name: &str| limited(reader.text(&join(dir, name)).parse(|text| bytes(&text)));
    let new = place.version == Version::V2;
    MemoryGroup {
        path: place.name(dir),
        limit_bytes: bytes(if new { "memory.max" } else { "memory.limit_in_bytes" }),
        high_bytes: if new {
            bytes("memory.high")
        } else {
            let why = "control groups of version 1 do not have it".to_owned();
            Observed::unavailable(join(dir, "memory.high"), Reason::NotApplicable(why))
        },
        current_bytes: reader
            .number(&join(dir, if new { "memory.current" } else { "memory.usage_in_bytes" })),
        events: if new {
            reader.text(&join(dir, "memory.events")).map(|text| events(&text))
        } else {
            // Counts the same thing as `max` does (`Documentation/admin-guide/cgroup-v1/memory.rst`).
            reader
                .number(&join(dir, "memory.failcnt"))
                .map(|max| MemoryEvents { max, ..MemoryEvents::default() })
        },
    }
}

pub(super) fn io(reader: &Reader<'_>, dir: &str, place: &Place) -> IoGroup {
    let limits = if place.version == Version::V2 {
        reader.text(&join(dir, "io.max")).map(|text| io_v2(&text))
    } else {
        io_v1(reader, dir)
    };
    IoGroup { path: place.name(dir), limits }
}

pub(super) fn pids(reader: &Reader<'_>, dir: &str, place: &Place) -> PidsGroup {
    PidsGroup {
        path: place.name(dir),
        limit: limited(reader.text(&join(dir, "pids.max")).parse(|text| bytes(&text))),
        current: reader.number(&join(dir, "pids.current")),
    }
}

/// The root group of version 2 has no such file; all CPUs are then its own.
pub(super) fn effective_cpus(reader: &Reader<'_>, place: &Place) -> Observed<CpuSet> {
    let name = if place.version == Version::V2 { "cpuset.cpus.effective" } else { "cpuset.effective_cpus" };
    let mut dirs = place.dirs().into_iter();
    let first = dirs.next().unwrap_or_default();
    // A group that the controller was not handed down to has the CPUs of the nearest one that has it.
    dirs.fold(reader.cpu_set(&join(&first, name)), |found, dir| {
        if found.is_absent() { found.or_else(|| reader.cpu_set(&join(&dir, name))) } else { found }
    })
}

/// "No limit" is not a number.
fn limited<T>(reading: Observed<Option<T>>) -> Observed<T> {
    let source = reading.source().to_owned();
    match reading.outcome() {
        Ok(None) => Observed::unavailable(source, Reason::NotApplicable("no limit is set".into())),
        _ => reading.parse(|value| value.ok_or_else(String::new)),
    }
}

/// `max 100000` or `50000 100000`.
fn quota_v2(text: &str) -> Result<Option<CpuQuota>, String> {
    let bad = || "neither `max` nor two numbers".to_owned();
    let (quota, period) = text.split_once(' ').ok_or_else(bad)?;
    if quota == "max" {
        return Ok(None);
    }
    let number = |word: &str| word.trim().parse::<u64>().ok().filter(|number| *number > 0);
    match (number(quota), number(period)) {
        (Some(quota_us), Some(period_us)) => Ok(Some(CpuQuota { quota_us, period_us })),
        _ => Err(bad()),
    }
}

fn quota_v1(text: &str, period: Option<u64>) -> Result<Option<CpuQuota>, String> {
    let quota: i64 = text.parse().map_err(|_| "not a number".to_owned())?;
    let Ok(quota_us) = u64::try_from(quota) else { return Ok(None) };
    match period {
        Some(period_us) if period_us > 0 && quota_us > 0 => Ok(Some(CpuQuota { quota_us, period_us })),
        _ => Err("a quota without a period".to_owned()),
    }
}

fn bytes(text: &str) -> Result<Option<u64>, String> {
    if text == "max" {
        return Ok(None);
    }
    let bytes: u64 = text.parse().map_err(|_| "neither `max` nor a number".to_owned())?;
    Ok((bytes < UNLIMITED_BYTES).then_some(bytes))
}

/// Lines of a name and a number.
fn counters(text: &str) -> BTreeMap<&str, u64> {
    text.lines()
        .filter_map(|line| line.split_once(' '))
        .filter_map(|(name, value)| Some((name, value.trim().parse().ok()?)))
        .collect()
}

/// Version 2 counts microseconds (`throttled_usec`), version 1 nanoseconds (`throttled_time`).
fn throttling(text: &str) -> Result<Throttling, String> {
    let counters = counters(text);
    let counter = |name: &str| counters.get(name).copied();
    let found = || {
        Some(Throttling {
            periods: counter("nr_periods")?,
            throttled_periods: counter("nr_throttled")?,
            throttled_us: counter("throttled_usec").or_else(|| Some(counter("throttled_time")? / 1000))?,
        })
    };
    found().ok_or_else(|| "it does not count throttled periods".to_owned())
}

fn events(text: &str) -> MemoryEvents {
    let counters = counters(text);
    let counter = |name: &str| counters.get(name).copied().unwrap_or(0);
    MemoryEvents {
        high: counter("high"),
        max: counter("max"),
        oom: counter("oom"),
        oom_kill: counter("oom_kill"),
    }
}

/// `8:0 rbps=1048576 wbps=max riops=max wiops=120`
fn io_v2(text: &str) -> Vec<IoLimit> {
    text.lines()
        .take(DEVICE_LIMIT)
        .filter_map(|line| {
            let (device, rest) = line.split_once(' ')?;
            let limit = |name: &str| {
                rest.split(' ').find_map(|word| word.strip_prefix(name)?.strip_prefix('=')?.parse().ok())
            };
            Some(IoLimit {
                device: device.to_owned(),
                read_bytes_per_s: limit("rbps"),
                write_bytes_per_s: limit("wbps"),
                read_operations_per_s: limit("riops"),
                write_operations_per_s: limit("wiops"),
            })
        })
        .collect()
}

/// Four files of lines `8:0 1048576`, each empty as long as nothing is limited.
fn io_v1(reader: &Reader<'_>, dir: &str) -> Observed<Vec<IoLimit>> {
    let file = |name: &str| reader.text(&join(dir, format_args!("blkio.throttle.{name}_device")));
    let read_bytes = file("read_bps");
    let others = [file("write_bps"), file("read_iops"), file("write_iops")];
    let mut limits: BTreeMap<String, [Option<u64>; 4]> = BTreeMap::new();
    for (index, reading) in std::iter::once(&read_bytes).chain(&others).enumerate() {
        for (device, value) in counters(reading.text().unwrap_or("")).into_iter().take(DEVICE_LIMIT) {
            if let Some(slot) = limits.entry(device.to_owned()).or_default().get_mut(index) {
                *slot = Some(value);
            }
        }
    }
    let limit = |(device, [read_bytes, write_bytes, reads, writes]): (String, [Option<u64>; 4])| IoLimit {
        device,
        read_bytes_per_s: read_bytes,
        write_bytes_per_s: write_bytes,
        read_operations_per_s: reads,
        write_operations_per_s: writes,
    };
    read_bytes.map(|_| limits.into_iter().map(limit).collect())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn quotas() {
        let quota = CpuQuota { quota_us: 50_000, period_us: 100_000 };
        assert_eq!(quota_v2("50000 100000"), Ok(Some(quota)));
        assert_eq!(quota_v2("max 100000"), Ok(None));
        assert!(quota_v2("50000 0").is_err());
        assert_eq!(quota_v1("-1", Some(100_000)), Ok(None));
        assert_eq!(quota_v1("50000", Some(100_000)), Ok(Some(quota)));
        assert!(quota_v1("50000", None).is_err());
    }

    #[test]
    fn disks_of_version_1() {
        let host = zenkai_host::FakeHost::new(&[
            ("/g/blkio.throttle.read_bps_device", "8:0 1024\n"),
            ("/g/blkio.throttle.write_iops_device", "8:0 5\n8:16 6\n"),
        ]);
        let limits = io_v1(&Reader::new(&host), "/g");
        let shown: Vec<_> = limits.get().unwrap().iter().map(ToString::to_string).collect();
        assert_eq!(shown, ["8:0 rbps=1024 wiops=5", "8:16 wiops=6"]);
    }

    proptest! {
        #[test]
        fn never_panics(text in "[a-z0-9:= _\n-]{0,60}") {
            let _ = (quota_v2(&text), quota_v1(&text, Some(1)), bytes(&text), throttling(&text), io_v2(&text));
        }
    }
}
