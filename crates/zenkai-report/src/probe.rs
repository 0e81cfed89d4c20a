//! What the probe measured, as a report.

use zenkai_diagnose::ghz;
use zenkai_facts::{CpuSet, Facts};
use zenkai_host::probe::{BusyClock, MemoryBandwidth, Probe, Reading, WakeLatency};

use crate::Block;

/// The tables of a probe; nothing when none was run.
pub(crate) fn probe(facts: &Facts) -> Vec<Block> {
    let Some(probe) = facts.probe.get() else { return Vec::new() };
    vec![
        Block::Heading(format!("Measured under load, in {:.1} s", f64::from(probe.elapsed_ms) / 1000.0)),
        Block::Table(clocks(facts, probe)),
        Block::Text(String::new()),
        Block::Table(costs(probe)),
    ]
}

/// One row per group of CPUs that show the same: nominal and highest clock, what was measured with all CPUs busy and
/// with one, and what the machine's other work and its hypervisor left of the time.
fn clocks(facts: &Facts, probe: &Probe) -> Vec<Vec<String>> {
    let header = ["CPU", "nominal", "highest", "all busy", "one busy", "time got", "APERF/MPERF"];
    let nominal = shown(facts.nominal_khz().value());
    let mut groups: Vec<(Vec<String>, Vec<u32>)> = Vec::new();
    for cpu in &probe.cpus {
        let all = cpu.all_busy.value();
        let row = vec![
            nominal.clone(),
            shown(highest_khz(facts, cpu.cpu)),
            clock(&cpu.all_busy),
            clock(&cpu.one_busy),
            all.map_or_else(dash, |busy| format!("{:.0} %", busy.cpu_share * 100.0)),
            all.and_then(|busy| busy.aperf_mperf_ratio.value())
                .map_or_else(dash, |ratio| format!("{ratio:.2}")),
        ];
        match groups.iter_mut().find(|(known, _)| *known == row) {
            Some((_, cpus)) => cpus.push(cpu.cpu),
            None => groups.push((row, vec![cpu.cpu])),
        }
    }
    let rows = groups.into_iter().map(|(row, cpus)| {
        let cpus: CpuSet = cpus.into_iter().collect();
        std::iter::once(cpus.to_string()).chain(row).collect()
    });
    std::iter::once(header.map(str::to_owned).to_vec()).chain(rows).collect()
}

/// The highest clock the driver offers for a CPU.
fn highest_khz(facts: &Facts, cpu: u32) -> Option<u64> {
    let policies = facts.cpu.frequency.policies.get()?;
    let policy = policies.iter().find(|policy| policy.cpus.get().is_some_and(|cpus| cpus.contains(cpu)))?;
    policy.hardware_max_khz.value()
}

fn clock(phase: &Reading<BusyClock>) -> String {
    shown(phase.value().and_then(|busy| busy.clock_khz.value()).map(|khz| u64::from(*khz)))
}

/// Costs and rates, one a line; what could not be measured says why.
fn costs(probe: &Probe) -> Vec<Vec<String>> {
    let mut rows = Vec::new();
    for wake in &probe.wake {
        rows.push(vec!["wake-up".to_owned(), told(wake, latency)]);
    }
    rows.push(vec!["system call".to_owned(), told(&probe.syscall_ns, |ns| format!("{ns:.0} ns"))]);
    rows.push(vec![
        "reading the clock".to_owned(),
        told(&probe.clock_gettime_ns, |ns| format!("{ns:.0} ns")),
    ]);
    for memory in &probe.memory {
        rows.push(vec!["memory".to_owned(), bandwidth(memory)]);
    }
    rows
}

fn latency(wake: &WakeLatency) -> String {
    format!(
        "timer every {} us: {:.0} us late in the median, {:.0} at 95 %, {:.0} at 99 % (CPU {})",
        wake.period_us, wake.wake_p50_us, wake.wake_p95_us, wake.wake_p99_us, wake.cpu
    )
}

fn bandwidth(memory: &MemoryBandwidth) -> String {
    let threads =
        if memory.threads == 1 { "one core".to_owned() } else { format!("{} cores", memory.threads) };
    let rate = |gb: &f64| format!("{gb:.1} GB/s");
    let read = told(&memory.read_gb_per_s, rate);
    let add = told(&memory.add_gb_per_s, rate);
    let cached = memory.buffers_per_llc.value().is_some_and(|ratio| *ratio < 2.0);
    let doubt = if cached { "; the caches may have taken part" } else { "" };
    format!("{threads}: reads {read}, a = b + c {add} (at least{doubt})")
}

fn told<T>(reading: &Reading<T>, tell: impl Fn(&T) -> String) -> String {
    match (reading.value(), reading.reason()) {
        (Some(value), _) => tell(value),
        (None, reason) => format!("- ({})", reason.unwrap_or("not measured")),
    }
}

fn shown(khz: Option<u64>) -> String {
    khz.map_or_else(dash, ghz)
}

fn dash() -> String {
    "-".to_owned()
}
