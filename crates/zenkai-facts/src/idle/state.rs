//! The idle states of all CPUs: read CPU by CPU, told once for CPUs that have the same.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::{CpuSet, Observed, Reader, Reason, cpu::CPU_DIR, reader::join};

/// The kernel's own limit on states of one CPU is 10 (`CPUIDLE_STATE_MAX` in `include/linux/cpuidle.h`).
const STATE_LIMIT: usize = 32;

/// One idle state, of all CPUs where it is the same.
#[derive(Debug, Clone, Serialize)]
pub struct State {
    /// N of `stateN`; deeper states have higher numbers.
    pub index: u32,
    /// `POLL`, `C1`, `C6` …
    pub name: Observed<String>,
    /// What the driver says of it, such as `MWAIT 0x20` or `ACPI IOPORT 0x814`.
    pub description: Observed<String>,
    /// Time to wake up from it, in µs, as the driver believes.
    pub latency_us: Observed<u64>,
    /// How long a CPU must stay in it to save energy, in µs.
    pub residency_us: Observed<u64>,
    /// The CPUs that have it.
    pub cpus: CpuSet,
    /// Those of them on which it is switched off.
    pub disabled_on: CpuSet,
    /// Whether the driver itself leaves it off unless somebody switches it on (`default_status`); read only when it
    /// is off somewhere.
    pub off_by_default: Observed<bool>,
    /// How often it was entered since boot, over all its CPUs.
    pub usage: Observed<u64>,
    /// Time in it since boot, in µs, over all its CPUs.
    pub time_us: Observed<u64>,
    /// The same CPU by CPU.
    #[serde(skip)]
    pub by_cpu: Vec<IdleTime>,
}

/// What one CPU did with one state since boot.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct IdleTime {
    /// Which CPU.
    pub cpu: u32,
    /// How often it entered the state.
    pub usage: u64,
    /// Time in the state, in µs.
    pub time_us: u64,
}

impl State {
    /// Whether a CPU in this state runs a loop instead of resting.
    pub fn is_polling(&self) -> bool {
        self.name.text() == Some("POLL")
    }

    /// The CPUs that may enter it.
    pub fn enabled_on(&self) -> CpuSet {
        self.cpus.difference(&self.disabled_on)
    }
}

pub(super) fn observe(reader: &Reader<'_>, online: &CpuSet) -> Observed<Vec<State>> {
    let dir_of = |cpu: u32| join(CPU_DIR, format_args!("cpu{cpu}/cpuidle"));
    let names = reader.names(&dir_of(online.first().unwrap_or(0)));
    names.parse(|names| {
        let indices: Vec<u32> = numbers(&names);
        if indices.len() > STATE_LIMIT {
            return Err(format!("{} states", indices.len()));
        }
        let one_table = !names.iter().any(|name| name == "driver");
        let mut found = Vec::new();
        for index in indices {
            let mut states = States { reader, index, one_table, found: Vec::new(), places: BTreeMap::new() };
            for cpu in online.iter() {
                states.add(cpu, &join(&dir_of(cpu), format_args!("state{index}")));
            }
            found.extend(states.found.into_iter().map(finish));
        }
        Ok(found)
    })
}

fn numbers(names: &[String]) -> Vec<u32> {
    let mut numbers: Vec<u32> =
        names.iter().filter_map(|name| name.strip_prefix("state")?.parse().ok()).collect();
    numbers.sort_unstable();
    numbers
}

/// The states of one index, as they differ between CPUs.
struct States<'h> {
    reader: &'h Reader<'h>,
    index: u32,
    /// Whether all CPUs have one table of states. The kernel shows name, description, latency and residency out of
    /// the driver's table, which is one for the machine; only kernels for several drivers (`CONFIG_CPU_IDLE_MULTIPLE_
    /// DRIVERS`, as for ARM's big and little cores) give CPUs different ones, and show a directory `driver` beside
    /// the states (`drivers/cpuidle/sysfs.c` since 3.2).
    one_table: bool,
    found: Vec<(State, Vec<u32>, Vec<u32>)>,
    places: BTreeMap<Result<u64, Reason>, usize>,
}

