//! Limits that control groups put on us and on the services of this machine
//! (`Documentation/admin-guide/cgroup-v2.rst`, `cgroup-v1/`).

mod groups;
mod hierarchy;
mod survey;

use serde::Serialize;

use crate::{
    CpuSet, Observed, Reader, Reason,
    kernel::{Pressure, pressure},
    reader::join,
};

pub use groups::{CpuGroup, CpuQuota, IoGroup, IoLimit, MemoryEvents, MemoryGroup, PidsGroup, Throttling};
pub use hierarchy::Version;
use hierarchy::{Hierarchies, Place};

/// Limits that our own control group and those above it put on us.
///
/// Each list starts with our own group and ends with the root (in a container: the container's root). A limit
/// anywhere in the list holds for us; the tightest counts.
#[derive(Debug, Clone, Serialize)]
pub struct Cgroup {
    /// Which version is mounted.
    pub version: Observed<Version>,
    /// Groups that may limit our CPU time.
    pub cpu: Observed<Vec<CpuGroup>>,
    /// Groups that may limit our memory.
    pub memory: Observed<Vec<MemoryGroup>>,
    /// Groups that may limit our disk traffic.
    pub io: Observed<Vec<IoGroup>>,
    /// Groups that may limit how many tasks we start.
    pub pids: Observed<Vec<PidsGroup>>,
    /// CPUs that we and the first process may run on.
    pub cpuset: Cpuset,
    /// How much of the time our own group waited for a CPU.
    pub cpu_pressure: Observed<Pressure>,
    /// How much of the time our own group waited for memory.
    pub memory_pressure: Observed<Pressure>,
    /// Groups of other services that have a CPU quota.
    pub limited_services: Observed<Vec<CpuGroup>>,
}

/// CPUs that processes may run on.
#[derive(Debug, Clone, Serialize)]
pub struct Cpuset {
    /// CPUs of our control group (`cpuset.cpus.effective`).
    pub effective: Observed<CpuSet>,
    /// CPUs that we may run on (`Cpus_allowed_list` in `/proc/self/status`); `taskset` narrows it as well.
    pub allowed: Observed<CpuSet>,
    /// CPUs that the first process, and so every service that does not choose for itself, may run on.
    pub init_allowed: Observed<CpuSet>,
}

impl Cgroup {
    /// The group with the smallest share of CPU time, among those that limit us.
    pub fn tightest_cpu(&self) -> Option<(&CpuGroup, CpuQuota)> {
        let limited = self.cpu.get()?.iter().filter_map(|group| Some((group, group.quota.value()?)));
        limited.min_by(|(_, left), (_, right)| left.cpus().total_cmp(&right.cpus()))
    }

    /// The group with the least memory, among those that limit us.
    pub fn tightest_memory(&self) -> Option<(&MemoryGroup, u64)> {
        let limited = self.memory.get()?.iter().filter_map(|group| Some((group, group.limit_bytes.value()?)));
        limited.min_by_key(|(_, bytes)| *bytes)
    }
}

/// Reads this subsystem.
pub fn observe(reader: &Reader<'_>) -> Cgroup {
    let hierarchies = Hierarchies::observe(reader);
    let cpu_place = hierarchies.place("cpu");
    let own_v2 = |name: &str| match hierarchies.place("memory") {
        Ok(place) if place.version == Version::V2 => pressure::read(reader, &join(&place.own_dir(), name)),
        Ok(place) => Observed::unavailable(
            join(&place.own_dir(), name),
            Reason::NotApplicable("control groups of version 1 do not count it".into()),
        ),
        Err((source, reason)) => Observed::unavailable(source, reason),
    };
    Cgroup {
        version: hierarchies.version(),
        cpu: levels(hierarchies.place("cpu"), |dir, place| groups::cpu(reader, dir, place)),
        memory: levels(hierarchies.place("memory"), |dir, place| groups::memory(reader, dir, place)),
        io: levels(hierarchies.place("blkio"), |dir, place| groups::io(reader, dir, place)),
        pids: levels(hierarchies.place("pids"), |dir, place| groups::pids(reader, dir, place)),
        cpuset: Cpuset {
            effective: match hierarchies.place("cpuset") {
                Ok(place) => groups::effective_cpus(reader, &place),
                Err((source, reason)) => Observed::unavailable(source, reason),
            },
            allowed: allowed(reader, "/proc/self/status"),
            init_allowed: allowed(reader, "/proc/1/status"),
        },
        cpu_pressure: own_v2("cpu.pressure"),
        memory_pressure: own_v2("memory.pressure"),
        limited_services: survey::limited(reader, cpu_place),
    }
}

type Found = Result<Place, (String, Reason)>;

fn levels<G>(place: Found, read: impl Fn(&str, &Place) -> G) -> Observed<Vec<G>> {
    match place {
        Ok(place) => {
            Observed::known(place.dir.clone(), place.dirs().iter().map(|dir| read(dir, &place)).collect())
        }
        Err((source, reason)) => Observed::unavailable(source, reason),
    }
}

