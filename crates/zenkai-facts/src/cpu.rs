//! Processors: model, topology, clock, and the policies that steer the clock.

mod cache;
mod frequency;
mod info;
mod per_cpu;
mod topology;
mod uncore;

use serde::Serialize;

use crate::{CpuSet, Observed, Reader, reader::join};

pub use cache::Cache;
pub use frequency::{AmdPstate, Cppc, Frequency, IntelPstate, Policy};
pub use info::Flags;
pub use per_cpu::Group;
pub use topology::{Package, Topology};
pub use uncore::UncoreDomain;

pub(crate) use per_cpu::per_cpu;

/// Where the kernel keeps everything about CPUs.
pub(crate) const CPU_DIR: &str = "/sys/devices/system/cpu";

/// The processors of a machine.
#[derive(Debug, Clone, Serialize)]
pub struct Cpu {
    /// `model name` of `/proc/cpuinfo`; ARM kernels give none.
    pub model_name: Observed<String>,
    /// `vendor_id` (`GenuineIntel`, `AuthenticAMD`), or the `CPU implementer` number on ARM.
    pub vendor: Observed<String>,
    /// `cpu family`, x86 only.
    pub family: Observed<u32>,
    /// `model`, x86 only.
    pub model: Observed<u32>,
    /// `stepping`, x86 only.
    pub stepping: Observed<u32>,
    /// Microcode revision of the first CPU as the kernel writes it (`0x2b000603`).
    pub microcode: Observed<String>,
    /// The features of the first CPU, as `/proc/cpuinfo` names them.
    pub flags: Observed<Flags>,
    /// CPUs that take work now.
    pub online: Observed<CpuSet>,
    /// CPUs that exist in this machine.
    pub present: Observed<CpuSet>,
    /// CPUs that could ever exist here, hot-plugged ones included.
    pub possible: Observed<CpuSet>,
    /// CPUs that take no work, and those beyond the limit set by `nr_cpus=`.
    pub offline: Observed<CpuSet>,
    /// CPUs the scheduler keeps ordinary work away from (`isolcpus=`, cpuset partitions).
    pub isolated: Observed<CpuSet>,
    /// CPUs without a timer tick while one task runs (`nohz_full=`).
    pub nohz_full: Observed<CpuSet>,
    /// Sockets, cores, threads.
    pub topology: Topology,
    /// `smt/control`: `on`, `off`, `forceoff`, `notsupported`, `notimplemented`, or a thread count.
    pub smt_control: Observed<String>,
    /// Whether any core runs two threads now (`smt/active`).
    pub smt_active: Observed<bool>,
    /// The caches that the first online CPU uses.
    pub caches: Observed<Vec<Cache>>,
    /// Limits that resctrl groups put on memory bandwidth and last-level cache: one line per resource of the default
    /// group (`/sys/fs/resctrl/schemata`, `Documentation/filesystems/resctrl.rst`).
    pub resctrl_schemata: Observed<Vec<String>>,
    /// The clock and who steers it.
    pub frequency: Frequency,
}

impl Cpu {
    /// Whether the vendor is known to be this one. Hygon builds AMD's Zen and counts as AMD.
    pub fn is_amd(&self) -> bool {
        matches!(self.vendor.text(), Some("AuthenticAMD" | "HygonGenuine"))
    }

    /// Whether this is known to be an Intel CPU.
    pub fn is_intel(&self) -> bool {
        self.vendor.text() == Some("GenuineIntel")
    }

    /// Whether each CPU has its own memory controller, so that more than one socket means more than one node. On
    /// x86 the timestamp counter became independent of clock and sleep states (`nonstop_tsc`) in the same
    /// generations that brought the memory controller onto Xeons (Nehalem); chips that share a front-side bus have
    /// neither. Servers of other architectures have always had it.
    pub fn owns_memory_controller(&self) -> Observed<bool> {
        let x86 = self.is_intel() || self.is_amd();
        self.flags.clone().map(|flags| !x86 || flags.has("nonstop_tsc"))
    }

    /// The online CPUs; empty when they are not known.
    pub(crate) fn online_cpus(&self) -> CpuSet {
        self.online.get().cloned().unwrap_or_default()
    }
}

/// Reads the processors.
pub fn observe(reader: &Reader<'_>) -> Cpu {
    let file = |name: &str| join(CPU_DIR, name);
    let online = reader.cpu_set(&file("online"));
    let cpus = online.get().cloned().unwrap_or_default();
    let info = info::observe(reader);
    let topology = topology::observe(reader, &info, &cpus);
    let key = |name: &str| info.key(name);
    let number =
        |name: &str| key(name).parse(|text| text.parse().map_err(|_| format!("`{name}` is no number")));
    Cpu {
        model_name: key("model name").or_else(|| key("cpu")),
        vendor: key("vendor_id").or_else(|| key("CPU implementer")),
        family: number("cpu family"),
        model: number("model"),
        stepping: number("stepping"),
        microcode: key("microcode"),
        flags: info.flags(),
        online,
        present: reader.cpu_set(&file("present")),
        possible: reader.cpu_set(&file("possible")),
        offline: reader.cpu_set(&file("offline")),
        isolated: reader.cpu_set(&file("isolated")),
        nohz_full: nohz_full(reader),
        topology,
        smt_control: reader.text(&file("smt/control")),
        smt_active: reader.flag(&file("smt/active")),
        caches: cache::observe(reader, &cpus),
        resctrl_schemata: reader
            .text("/sys/fs/resctrl/schemata")
            .map(|text| text.lines().map(|line| line.trim().to_owned()).collect()),
        frequency: frequency::observe(reader, &cpus),
    }
}

/// The kernel prints a mask that was never set up as `(null)` (`drivers/base/cpu.c`).
fn nohz_full(reader: &Reader<'_>) -> Observed<CpuSet> {
    reader.text(&join(CPU_DIR, "nohz_full")).parse(|text| match text.as_str() {
        "(null)" => Ok(CpuSet::default()),
        list => list.parse(),
    })
}

#[cfg(test)]
mod tests {
    use zenkai_host::FakeHost;

    use super::*;

    #[test]
    fn a_small_xeon() {
        let host = FakeHost::new(&[
            (
                "/proc/cpuinfo",
                "processor\t: 0\nvendor_id\t: GenuineIntel\ncpu family\t: 6\nmodel\t\t: 85\n\
                 model name\t: Xeon\nmicrocode\t: 0x5003\nphysical id\t: 0\ncore id\t: 0\nflags\t: fpu ida hwp\n\n",
            ),
            ("/sys/devices/system/cpu/online", "0\n"),
            ("/sys/devices/system/cpu/nohz_full", "(null)\n"),
            ("/sys/devices/system/cpu/smt/control", "off\n"),
        ]);
        let cpu = observe(&Reader::new(&host));
        assert_eq!(cpu.model.value(), Some(85));
        assert!(cpu.is_intel());
        assert_eq!(cpu.nohz_full.get().unwrap().len(), 0);
        assert!(cpu.stepping.is_absent());
        assert!(cpu.frequency.policies.is_absent());
    }

    #[test]
    fn an_empty_world_is_all_absent() {
        let cpu = observe(&Reader::new(&FakeHost::new(&[])));
        assert!(cpu.vendor.is_absent() && cpu.topology.sockets.reason().is_some());
    }
}