impl States<'_> {
    /// Adds one CPU's state to the equal one of another CPU. What the table says is read again only where it may
    /// differ, and then name and residency only where the latency does.
    fn add(&mut self, cpu: u32, dir: &str) {
        let reader = self.reader;
        let usage = reader.number(&join(dir, "usage"));
        if usage.is_absent() {
            return;
        }
        let place = match self.found.first() {
            Some(_) if self.one_table => 0,
            _ => self.place(dir),
        };
        let Some((state, cpus, disabled)) = self.found.get_mut(place) else { return };
        cpus.push(cpu);
        let usage = add_up(&mut state.usage, usage, cpus.len() == 1);
        let time_us = add_up(&mut state.time_us, reader.number(&join(dir, "time")), cpus.len() == 1);
        if let (Some(usage), Some(time_us)) = (usage, time_us) {
            state.by_cpu.push(IdleTime { cpu, usage, time_us });
        }
        if reader.flag(&join(dir, "disable")).value() == Some(true) {
            if disabled.is_empty() {
                state.off_by_default = off_by_default(reader, dir);
            }
            disabled.push(cpu);
        }
    }

    /// Where the state with this latency stands.
    fn place(&mut self, dir: &str) -> usize {
        let latency_us = self.reader.number::<u64>(&join(dir, "latency"));
        let next = self.found.len();
        let place = *self.places.entry(latency_us.outcome().copied().map_err(Clone::clone)).or_insert(next);
        if place == next {
            self.found.push((state(self.reader, self.index, latency_us, dir), Vec::new(), Vec::new()));
        }
        place
    }
}

fn state(reader: &Reader<'_>, index: u32, latency_us: Observed<u64>, dir: &str) -> State {
    let on = Reason::NotApplicable("the state is on".to_owned());
    State {
        index,
        name: reader.text(&join(dir, "name")),
        description: reader.text(&join(dir, "desc")),
        latency_us,
        residency_us: reader.number(&join(dir, "residency")),
        cpus: CpuSet::default(),
        disabled_on: CpuSet::default(),
        off_by_default: Observed::unavailable(join(dir, "default_status"), on),
        usage: Observed::unavailable(join(dir, "usage"), Reason::Absent),
        time_us: Observed::unavailable(join(dir, "time"), Reason::Absent),
        by_cpu: Vec::new(),
    }
}

/// Adds one CPU's count to the sum, and gives it back. A sum that misses a CPU is none.
fn add_up(sum: &mut Observed<u64>, count: Observed<u64>, is_first: bool) -> Option<u64> {
    let value = count.value();
    *sum = match (sum.value(), value) {
        _ if is_first => count,
        (Some(known), Some(more)) => {
            let source = sum.source().to_owned();
            Observed::known(source, known.saturating_add(more))
        }
        (Some(_), None) => count,
        (None, _) => return value,
    };
    value
}

fn off_by_default(reader: &Reader<'_>, dir: &str) -> Observed<bool> {
    reader.flag(&join(dir, "default_status")).map(|enabled| !enabled)
}

fn finish((mut state, cpus, disabled): (State, Vec<u32>, Vec<u32>)) -> State {
    state.cpus = cpus.into_iter().collect();
    state.disabled_on = disabled.into_iter().collect();
    state
}

#[cfg(test)]
mod tests {
    use zenkai_host::FakeHost;

    use super::*;

    #[test]
    fn hybrid_cpus_keep_their_own_states() {
        let host = (0..4).fold(FakeHost::new(&[]), |host, cpu| {
            let dir = format!("/sys/devices/system/cpu/cpu{cpu}/cpuidle/state1");
            let small = cpu > 1;
            host.file(&format!("/sys/devices/system/cpu/cpu{cpu}/cpuidle/driver/name"), "psci_idle\n")
                .file(&format!("{dir}/name"), if small { "C6E\n" } else { "C6\n" })
                .file(&format!("{dir}/latency"), if small { "30\n" } else { "170\n" })
                .file(&format!("{dir}/usage"), "5\n")
                .file(&format!("{dir}/time"), "100\n")
                .file(&format!("{dir}/disable"), if cpu == 3 { "1\n" } else { "0\n" })
                .file(&format!("{dir}/default_status"), "disabled\n")
        });
        let states = observe(&Reader::new(&host), &CpuSet::range(0..=3));
        let states = states.get().unwrap();
        assert_eq!(states.len(), 2);
        assert_eq!((states[0].name.text(), states[0].cpus.to_string()), (Some("C6"), "0-1".to_owned()));
        assert_eq!((states[0].usage.value(), states[0].time_us.value()), (Some(10), Some(200)));
        assert_eq!(states[1].disabled_on.to_string(), "3");
        assert_eq!(states[1].enabled_on().to_string(), "2");
        assert_eq!(states[1].off_by_default.value(), Some(true));
        assert!(states[0].off_by_default.value().is_none());
    }

    #[test]
    fn one_driver_has_one_table() {
        let host = (0..3).fold(FakeHost::new(&[]), |host, cpu| {
            let dir = format!("/sys/devices/system/cpu/cpu{cpu}/cpuidle/state1");
            let host = if cpu == 0 { host.file(&format!("{dir}/latency"), "170\n") } else { host };
            // CPU 2 came up without this state.
            if cpu == 2 { host } else { host.file(&format!("{dir}/usage"), "5\n") }
        });
        let states = observe(&Reader::new(&host), &CpuSet::range(0..=2));
        let states = states.get().unwrap();
        assert_eq!((states.len(), states[0].cpus.to_string()), (1, "0-1".to_owned()));
        assert_eq!((states[0].latency_us.value(), states[0].usage.value()), (Some(170), Some(10)));
    }
}
