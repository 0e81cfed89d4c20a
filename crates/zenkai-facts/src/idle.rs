//! Idle states, and who limits them (`Documentation/admin-guide/pm/cpuidle.rst`).

mod state;

use serde::Serialize;

use crate::{
    Observed, Reader,
    cpu::{CPU_DIR, Cpu, Group, per_cpu},
    reader::join,
};

pub use state::{IdleTime, State};

/// Idle states.
#[derive(Debug, Clone, Serialize)]
pub struct Idle {
    /// `intel_idle`, `acpi_idle`, `haltpoll` …, or `none`.
    pub driver: Observed<String>,
    /// Who chooses the state: `menu`, `teo`, `ladder`, `haltpoll`.
    pub governor: Observed<String>,
    /// Who could choose it.
    pub available_governors: Observed<Vec<String>>,
    /// The states, shallowest first; CPUs with equal states are told together.
    pub states: Observed<Vec<State>>,
    /// The longest wake-up latency any program allows now, in µs: four bytes of `/dev/cpu_dma_latency`
    /// (`Documentation/power/pm_qos_interface.rst`). Nobody limits it at 2 000 000 000.
    pub latency_limit_us: Observed<i32>,
    /// The longest wake-up latency allowed for single CPUs (`power/pm_qos_resume_latency_us`).
    pub cpu_latency_limits: Observed<Vec<Group<LatencyLimit>>>,
    /// Deepest state `intel_idle` uses (`max_cstate` of the module; 0 keeps it from loading).
    pub intel_max_cstate: Observed<u32>,
    /// Deepest ACPI state in use (`max_cstate` of the processor module).
    pub acpi_max_cstate: Observed<u32>,
    /// How long a guest polls before it halts, in ns (`haltpoll` governor).
    pub guest_halt_poll_ns: Observed<u64>,
}

/// What a CPU's own wake-up latency may be.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum LatencyLimit {
    /// Nobody limits it.
    Unlimited,
    /// At most this many µs; 0 leaves nothing but polling.
    Us(u32),
}

/// `/dev/cpu_dma_latency` reads at least this when nobody holds a limit (`PM_QOS_CPU_LATENCY_DEFAULT_VALUE` in
/// `include/linux/pm_qos.h`).
pub const NO_LATENCY_LIMIT_US: i32 = 2_000_000_000;

/// Reads this subsystem.
pub fn observe(reader: &Reader<'_>, cpu: &Cpu) -> Idle {
    let online = cpu.online_cpus();
    let file = |name: &str| join(CPU_DIR, format_args!("cpuidle/{name}"));
    let limit = |cpu: u32| join(CPU_DIR, format_args!("cpu{cpu}/power/pm_qos_resume_latency_us"));
    Idle {
        driver: reader.text(&file("current_driver")),
        governor: reader
            .text(&file("current_governor"))
            .or_else(|| reader.text(&file("current_governor_ro"))),
        available_governors: reader.words(&file("available_governors")),
        states: state::observe(reader, &online),
        latency_limit_us: latency_limit(reader),
        cpu_latency_limits: per_cpu(&online, |cpu| reader.text(&limit(cpu)).parse(|text| cpu_limit(&text))),
        intel_max_cstate: reader.number("/sys/module/intel_idle/parameters/max_cstate"),
        acpi_max_cstate: reader.number("/sys/module/processor/parameters/max_cstate"),
        guest_halt_poll_ns: reader.number("/sys/module/haltpoll/parameters/guest_halt_poll_ns"),
    }
}

/// Reading the device tells the limit of all holders together and changes nothing (`cpu_latency_qos_read` in
/// `kernel/power/qos.c`): only a write makes the reader a holder.
fn latency_limit(reader: &Reader<'_>) -> Observed<i32> {
    reader.bytes("/dev/cpu_dma_latency").parse(|bytes| {
        let bytes: [u8; 4] = bytes.try_into().map_err(|_| "not four bytes".to_owned())?;
        Ok(i32::from_le_bytes(bytes))
    })
}

/// The file shows `0` for no limit and `n/a` for a limit of 0 (`drivers/base/power/sysfs.c`).
fn cpu_limit(text: &str) -> Result<LatencyLimit, String> {
    match text {
        "0" => Ok(LatencyLimit::Unlimited),
        "n/a" => Ok(LatencyLimit::Us(0)),
        _ => text.parse().map(LatencyLimit::Us).map_err(|_| "neither a number nor n/a".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use zenkai_host::FakeHost;

    use super::*;

    #[test]
    fn limits() {
        let host = FakeHost::new(&[
            ("/sys/devices/system/cpu/online", "0-2\n"),
            ("/sys/devices/system/cpu/cpu0/power/pm_qos_resume_latency_us", "0\n"),
            ("/sys/devices/system/cpu/cpu1/power/pm_qos_resume_latency_us", "n/a\n"),
            ("/sys/devices/system/cpu/cpu2/power/pm_qos_resume_latency_us", "20\n"),
            ("/dev/cpu_dma_latency", "\u{1}\0\0\0"),
        ]);
        let reader = Reader::new(&host);
        let idle = observe(&reader, &crate::cpu::observe(&reader));
        let limits: Vec<_> =
            idle.cpu_latency_limits.get().unwrap().iter().filter_map(|group| group.value.value()).collect();
        assert_eq!(limits, [LatencyLimit::Unlimited, LatencyLimit::Us(0), LatencyLimit::Us(20)]);
        assert_eq!(idle.latency_limit_us.value(), Some(1));
        assert!(idle.states.is_absent());
        let torn = FakeHost::new(&[("/dev/cpu_dma_latency", "\u{1}\0")]);
        assert!(latency_limit(&Reader::new(&torn)).get().is_none());
    }
}
