//! How often and how long heat (or PROCHOT#) slowed CPUs down, as the CPUs' own interrupts counted it.

use serde::Serialize;

use crate::{
    CpuSet, Observed, Reader, Reason,
    cpu::{CPU_DIR, Cpu},
    reader::join,
    virtualisation::Virtualisation,
};

/// The counters since boot.
#[derive(Debug, Clone, Serialize)]
pub struct Throttle {
    /// CPUs whose core was throttled at least once.
    pub throttled_cpus: CpuSet,
    /// The highest count of any one core.
    pub core_events: Observed<u64>,
    /// The longest total time of any one core, in ms (kernel 5.6 and later).
    pub core_time_ms: Observed<u64>,
    /// By package.
    pub packages: Vec<PackageThrottle>,
}

/// The counters of one package.
#[derive(Debug, Clone, Serialize)]
pub struct PackageThrottle {
    /// Its number.
    pub package: u32,
    /// How often the package was throttled.
    pub events: Observed<u64>,
    /// For how long in all, in ms (kernel 5.6 and later).
    pub time_ms: Observed<u64>,
}

fn number(reader: &Reader<'_>, cpu: u32, name: &str) -> Observed<u64> {
    reader.number(&join(CPU_DIR, format_args!("cpu{cpu}/thermal_throttle/{name}")))
}

pub(super) fn observe(reader: &Reader<'_>, cpu: &Cpu, virtualisation: &Virtualisation) -> Observed<Throttle> {
    let online = cpu.online_cpus();
    let first = number(reader, online.first().unwrap_or(0), "core_throttle_count");
    if let Some(reason) = first.reason() {
        let reason = match reason {
            Reason::Absent if cpu.is_amd() => Reason::NotApplicable("AMD CPUs do not count it".to_owned()),
            Reason::Absent if virtualisation.cpus_are_lent() => {
                Reason::NotApplicable("the hypervisor counts it".to_owned())
            }
            other => other.clone(),
        };
        return Observed::unavailable(first.source(), reason);
    }
    let source = first.source().to_owned();
    let (mut throttled, mut worst) = (Vec::new(), first.clone());
    for cpu in online.iter() {
        let events = number(reader, cpu, "core_throttle_count");
        if events.value().is_some_and(|events| events > 0) {
            throttled.push(cpu);
        }
        if events.value() > worst.value() {
            worst = events;
        }
    }
    // Times are read only where there is something to read: most machines never throttle.
    let time = |cpu: &u32| number(reader, *cpu, "core_throttle_total_time_ms");
    let core_time_ms = throttled.iter().map(time).max_by_key(Observed::value);
    let core_time_ms = core_time_ms
        .unwrap_or_else(|| number(reader, online.first().unwrap_or(0), "core_throttle_total_time_ms"));
    let packages = cpu.topology.packages.get().map(Vec::as_slice).unwrap_or_default();
    let packages = packages.iter().filter_map(|package| {
        let cpu = package.cpus.first()?;
        Some(PackageThrottle {
            package: package.number,
            events: number(reader, cpu, "package_throttle_count"),
            time_ms: number(reader, cpu, "package_throttle_total_time_ms"),
        })
    });
    let throttle = Throttle {
        throttled_cpus: throttled.into_iter().collect(),
        core_events: worst,
        core_time_ms,
        packages: packages.collect(),
    };
    Observed::known(source, throttle)
}

#[cfg(test)]
mod tests {
    use zenkai_host::FakeHost;

    use super::*;

    #[test]
    fn the_worst_core_and_each_package() {
        let mut host = FakeHost::new(&[("/sys/devices/system/cpu/online", "0-1\n")]).file(
            "/proc/cpuinfo",
            "processor: 0\nphysical id: 0\ncore id: 0\n\nprocessor: 1\nphysical id: 1\ncore id: 0\n",
        );
        for (cpu, events, time) in [(0, 0, 0), (1, 7, 900)] {
            let dir = format!("/sys/devices/system/cpu/cpu{cpu}/thermal_throttle");
            for scope in ["core", "package"] {
                host = host
                    .file(&format!("{dir}/{scope}_throttle_count"), &format!("{events}\n"))
                    .file(&format!("{dir}/{scope}_throttle_total_time_ms"), &format!("{time}\n"));
            }
        }
        let reader = Reader::new(&host);
        let throttle =
            observe(&reader, &crate::cpu::observe(&reader), &crate::virtualisation::observe(&reader));
        let throttle = throttle.get().unwrap();
        assert_eq!(throttle.throttled_cpus.to_string(), "1");
        assert_eq!((throttle.core_events.value(), throttle.core_time_ms.value()), (Some(7), Some(900)));
        let packages: Vec<_> = throttle.packages.iter().map(|package| package.time_ms.value()).collect();
        assert_eq!(packages, [Some(0), Some(900)]);
    }
}
