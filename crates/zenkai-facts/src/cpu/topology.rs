//! Sockets, cores and threads (`Documentation/admin-guide/cputopology.rst`).

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;

use super::{
    CPU_DIR,
    info::{Info, Place},
};
use crate::{CpuSet, Observed, Reader, Reason, reader::join};

/// How the online CPUs are arranged.
#[derive(Debug, Clone, Serialize)]
pub struct Topology {
    /// Packages with at least one online CPU.
    pub sockets: Observed<usize>,
    /// Cores with at least one online CPU, over all sockets.
    pub cores: Observed<usize>,
    /// Online CPUs as the scheduler counts them.
    pub threads: Observed<usize>,
    /// The packages, by number.
    pub packages: Observed<Vec<Package>>,
}

/// One socket.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Package {
    /// `physical id`.
    pub number: u32,
    /// Cores with at least one online CPU.
    pub cores: usize,
    /// Its online CPUs.
    pub cpus: CpuSet,
}

pub(super) fn observe(reader: &Reader<'_>, info: &Info, online: &CpuSet) -> Topology {
    let packages = match info.parsed.outcome() {
        Ok(parsed) if !parsed.places.is_empty() => Observed::known("/proc/cpuinfo", packages(&parsed.places)),
        _ => from_sysfs(reader, online),
    };
    let count = |of: fn(&Package) -> usize| packages.clone().map(|list| list.iter().map(of).sum());
    Topology {
        sockets: count(|_| 1),
        cores: count(|package| package.cores),
        threads: count(|package| package.cpus.len()),
        packages,
    }
}

/// Where `/proc/cpuinfo` does not tell: two files per CPU.
fn from_sysfs(reader: &Reader<'_>, online: &CpuSet) -> Observed<Vec<Package>> {
    let mut places = Vec::new();
    for cpu in online.iter() {
        let file = |name: &str| join(CPU_DIR, format_args!("cpu{cpu}/topology/{name}"));
        let package = reader.number::<i64>(&file("physical_package_id"));
        let core = reader.number::<i64>(&file("core_id"));
        // -1: the firmware does not say, so nobody knows how many sockets there are.
        let number = |reading: &Observed<i64>| reading.value().and_then(|id| u32::try_from(id).ok());
        match (number(&package), number(&core)) {
            (Some(package), Some(core)) => places.push(Place { cpu, package, core }),
            (None, _) => return unknown(&package),
            (_, None) => return unknown(&core),
        }
    }
    if places.is_empty() {
        return Observed::unavailable(CPU_DIR, Reason::Absent);
    }
    Observed::known(CPU_DIR, packages(&places))
}

fn unknown(reading: &Observed<i64>) -> Observed<Vec<Package>> {
    let not_told = || Reason::NotApplicable("the firmware does not tell".to_owned());
    Observed::unavailable(reading.source(), reading.reason().cloned().unwrap_or_else(not_told))
}

fn packages(places: &[Place]) -> Vec<Package> {
    let mut by_number: BTreeMap<u32, (BTreeSet<u32>, Vec<u32>)> = BTreeMap::new();
    for place in places {
        let (cores, cpus) = by_number.entry(place.package).or_default();
        cores.insert(place.core);
        cpus.push(place.cpu);
    }
    by_number
        .into_iter()
        .map(|(number, (cores, cpus))| Package {
            number,
            cores: cores.len(),
            cpus: cpus.into_iter().collect(),
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use zenkai_host::FakeHost;

    use super::*;

    #[test]
    fn two_sockets_with_smt() {
        let place = |cpu, package, core| Place { cpu, package, core };
        let found = packages(&[place(0, 0, 0), place(1, 1, 0), place(2, 0, 0), place(3, 1, 0)]);
        assert_eq!(found.len(), 2);
        assert_eq!(found[0], Package { number: 0, cores: 1, cpus: "0,2".parse().unwrap() });
    }

    #[test]
    fn arm_firmware_that_does_not_tell() {
        let dir = "/sys/devices/system/cpu/cpu0/topology";
        let world = |id| {
            FakeHost::new(&[("/proc/cpuinfo", "processor: 0\n")])
                .file(&format!("{dir}/physical_package_id"), id)
                .file(&format!("{dir}/core_id"), "0\n")
        };
        let cpus = CpuSet::range(0..=0);
        let look = |host: &FakeHost| {
            let reader = Reader::new(host);
            observe(&reader, &super::super::info::observe(&reader), &cpus)
        };
        assert_eq!(look(&world("36\n")).sockets.value(), Some(1));
        assert!(matches!(look(&world("-1\n")).sockets.reason(), Some(Reason::NotApplicable(_))));
    }
}