fn allowed(reader: &Reader<'_>, path: &str) -> Observed<CpuSet> {
    reader.text(path).parse(|text| {
        let list = text.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:"));
        list.ok_or_else(|| "no Cpus_allowed_list".to_owned())?.parse()
    })
}

#[cfg(test)]
mod tests {
    use zenkai_host::FakeHost;

    use super::*;

    const V2: &str = "30 23 0:26 / /sys/fs/cgroup rw,nosuid shared:4 - cgroup2 cgroup2 rw,nsdelegate\n";

    #[test]
    fn the_tightest_limit_on_the_way_to_the_root_counts() {
        let dir = "/sys/fs/cgroup";
        let files = [
            ("/proc/self/mountinfo".to_owned(), V2),
            ("/proc/self/cgroup".to_owned(), "0::/system.slice/a.service\n"),
            ("/proc/self/status".to_owned(), "Cpus_allowed_list:\t0-3\n"),
            (format!("{dir}/cgroup.controllers"), "cpu\n"),
            (format!("{dir}/system.slice/cpu.max"), "150000 100000\n"),
            (
                format!("{dir}/system.slice/cpu.stat"),
                "usage_usec 9\nnr_periods 10\nnr_throttled 4\nthrottled_usec 7\n",
            ),
            (format!("{dir}/system.slice/a.service/cpu.max"), "max 100000\n"),
            (format!("{dir}/system.slice/a.service/memory.max"), "1048576\n"),
            (
                format!("{dir}/system.slice/a.service/memory.events"),
                "low 0\nhigh 2\nmax 3\noom 0\noom_kill 1\n",
            ),
            (
                format!("{dir}/system.slice/a.service/io.max"),
                "8:0 rbps=1048576 wbps=max riops=max wiops=120\n",
            ),
            (format!("{dir}/system.slice/a.service/pids.max"), "max\n"),
            (format!("{dir}/system.slice/b.service/cpu.max"), "20000 100000\n"),
        ];
        let files: Vec<(&str, &str)> = files.iter().map(|(path, text)| (path.as_str(), *text)).collect();
        let cgroup = observe(&Reader::new(&FakeHost::new(&files)));
        assert_eq!(cgroup.version.value(), Some(Version::V2));
        let (group, quota) = cgroup.tightest_cpu().unwrap();
        assert_eq!(group.path, "/system.slice");
        assert!((quota.cpus() - 1.5).abs() < 1e-9);
        assert_eq!(group.throttling.value().unwrap().throttled_periods, 4);
        assert_eq!(cgroup.cpu.get().unwrap().len(), 3);
        assert!(matches!(cgroup.cpu.get().unwrap()[0].quota.reason(), Some(Reason::NotApplicable(_))));
        let (memory, bytes) = cgroup.tightest_memory().unwrap();
        assert_eq!((bytes, memory.events.value().unwrap().max), (1_048_576, 3));
        let io = &cgroup.io.get().unwrap()[0].limits.get().unwrap()[0];
        assert_eq!(
            (io.read_bytes_per_s, io.write_operations_per_s, io.write_bytes_per_s),
            (Some(1_048_576), Some(120), None)
        );
        let services = cgroup.limited_services.get().unwrap();
        let paths: Vec<_> = services.iter().map(|group| group.path.as_str()).collect();
        assert_eq!(paths, ["/system.slice", "/system.slice/b.service"]);
        assert_eq!(cgroup.cpuset.allowed.get().unwrap().len(), 4);
    }

    #[test]
    fn version_1_has_a_tree_for_each_controller() {
        let files = [
            (
                "/proc/self/mountinfo",
                "32 31 0:29 /docker/1 /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu\n\
                 35 31 0:32 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n",
            ),
            ("/proc/self/cgroup", "4:memory:/a\n1:cpu:/docker/1\n"),
            ("/sys/fs/cgroup/cpu/cpu.cfs_quota_us", "50000\n"),
            ("/sys/fs/cgroup/cpu/cpu.cfs_period_us", "100000\n"),
            ("/sys/fs/cgroup/cpu/cpu.stat", "nr_periods 5\nnr_throttled 1\nthrottled_time 9000\n"),
            ("/sys/fs/cgroup/memory/a/memory.limit_in_bytes", "9223372036854771712\n"),
            ("/sys/fs/cgroup/memory/a/memory.failcnt", "3\n"),
        ];
        let cgroup = observe(&Reader::new(&FakeHost::new(&files)));
        assert_eq!(cgroup.version.value(), Some(Version::V1));
        let (group, quota) = cgroup.tightest_cpu().unwrap();
        assert!((quota.cpus() - 0.5).abs() < 1e-9);
        assert_eq!(group.throttling.value().unwrap().throttled_us, 9);
        assert_eq!(group.path, "/");
        assert!(cgroup.tightest_memory().is_none());
        assert_eq!(cgroup.memory.get().unwrap()[0].events.value().unwrap().max, 3);
        assert!(cgroup.io.reason().is_some());
    }
}
