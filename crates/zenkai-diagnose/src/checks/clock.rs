//! The clocks a probe measured, as the CPU checks and the verdict tell them.

use zenkai_host::probe::{BusyClock, CpuClock, Probe, Reading};

/// Each CPU's clock while all were busy, kHz.
pub(crate) fn all_busy_khz(probe: &Probe) -> Vec<(u32, u64)> {
    clocks(probe, |cpu| &cpu.all_busy)
}

/// Each sampled CPU's clock while it alone was busy, kHz.
pub(crate) fn one_busy_khz(probe: &Probe) -> Vec<(u32, u64)> {
    clocks(probe, |cpu| &cpu.one_busy)
}

fn clocks(probe: &Probe, phase: impl Fn(&CpuClock) -> &Reading<BusyClock>) -> Vec<(u32, u64)> {
    let clock = |cpu: &CpuClock| {
        let khz = *phase(cpu).value()?.clock_khz.value()?;
        Some((cpu.cpu, u64::from(khz)))
    };
    probe.cpus.iter().filter_map(clock).collect()
}

/// The middle value.
pub(crate) fn median_khz(clocks: &[(u32, u64)]) -> Option<u64> {
    let mut values: Vec<u64> = clocks.iter().map(|(_, khz)| *khz).collect();
    values.sort_unstable();
    values.get(values.len() / 2).copied()
}

/// A clock as people say it: `3.10 GHz`.
pub fn ghz(khz: u64) -> String {
    let hundredths = (khz + 5_000) / 10_000;
    format!("{}.{:02} GHz", hundredths / 100, hundredths % 100)
}
